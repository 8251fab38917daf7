package web

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/labstack/echo/v4"

	"purser/api/openapi"
	"purser/docs"
	"purser/ids"
	"purser/notify/delivery"
	"purser/static"
	"purser/store"
	settingspage "purser/views/page/settings"
	"purser/web/accounts"
	"purser/web/catalog"
	"purser/web/developers"
	docspages "purser/web/docs"
	"purser/web/site"
	"purser/web/support"
)

// Options configures a Site. That there are Controls decides HasSandbox.
type Options struct {
	site.Options
	// Document is the served OpenAPI document, for the reference.
	Document *openapi.Object
	// Usage answers checks and shows what is left of allowances.
	Usage *store.Engine
	// Deliveries creates webhook endpoints and sends tests to them.
	Deliveries *delivery.Dispatcher
	// NewOrganizations lets everyone with an account create organizations.
	NewOrganizations bool
	// Sandbox returns the API access to an application's sandbox account; if nil, it is
	// not shown.
	Sandbox func(app ids.ID) settingspage.SandboxAPI
	// Controls operate the payments sandbox; nil for a server without one.
	Controls *developers.SandboxControls
}

// Site serves the dashboard and the documentation.
type Site struct {
	*site.Site
	accounts   *accounts.Pages
	catalog    *catalog.Pages
	developers *developers.Pages
	docs       *docspages.Pages
	support    *support.Pages
}

// New creates the site. It needs no closing.
func New(options Options) *Site {
	options.HasSandbox = options.Controls != nil
	s := site.New(options.Options)
	reference := sync.OnceValues(func() (*docs.Reference, error) { return docs.ReadReference(options.Document) })
	return &Site{
		Site:     s,
		accounts: accounts.New(s, options.NewOrganizations),
		catalog:  catalog.New(s),
		developers: developers.New(s, developers.Options{
			Reference: reference, Deliveries: options.Deliveries, Sandbox: options.Sandbox, Controls: options.Controls,
		}),
		docs:    docspages.New(s, reference),
		support: support.New(s, options.Usage),
	}
}

// OfferSetup creates a link for creating the first account, or returns "" once there is
// one.
func (s *Site) OfferSetup(ctx context.Context) (address string, err error) {
	return s.accounts.OfferSetup(ctx)
}

// SetExportWallet lets members download what is known of a customer. It is set before the
// first request: the API needs the site, and the site the API.
func (s *Site) SetExportWallet(export support.ExportWallet) { s.support.SetExportWallet(export) }

// OnRestore is called with each restored application. It is set before the first request.
func (s *Site) OnRestore(restored func(app ids.ID)) { s.accounts.OnRestore(restored) }

// routes is the complete route table of the site.
func (s *Site) routes() []site.Route {
	return slices.Concat(
		s.accounts.Routes(),
		s.support.Routes(),
		s.catalog.Routes(),
		s.developers.Routes(),
		s.docs.Routes(),
		s.devRoutes(),
	)
}

// Register mounts all routes of the site.
func (s *Site) Register(e *echo.Echo) {
	s.Mount(e, s.routes())
	e.Match([]string{http.MethodGet, http.MethodHead}, static.Prefix+"*", echo.WrapHandler(static.Handler()), s.Protect)
	for _, path := range static.FixedPaths() {
		e.Match([]string{http.MethodGet, http.MethodHead}, path, echo.WrapHandler(static.FixedHandler()), s.Protect)
	}
}
