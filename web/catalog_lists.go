package web

import (
	"net/url"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/views/component"
)

const (
	// catalogPage is how many rows a list of the catalog shows at once.
	catalogPage = 50
	// maxOptions is how many credits or features a form offers to choose from. What
	// is beyond can still be typed.
	maxOptions = 1000
)

// page is the part of a list that the address asks for.
func (v *visit) page(prefix string) (store.Page, error) {
	p := store.Page{Limit: catalogPage}
	if cursor := v.query("before"); cursor != "" {
		before, err := ids.Parse(prefix, cursor)
		if err != nil {
			return p, fault.New(fault.PathNotFound)
		}
		p.Before = before
	}
	return p, nil
}

// pages leads along a list. Rows are found by what they are older than, so Newer
// leads to the newest.
func pages[T any](base, prefix string, p store.Page, list []T, more bool, id func(T) ids.ID) component.Pages {
	var around component.Pages
	if !p.Before.IsZero() {
		around.Newer = base
	}
	if more {
		around.Older = base + "?" + url.Values{"before": {id(list[len(list)-1]).Format(prefix)}}.Encode()
	}
	return around
}
