package web

import (
	"purser/views/page"
	"purser/web/site"
)

// devRoutes are pages for developing Purser, absent from releases.
func (s *Site) devRoutes() []site.Route {
	if s.Server.Version != "dev" {
		return nil
	}
	return []site.Route{site.Get("/gallery", site.Anyone, s.gallery)}
}

// gallery shows every component in all its states.
func (s *Site) gallery(req *site.Request) (site.Response, error) {
	return site.Show(page.Gallery(page.GallerySample{Query: req.Query("q"), Live: req.Query("live") != ""})), nil
}
