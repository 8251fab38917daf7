package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"purser/payments/sandbox/persist"
)

// Table holds the objects of one kind. Stored objects are read on first use, together
// with the objects that they refer to.
type Table[O any] struct {
	kind    string
	account *Account
	slots   map[string]*slot[O]
}

// slot caches an id: its object, or that none exists.
type slot[O any] struct {
	o      *O
	stored []byte // the document as read; nil for a new object
}

// entry is an object that a Table can hold.
type entry interface {
	key() (id string, nth int64)
	index() index
}

// index holds the values of an object's index columns.
type index struct {
	customer, parent, alias, liveOf string
	timed                           bool
	due                             int64
	refs                            []string
}

func (i index) value(of persist.Index) string {
	switch of {
	case persist.ByCustomer:
		return i.customer
	case persist.ByParent:
		return i.parent
	case persist.ByAlias:
		return i.alias
	case persist.ByLiveOf:
		return i.liveOf
	}
	return ""
}

// readError carries a storage error out of the engine as a panic: the rules return
// refusals only. Guard turns it back into an error.
type readError struct{ error }

func (u readError) Unwrap() error { return u.error }

// Guard runs f and returns the error of a storage read that failed inside it.
func Guard(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			failed, ours := cause.(readError)
			if !ours {
				panic(cause)
			}
			err = failed.error
		}
	}()
	return f()
}

func panicOnReadError(err error) {
	if err != nil {
		panic(readError{err})
	}
}

func asEntry[O any](o *O) entry { return any(o).(entry) }

// Get returns the object with the id, or nil.
func (t *Table[O]) Get(id string) *O {
	known := t.slots[id]
	if known == nil {
		if id == "" || t.account.source == nil {
			return nil
		}
		t.account.load(persist.Key(t.kind, id))
		known = t.slots[id]
	}
	return known.o
}

// Put adds an object, or replaces the one with its id.
func (t *Table[O]) Put(o *O) {
	id, _ := asEntry(o).key()
	if known := t.slots[id]; known != nil {
		known.o = o
		return
	}
	t.slots[id] = &slot[O]{o: o}
}

// Delete removes an object.
func (t *Table[O]) Delete(id string) {
	if known := t.slots[id]; known != nil {
		known.o = nil
	}
}

// Loaded lists the objects in memory, oldest first.
func (t *Table[O]) Loaded() []*O {
	var all []*O
	for _, known := range t.slots {
		if known.o != nil {
			all = append(all, known.o)
		}
	}
	slices.SortFunc(all, func(a, b *O) int { return cmp.Compare(number(a), number(b)) })
	return all
}

func number[O any](o *O) int64 {
	_, nth := asEntry(o).key()
	return nth
}

// By lists the objects with the value in an index column, oldest first.
func (t *Table[O]) By(of persist.Index, value string) []*O {
	if value == "" {
		return nil
	}
	t.prefetch(of, value)
	return t.loadedBy(of, value)
}

func (t *Table[O]) loadedBy(of persist.Index, value string) []*O {
	return slices.DeleteFunc(t.Loaded(), func(o *O) bool { return asEntry(o).index().value(of) != value })
}

// One returns the object with a unique value in an index column, or nil.
func (t *Table[O]) One(of persist.Index, value string) *O {
	if value == "" {
		return nil
	}
	found := t.loadedBy(of, value)
	if len(found) == 0 {
		found = t.By(of, value)
	}
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// search is an index lookup.
type search struct {
	kind  string
	of    persist.Index
	value string
}

// prefetch reads the objects with one of the values in an index column. Values that
// were looked up before are skipped.
func (t *Table[O]) prefetch(of persist.Index, values ...string) {
	if t.account.source == nil {
		return
	}
	values = slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		at := search{t.kind, of, value}
		known := t.account.searched[at] || !persist.Storable(value)
		t.account.searched[at] = true
		return known
	})
	if len(values) == 0 {
		return
	}
	rows, err := t.account.source.Lookup(t.kind, of, values)
	panicOnReadError(err)
	t.account.addRows(rows)
}

// table is a Table of any kind.
type table interface {
	add(row persist.Row)
	markMissing(id string)
	changes(c *persist.Change)
	object(id string) (Object, bool)
}

// add decodes a stored row, unless its object is loaded already: changes in memory
// must not be overwritten.
func (t *Table[O]) add(row persist.Row) {
	id := row.Key[len(t.kind)+1:]
	if t.slots[id] != nil {
		return
	}
	o := new(O)
	// Checking for duplicate names costs time, and this package writes none.
	if err := json.Unmarshal(row.Document, o, jsontext.AllowDuplicateNames(true)); err != nil {
		panic(readError{fmt.Errorf("sandbox: decode %s: %w", row.Key, err)})
	}
	t.slots[id] = &slot[O]{o: o, stored: row.Document}
}

func (t *Table[O]) markMissing(id string) {
	if t.slots[id] == nil {
		t.slots[id] = &slot[O]{}
	}
}

// changes adds the rows to store: objects that are new or differ from what was read,
// and the keys of deleted ones.
func (t *Table[O]) changes(c *persist.Change) {
	for _, o := range t.Loaded() {
		id, _ := asEntry(o).key()
		if row := t.row(o); string(row.Document) != string(t.slots[id].stored) {
			c.Rows = append(c.Rows, row)
		}
	}
	for id, known := range t.slots {
		if known.o == nil && known.stored != nil {
			c.Deleted = append(c.Deleted, persist.Key(t.kind, id))
		}
	}
}

func (t *Table[O]) row(o *O) persist.Row {
	e := asEntry(o)
	id, nth := e.key()
	i := e.index()
	document, err := json.Marshal(o, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		panic("sandbox: encode object: " + err.Error())
	}
	refs := slices.DeleteFunc(i.refs, func(key string) bool { return key[len(key)-1] == '/' })
	slices.Sort(refs)
	return persist.Row{
		Key: persist.Key(t.kind, id), Kind: t.kind, Nth: nth, Customer: i.customer, Parent: i.parent, Alias: i.alias, LiveOf: i.liveOf,
		Timed: i.timed, Due: i.due, Refs: slices.Compact(refs), Document: document,
	}
}

// object is Get for objects of any kind that the API can show.
func (t *Table[O]) object(id string) (o Object, found bool) {
	if known := t.Get(id); known != nil {
		o, found = any(known).(Object)
	}
	return o, found
}
