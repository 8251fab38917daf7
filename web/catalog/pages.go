package catalog

import "purser/web/site"

type Pages struct{ *site.Site }

func New(s *site.Site) *Pages { return &Pages{Site: s} }
