package engine

import (
	"math"
	"slices"

	"purser/payments/sandbox/persist"
)

// Page is the requested part of a list.
type Page struct {
	Limit  int
	After  string // the id that the page comes after
	Before string // the id that the page comes before
}

// TimeRange filters by creation time; a nil bound is open.
type TimeRange struct {
	After, From, Before, To *Time
}

// Contains reports whether t is in the range.
func (r TimeRange) Contains(t Time) bool {
	return (r.After == nil || t > *r.After) && (r.From == nil || t >= *r.From) &&
		(r.Before == nil || t < *r.Before) && (r.To == nil || t <= *r.To)
}

// Filter selects the objects of a list. Customer and Parent are index lookups; Keep
// filters the result, and nil keeps all.
type Filter[O any] struct {
	Customer string
	Parent   string
	Keep     func(*O) bool
}

// matches reports whether the object belongs to the list.
func (f Filter[O]) matches(o *O) bool {
	i := asEntry(o).index()
	return (f.Customer == "" || i.customer == f.Customer) && (f.Parent == "" || i.parent == f.Parent) && (f.Keep == nil || f.Keep(o))
}

// listBatch is how many objects are read at a time while the filter needs more.
const listBatch = 100

// maxListed is how many bytes of stored objects a list reads while it looks for those that
// match its filter.
const maxListed = 8 << 20

// List returns a page of the objects that match the filter, newest first, and whether
// there are more in the direction of the page.
func List[O any](t *Table[O], page Page, filter Filter[O]) (found []*O, more bool, err error) {
	from, oldest := int64(math.MaxInt64), false
	if page.After != "" {
		if from, err = numberOf(t, "starting_after", page.After); err != nil {
			return nil, false, err
		}
	}
	if page.Before != "" {
		oldest = true
		if from, err = numberOf(t, "ending_before", page.Before); err != nil {
			return nil, false, err
		}
	}
	err = t.account.readPages(t.kind, from, oldest, page.Limit, filter.Customer, filter.Parent, func(keys []string) bool {
		for _, key := range keys {
			if o := t.slots[key[len(t.kind)+1:]].o; o != nil && filter.matches(o) {
				found = append(found, o)
			}
		}
		return len(found) <= page.Limit
	})
	if err != nil {
		return nil, false, err
	}
	// Objects that are not stored yet are newer than all stored ones.
	for _, o := range t.Loaded() {
		id, nth := asEntry(o).key()
		if t.slots[id].stored == nil && (oldest && nth > from || !oldest && nth < from) && filter.matches(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *O) int { return int(number(b) - number(a)) })
	if len(found) <= page.Limit {
		return found, false, nil
	}
	if oldest {
		return found[len(found)-page.Limit:], true, nil
	}
	return found[:page.Limit], true, nil
}

// readPages reads stored rows in order until none are left or wanted returns false. They stay
// in memory, so it refuses to read without end.
func (a *Account) readPages(kind string, from int64, oldest bool, limit int, customer, parent string, wanted func(keys []string) bool) error {
	if a.source == nil {
		return nil
	}
	page := persist.Page{Kind: kind, From: from, Oldest: oldest, Limit: limit + 1}
	switch {
	case parent != "":
		page.Index, page.Value = persist.ByParent, parent
	case customer != "":
		page.Index, page.Value = persist.ByCustomer, customer
	}
	if !persist.Storable(page.Value) {
		return nil
	}
	for read := 0; ; {
		rows, err := a.source.Page(page)
		panicOnReadError(err)
		for _, row := range rows {
			read += len(row.Document)
		}
		a.addRows(rows)
		// Drop the rows that were read as references.
		rows = slices.DeleteFunc(rows, func(r persist.Row) bool {
			return r.Kind != kind || oldest && r.Nth <= page.From || !oldest && r.Nth >= page.From ||
				page.Index == persist.ByParent && r.Parent != page.Value || page.Index == persist.ByCustomer && r.Customer != page.Value
		})
		slices.SortFunc(rows, func(a, b persist.Row) int {
			if oldest {
				return int(a.Nth - b.Nth)
			}
			return int(b.Nth - a.Nth)
		})
		rows = rows[:min(len(rows), page.Limit)]
		keys := make([]string, len(rows))
		for i, row := range rows {
			keys[i] = row.Key
		}
		if !wanted(keys) || len(rows) < page.Limit {
			return nil
		}
		if read > maxListed {
			return invalid("", "This account has too many objects to search through. Use a narrower filter, such as `customer`.")
		}
		page.From, page.Limit = rows[len(rows)-1].Nth, listBatch
	}
}

func numberOf[O any](t *Table[O], param, id string) (int64, error) {
	o := t.Get(id)
	if o == nil {
		return 0, missing("object", param, id)
	}
	return number(o), nil
}
