package account

import "strings"

func (s OpenSession) agent() string { return BrowserName(s.Agent) }

// BrowserName is what people call a browser. What it calls itself names half a dozen
// others for the sake of old servers, so the order counts.
func BrowserName(agent string) string {
	browser := firstOf(agent, [][2]string{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Chromium/", "Chromium"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	})
	system := firstOf(agent, [][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	})
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser != "":
		return browser
	}
	return "Another program"
}

func firstOf(text string, names [][2]string) string {
	for _, name := range names {
		if strings.Contains(text, name[0]) {
			return name[1]
		}
	}
	return ""
}
