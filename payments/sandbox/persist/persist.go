package persist

import (
	"strings"
	"unicode/utf8"
)

// Row is one stored object. Index columns that do not apply are empty.
type Row struct {
	Key      string   // made by Key
	Kind     string   // the part of the key before the slash
	Nth      int64    // the order of creation within the application
	Customer string   // id of the customer
	Parent   string   // id of the object that it was created for
	Alias    string   // a second name: a page's token, a lookup key, a caller's reference
	LiveOf   string   // id of the object for which this one is open, such as the subscription of an unpaid invoice
	Timed    bool     // whether Due means anything
	Due      int64    // when a timer fires, a delivery may be tried, or an object expires
	Refs     []string // keys of the objects that are read together with this one
	Document []byte
}

// Key names an object of a kind.
func Key(kind, id string) string { return kind + "/" + id }

// Storable reports whether a key can be stored: Postgres texts are UTF-8 without NUL.
func Storable(key string) bool { return utf8.ValidString(key) && strings.IndexByte(key, 0) < 0 }

// Index is a column that rows of a kind can be looked up by.
type Index int

// The indexes. All has every row of a kind.
const (
	All Index = iota
	ByCustomer
	ByParent
	ByAlias
	ByLiveOf
)

// Page is a part of the rows of a kind, in the order of Nth.
type Page struct {
	Kind  string
	Index Index // All, ByCustomer or ByParent
	Value string
	Limit int

	Oldest bool  // ascending, from numbers above From; otherwise descending, from below it
	From   int64 // exclusive
}

// Source reads rows. Load, Lookup and Page also return every row that theirs refer
// to, directly or indirectly, in no particular order.
type Source interface {
	Load(keys []string) ([]Row, error)
	Lookup(kind string, index Index, values []string) ([]Row, error)
	Page(Page) ([]Row, error)
	// Earliest returns rows by Due and then Nth, after the given pair.
	Earliest(kind string, afterDue, afterNth int64, limit int) ([]Row, error)
	// Ready returns rows whose Due is not after the given time, by Nth, with what
	// they refer to.
	Ready(kind string, due int64, limit int) ([]Row, error)
	// FirstDue is the smallest Due of a kind, leaving out the given keys.
	FirstDue(kind string, except []string) (due int64, found bool, err error)
	// Everything returns all rows of the application.
	Everything() ([]Row, error)
}

// Want is what a session reads at once, together with the account itself.
type Want struct {
	Keys   []string // with what they refer to
	Timers string   // the kind of which the earliest rows are read
	Limit  int      // how many of them
}

// Session is an account while it is read or changed.
type Session struct {
	Head   []byte // nil for an account without any rows
	Legacy []byte // the whole account as one document, where it was never stored as rows
	Rows   []Row  // for Want.Keys
	Timers []Row  // for Want.Timers
	Source Source
}

// Change is what a session stores.
type Change struct {
	Head    []byte
	Replace bool // everything stored before is deleted first
	Rows    []Row
	Deleted []string
	Prune   []Prune

	ClockOffset int64 // how far the application's clock is ahead of the real one, in milliseconds
	WakeAt      int64 // the real time of the next timer or delivery; 0 for none
}

// Prune deletes rows of a kind that are expired or more than Keep, oldest
// first, unless they are the Parent of a row of kind Unless.
type Prune struct {
	Kind   string
	Before int64 // Due
	Keep   int
	Unless string
}
