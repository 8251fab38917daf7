package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"purser/billing/sandbox/persist"
)

// Table is the objects of one kind. Those that are stored elsewhere are read when
// they are first asked for, together with what they refer to.
type Table[O any] struct {
	kind  string
	w     *Account
	slots map[string]*slot[O]
}

// slot is what is known of an id: an object, or that there is none.
type slot[O any] struct {
	o      *O
	stored []byte // as it was read; nil for an object that is new
}

// entry is an object as a table keeps it.
type entry interface {
	key() (id string, nth int64)
	index() index
}

// index is the searchable part of an object.
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

// unreadable carries a storage error out of the engine, whose rules have no place
// for one. Guard turns it back into an error.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// Guard runs f, and returns the error of a read that failed inside of it.
func Guard(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			failed, ours := cause.(unreadable)
			if !ours {
				panic(cause)
			}
			err = failed.error
		}
	}()
	return f()
}

func readable(err error) {
	if err != nil {
		panic(unreadable{err})
	}
}

func asEntry[O any](o *O) entry { return any(o).(entry) }

// Get is the object with the id, or nil.
func (t *Table[O]) Get(id string) *O {
	known := t.slots[id]
	if known == nil {
		if id == "" || t.w.source == nil {
			return nil
		}
		t.w.load(persist.Key(t.kind, id))
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

// Loaded lists the objects that have been read or made, oldest first.
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

// By lists the objects with a value in an index, oldest first.
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

// One is the object with a value that no two objects share, or nil.
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

// search is a look-up in an index.
type search struct {
	kind  string
	of    persist.Index
	value string
}

// prefetch reads the objects with one of the values in an index.
func (t *Table[O]) prefetch(of persist.Index, values ...string) {
	if t.w.source == nil {
		return
	}
	values = slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		at := search{t.kind, of, value}
		known := t.w.searched[at] || !persist.Storable(value)
		t.w.searched[at] = true
		return known
	})
	if len(values) == 0 {
		return
	}
	rows, err := t.w.source.Lookup(t.kind, of, values)
	readable(err)
	t.w.keep(rows)
}

// table is what the world does with tables of any kind.
type table interface {
	add(row persist.Row)
	miss(id string)
	changes(c *persist.Change)
	adopt(w *Account)
}

// add takes a stored row in, unless the object is known: what was changed since it
// was read must not be lost.
func (t *Table[O]) add(row persist.Row) {
	id := row.Key[len(t.kind)+1:]
	if t.slots[id] != nil {
		return
	}
	o := new(O)
	// Names that appear twice cost time to look for, and this package writes none.
	if err := json.Unmarshal(row.Document, o, jsontext.AllowDuplicateNames(true)); err != nil {
		panic(unreadable{fmt.Errorf("sandbox: reading %s: %w", row.Key, err)})
	}
	t.slots[id] = &slot[O]{o: o, stored: row.Document}
}

func (t *Table[O]) miss(id string) {
	if t.slots[id] == nil {
		t.slots[id] = &slot[O]{}
	}
}

// changes adds what has to be stored: objects that are new or differ from what was
// read, and those that were deleted.
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
		panic("sandbox: an object that is not JSON: " + err.Error())
	}
	refs := slices.DeleteFunc(i.refs, func(key string) bool { return key[len(key)-1] == '/' })
	slices.Sort(refs)
	return persist.Row{
		Key: persist.Key(t.kind, id), Kind: t.kind, Nth: nth, Customer: i.customer, Parent: i.parent, Alias: i.alias, LiveOf: i.liveOf,
		Timed: i.timed, Due: i.due, Refs: slices.Compact(refs), Document: document,
	}
}

func (t *Table[O]) adopt(w *Account) { t.w = w }

func (t *Table[O]) all() map[string]*O {
	all := map[string]*O{}
	for id, known := range t.slots {
		if known.o != nil {
			all[id] = known.o
		}
	}
	return all
}
