package web

import "slices"

// routes is the whole surface for people. Each group of pages keeps its own table.
func (s *Site) routes() []route {
	return slices.Concat(
		s.peopleRoutes(),
		s.deskRoutes(),
		s.catalogRoutes(),
		s.docsRoutes(),
		s.workshopRoutes(),
	)
}
