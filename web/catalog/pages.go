package catalog

import "purser/web/site"

// Pages are the pages of the catalog.
type Pages struct{ *site.Site }

// New creates the pages.
func New(s *site.Site) *Pages { return &Pages{Site: s} }
