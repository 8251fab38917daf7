package web

// docsRoutes are the guides and the reference.
func (s *Site) docsRoutes() []route {
	return []route{
		get("/docs", anyone, s.docsHome),
		get("/docs/reference", anyone, s.docsReference),
		get("/docs/reference/{group}", anyone, s.docsGroup),
		get("/docs/notifications", anyone, s.docsWebhooks),
		get("/docs/errors", anyone, s.docsErrors),
		get("/docs/errors/{code}", anyone, s.docsError),
		get("/docs/search", anyone, s.docsSearch),
		get("/docs/changelog", anyone, s.docsChangelog),
		get("/docs/clients/{client}", anyone, s.docsClient),
		get("/docs/{guide}", anyone, s.docsGuide),
		get("/llms.txt", anyone, s.llms),
		get("/llms-full.txt", anyone, s.llmsFull),
	}
}
