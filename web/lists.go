package web

import (
	"net/url"
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/views/component"
)

const (
	// pageSize is how many rows a page of a list has.
	pageSize = 50
	// maxOptions is how many credits or features a form lists. Others can still be
	// typed.
	maxOptions = 1000
)

// listing is the URL of a list with its active filters.
type listing struct {
	path   string
	filter url.Values
}

// listing reads the named filters from the query.
func (req *request) listing(path string, filters ...string) listing {
	l := listing{path: path, filter: url.Values{}}
	for _, name := range filters {
		if value := req.query(name); value != "" {
			l.filter.Set(name, value)
		}
	}
	return l
}

// file is the URL of the list's CSV export.
func (l listing) file() string { return listing{l.path + ".csv", l.filter}.at("", "") }

// at is the URL with one more parameter, or of the first page if the value is empty.
func (l listing) at(name, value string) string {
	query := url.Values{}
	for filter, values := range l.filter {
		query[filter] = values
	}
	if value != "" {
		query.Set(name, value)
	}
	if len(query) == 0 {
		return l.path
	}
	return l.path + "?" + query.Encode()
}

// pages links to the first page, unless this is it, and to older rows.
func (l listing) pages(name string, begun bool, older string) (p component.Pages) {
	if begun {
		p.Newer = l.at(name, "")
	}
	if older != "" {
		p.Older = l.at(name, older)
	}
	return p
}

// before reads the id that the page starts after.
func (req *request) before(prefix string) (store.Page, error) {
	p := store.Page{Limit: pageSize}
	if cursor := req.query("before"); cursor != "" {
		id, err := ids.Parse(prefix, cursor)
		if err != nil {
			return p, fault.New(fault.PathNotFound)
		}
		p.Before = id
	}
	return p, nil
}

// beforeSeq reads the sequence number that a wallet's page starts after.
func (req *request) beforeSeq() (int64, error) {
	cursor := req.query("before")
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || seq < 1 {
		return 0, fault.New(fault.PathNotFound)
	}
	return seq, nil
}

// lastID is the cursor of the next page, or "".
func lastID[T any](list []T, more bool, prefix string, id func(T) ids.ID) string {
	if !more {
		return ""
	}
	return id(list[len(list)-1]).Format(prefix)
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

func olderSeq(next int64) string {
	if next == 0 {
		return ""
	}
	return strconv.FormatInt(next, 10)
}
