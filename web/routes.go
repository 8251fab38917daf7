package web

import "slices"

// routes is the complete route table of the site, by group of pages.
func (s *Site) routes() []route {
	return slices.Concat(
		s.accountRoutes(),
		s.supportRoutes(),
		s.catalogRoutes(),
		s.developerRoutes(),
		s.docsRoutes(),
		s.devRoutes(),
	)
}
