package web

import (
	"net/url"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/views/component"
)

const (
	// catalogPageSize is the page size of catalog lists.
	catalogPageSize = 50
	// maxOptions is how many credits or features a form lists. Others can still be
	// typed.
	maxOptions = 1000
)

// page reads the list position from the query.
func (req *request) page(prefix string) (store.Page, error) {
	p := store.Page{Limit: catalogPageSize}
	if cursor := req.query("before"); cursor != "" {
		before, err := ids.Parse(prefix, cursor)
		if err != nil {
			return p, fault.New(fault.PathNotFound)
		}
		p.Before = before
	}
	return p, nil
}

// pages builds the links of a list. Cursors only point to older rows, so Newer links to
// the first page.
func pages[T any](base, prefix string, p store.Page, list []T, more bool, id func(T) ids.ID) component.Pages {
	var loaded component.Pages
	if !p.Before.IsZero() {
		loaded.Newer = base
	}
	if more {
		loaded.Older = base + "?" + url.Values{"before": {id(list[len(list)-1]).Format(prefix)}}.Encode()
	}
	return loaded
}
