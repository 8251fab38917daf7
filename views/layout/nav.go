package layout

import "purser/tenancy"

// NavGroup is several items under one heading, which may be empty.
type NavGroup struct {
	Title string
	Items []NavItem
}

// NavItem is a page that can be opened from every other.
type NavItem struct {
	Key   string
	Label string
	Href  string
	Icon  string // may be empty
}

// entry is an item, who may see it, and where it is below the place's own
// address.
type entry struct {
	key, label, path, icon string
	needs                  tenancy.Permission
}

type chapter struct {
	title   string
	entries []entry
}

// developers is the title of the pages for developers.
const developers = "Developers"

var appChapters = []chapter{
	{"", []entry{
		{"overview", "Overview", "", "layout-dashboard", tenancy.WalletsRead},
		{"wallets", "Wallets", "/wallets", "wallet", tenancy.WalletsRead},
		{"usage", "Usage", "/usage", "chart-column", tenancy.JournalRead},
		{"events", "Events", "/events", "activity", tenancy.JournalRead},
		{"deposits", "Deposits", "/deposits", "banknote", tenancy.DepositsRead},
		{"subscriptions", "Subscriptions", "/subscriptions", "repeat", tenancy.SubscriptionsRead},
		{"checkouts", "Checkouts", "/checkouts", "shopping-cart", tenancy.SubscriptionsRead},
		{"alerts", "Payment issues", "/alerts", "triangle-alert", tenancy.SubscriptionsRead},
		{"denials", "Denials", "/denials", "circle-x", tenancy.JournalRead},
		{"check", "Why denied?", "/check", "circle-question-mark", tenancy.JournalRead},
	}},
	{"Catalog", []entry{
		{"credits", "Credits", "/credits", "coins", tenancy.CreditsRead},
		{"features", "Features", "/features", "zap", tenancy.FeaturesRead},
		{"plans", "Plans", "/plans", "layers", tenancy.PlansRead},
	}},
	{developers, []entry{
		{"quickstart", "Quickstart", "/quickstart", "rocket", tenancy.WalletsRead},
		{"keys", "API keys", "/keys", "key-round", tenancy.KeysRead},
		{"webhooks", "Webhooks", "/webhooks", "webhook", tenancy.NotificationsRead},
		{"notifications", "Notifications", "/notifications", "bell", tenancy.NotificationsRead},
		{"requests", "Requests", "/requests", "scroll-text", tenancy.RequestsRead},
	}},
	{"", []entry{
		{"alert-rules", "Alerts", "/settings/alerts", "bell-ring", tenancy.CreditsRead},
		{"settings", "Settings", "/settings", "settings", tenancy.SettingsWrite},
	}},
}

var orgChapters = []chapter{
	{"", []entry{
		{"applications", "Applications", "", "boxes", 0},
		{"members", "Members", "/members", "users", tenancy.MembersRead},
		{"audit", "Audit log", "/audit", "history", tenancy.AuditRead},
		{"organization", "Settings", "/settings", "settings", tenancy.OrganizationWrite},
	}},
}

// AppNav is the navigation that these permissions open in the application at this
// address, such as "/o/acme/a/shop".
func AppNav(href string, may tenancy.Permissions) []NavGroup {
	return permitted(appChapters, href, may)
}

// WithSandbox adds the sandbox of a test application to its navigation.
func WithSandbox(groups []NavGroup, href string) []NavGroup {
	item := NavItem{Key: "sandbox", Label: "Sandbox", Href: href + "/sandbox", Icon: "flask"}
	for i, group := range groups {
		if group.Title == developers {
			groups[i].Items = append(group.Items, item)
			return groups
		}
	}
	return append(groups, NavGroup{Title: developers, Items: []NavItem{item}})
}

// OrgNav is the same for the organization at this address.
func OrgNav(href string, may tenancy.Permissions) []NavGroup {
	return permitted(orgChapters, href, may)
}

func permitted(chapters []chapter, href string, may tenancy.Permissions) []NavGroup {
	var groups []NavGroup
	for _, chapter := range chapters {
		group := NavGroup{Title: chapter.title}
		for _, e := range chapter.entries {
			// An entry that needs nothing is for every member.
			if e.needs == 0 || may.Has(e.needs) {
				group.Items = append(group.Items, NavItem{Key: e.key, Label: e.label, Href: href + e.path, Icon: e.icon})
			}
		}
		if len(group.Items) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}
