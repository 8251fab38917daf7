package web

import "purser/views/page"

// devRoutes are pages for developing Purser, absent from releases.
func (s *Site) devRoutes() []route {
	if s.server.Version != "dev" {
		return nil
	}
	return []route{get("/gallery", anyone, s.gallery)}
}

// gallery shows every component in all its states.
func (s *Site) gallery(req *request) (response, error) {
	return show(page.Gallery(page.GallerySample{Query: req.query("q"), Live: req.query("live") != ""})), nil
}
