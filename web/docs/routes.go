package docs

import "purser/web/site"

// Routes are the guides and the reference.
func (s *Pages) Routes() []site.Route {
	table := []site.Route{
		site.Get("/docs", site.Anyone, s.docsHome),
		site.Get("/docs/reference", site.Anyone, s.docsReference),
		site.Get("/docs/reference/{group}", site.Anyone, site.With(site.Param("group"), s.docsGroup)),
		site.Get("/docs/notifications", site.Anyone, s.docsWebhooks),
		site.Get("/docs/errors", site.Anyone, s.docsErrors),
		site.Get("/docs/errors/{code}", site.Anyone, site.With(site.Param("code"), s.docsError)),
		site.Get("/docs/search", site.Anyone, s.docsSearch),
		site.Get("/docs/changelog", site.Anyone, s.docsChangelog),
		site.Get("/docs/clients/{client}", site.Anyone, site.With(site.Param("client"), s.docsClient)),
		site.Get("/docs/{guide}", site.Anyone, site.With(site.Param("guide"), s.docsGuide)),
		site.Get("/llms.txt", site.Anyone, s.llms),
		site.Get("/llms-full.txt", site.Anyone, s.llmsFull),
	}
	for i, r := range table {
		table[i] = site.Cacheable(r)
	}
	return table
}
