package site

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
)

const (
	// PageSize is how many rows a page of a list has.
	PageSize = 50
	// MaxOptions is how many credits or features a form lists. Others can still be
	// typed.
	MaxOptions = 1000
)

// AtKey reads what the key in the path names. An invalid key is not queried: Postgres
// refuses some strings.
func AtKey[T any](req *Request, read func(context.Context, string) (T, error)) (found T, err error) {
	key, err := req.Param("key")
	if err != nil {
		return found, err
	}
	if !metering.IsKey(key) {
		return found, fault.New(fault.PathNotFound)
	}
	return read(req.Context, key)
}

// CreditOptions lists the credits to choose from.
func (req *Request) CreditOptions() (options []component.Option, err error) {
	credits, _, err := req.Tenant().Credits(req.Context, store.Page{Limit: MaxOptions})
	for _, c := range credits {
		options = append(options, component.Option{Value: c.Key, Text: c.Name + " (" + c.Key + ")"})
	}
	return options, err
}

// FeatureOptions lists the features to choose from.
func (req *Request) FeatureOptions() (options []component.Option, err error) {
	features, _, err := req.Tenant().Features(req.Context, store.Page{Limit: MaxOptions})
	for _, f := range features {
		options = append(options, component.Option{Value: f.Key, Text: f.Name + " (" + f.Key + ")"})
	}
	return options, err
}

// Listing is the URL of a list with its active filters.
type Listing struct {
	Path   string
	Filter url.Values
}

// Listing reads the named filters from the query.
func (req *Request) Listing(path string, filters ...string) Listing {
	l := Listing{Path: path, Filter: url.Values{}}
	for _, name := range filters {
		if value := req.Query(name); value != "" {
			l.Filter.Set(name, value)
		}
	}
	return l
}

// File is the URL of the list's CSV export.
func (l Listing) File() string { return Listing{l.Path + ".csv", l.Filter}.At("", "") }

// At is the URL with one more parameter, or of the first page if the value is empty.
func (l Listing) At(name, value string) string {
	query := url.Values{}
	maps.Copy(query, l.Filter)
	if value != "" {
		query.Set(name, value)
	}
	if len(query) == 0 {
		return l.Path
	}
	return l.Path + "?" + query.Encode()
}

// Without is the filter without some parameters.
func (l Listing) Without(names ...string) url.Values {
	kept := url.Values{}
	for name, values := range l.Filter {
		if !slices.Contains(names, name) {
			kept[name] = values
		}
	}
	return kept
}

// Pages links to the first page, unless this is it, and to older rows.
func (l Listing) Pages(name string, begun bool, older string) (p component.Pages) {
	p.Sorted = l.Filter.Get("sort") != ""
	if begun {
		p.Newer = l.At(name, "")
	}
	if older != "" {
		p.Older = l.At(name, older)
	}
	return p
}

// Before reads the id that the page starts after.
func (req *Request) Before(prefix string) (store.Page, error) {
	p := store.Page{Limit: PageSize}
	if cursor := req.Query("before"); cursor != "" {
		id, err := ids.Parse(prefix, cursor)
		if err != nil {
			return p, fault.New(fault.PathNotFound)
		}
		p.Before = id
	}
	return p, nil
}

// BeforeSeq reads the sequence number that a wallet's page starts after.
func (req *Request) BeforeSeq() (int64, error) {
	cursor := req.Query("before")
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || seq < 1 {
		return 0, fault.New(fault.PathNotFound)
	}
	return seq, nil
}

// LastID is the cursor of the next page, or "".
func LastID[T any](list []T, more bool, prefix string, id func(T) ids.ID) string {
	if !more {
		return ""
	}
	return id(list[len(list)-1]).Format(prefix)
}

// Pages builds the links of a list without filters. Cursors only point to older rows, so
// Newer links to the first page.
func Pages[T any](base, prefix string, p store.Page, list []T, more bool, id func(T) ids.ID) component.Pages {
	return Listing{Path: base}.Pages("before", !p.Before.IsZero(), LastID(list, more, prefix, id))
}

// OlderSeq is the cursor of the rows before a sequence number, or "" for 0.
func OlderSeq(next int64) string {
	if next == 0 {
		return ""
	}
	return strconv.FormatInt(next, 10)
}
