package support

import (
	"context"
	"io"

	"purser/store"
	"purser/tenancy"
	"purser/web/site"
)

// ExportWallet writes everything about one identity as JSON to what begin returns. The API
// has it.
type ExportWallet func(ctx context.Context, scope tenancy.Scope, identity string, begin func() io.Writer, admit func() error) error

// Pages are the pages of an application's customers.
type Pages struct {
	*site.Site
	usage        *store.Engine
	exportWallet ExportWallet
}

// New creates the pages. They ask the engine why usage is denied, and what is left of allowances.
func New(s *site.Site, usage *store.Engine) *Pages { return &Pages{Site: s, usage: usage} }

// SetExportWallet lets members download what is known of a customer. It is set before the
// first request: the API needs the site, and the site the API.
func (s *Pages) SetExportWallet(export ExportWallet) { s.exportWallet = export }
