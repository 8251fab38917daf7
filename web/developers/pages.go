package developers

import (
	"purser/docs"
	"purser/ids"
	"purser/notify/delivery"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

// Options configures the pages.
type Options struct {
	// Reference reads the API reference, for what types of notifications report.
	Reference func() (*docs.Reference, error)
	// Deliveries sends notifications. Nil for a server without webhooks.
	Deliveries *delivery.Dispatcher
	// Sandbox returns the API access to an application's sandbox account; if nil, it is
	// not shown.
	Sandbox func(app ids.ID) settingspage.SandboxAPI
	// Controls operate the payments sandbox; nil for a server without one.
	Controls *SandboxControls
}

type Pages struct {
	*site.Site
	Options
}

func New(s *site.Site, options Options) *Pages { return &Pages{s, options} }
