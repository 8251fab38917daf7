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

// Pages are the pages for developers.
type Pages struct {
	*site.Site
	reference func() (*docs.Reference, error)
	delivery  *delivery.Dispatcher
	sandbox   func(app ids.ID) settingspage.SandboxAPI
	controls  *SandboxControls
}

// New creates the pages.
func New(s *site.Site, options Options) *Pages {
	return &Pages{Site: s, reference: options.Reference, delivery: options.Deliveries, sandbox: options.Sandbox, controls: options.Controls}
}
