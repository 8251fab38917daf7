package docs

import (
	"sync"

	"purser/docs"
	"purser/web/site"
)

type Pages struct {
	*site.Site
	reference func() (*docs.Reference, error)
	docsIndex func() (*docs.Index, error)
	examples  func() (map[string][]docs.Variant, error)
}

// New creates the pages from the API reference.
func New(s *site.Site, reference func() (*docs.Reference, error)) *Pages {
	return &Pages{
		Site:      s,
		reference: reference,
		docsIndex: sync.OnceValues(func() (*docs.Index, error) {
			read, err := reference()
			if err != nil {
				return nil, err
			}
			return docs.NewIndex(read)
		}),
		examples: sync.OnceValues(func() (map[string][]docs.Variant, error) {
			read, err := reference()
			if err != nil {
				return nil, err
			}
			return read.Examples(s.Server.Address)
		}),
	}
}
