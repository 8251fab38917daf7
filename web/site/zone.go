package site

import (
	"time"

	"purser/metering/rollup"
)

// zoneCookie has the name of the viewer's time zone, which only a script knows.
const zoneCookie = "zone"

// Zone is the time zone in which the viewer counts days: that of their browser, or UTC
// without a script.
func (req *Request) Zone() *time.Location {
	cookie, err := req.HTTP().Cookie(zoneCookie)
	if err != nil {
		return time.UTC
	}
	zone, err := rollup.Zone(cookie.Value)
	if err != nil {
		return time.UTC
	}
	return zone
}
