package engine

import (
	"fmt"
	"math/rand/v2"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// version is that of the stored form. A newer one was written by a newer
// program, which this one cannot replace without losing something.
const version = 1

// World is all that one account holds.
type World struct {
	Version int
	Offset  int64 // milliseconds by which this world's clock is ahead of the real one
	Made    int64 // how many objects were ever made; numbers them in that order

	Products       map[string]*Product
	Prices         map[string]*Price
	Customers      map[string]*Customer
	Methods        map[string]*Method
	Sessions       map[string]*Session
	Challenges     map[string]*Challenge
	Subscriptions  map[string]*Subscription
	Schedules      map[string]*Schedule
	Invoices       map[string]*Invoice
	Intents        map[string]*Intent
	Charges        map[string]*Charge
	Refunds        map[string]*Refund
	Disputes       map[string]*Dispute
	Portals        map[string]*Portal
	Configurations map[string]*Configuration
	TestClocks     map[string]*TestClock

	Endpoints map[string]*Endpoint
	Events    map[string]*Event
	Queue     []*Delivery // what is still to be delivered, in the order to do it
	Held      bool        // deliveries wait until they are let go

	Timers  []Timer // sorted
	Answers map[string]*Answer

	place Place
}

// Place is where a world is reached. It is not stored: a server that moves to
// another address shows the new one.
type Place struct {
	Site    string // the hosted pages lie under it; without a slash at the end
	Account string // the account's id, such as "acct_1"
}

// Moment is when something happens to a world, by its own clock, and the luck
// that names what comes of it.
type Moment struct {
	Now     Time
	Random  *rand.Rand
	Request RequestRef
}

// RequestRef is the API request that caused a change; empty for a timer or a
// person at a page.
type RequestRef struct {
	ID             string
	IdempotencyKey string
}

// at is the same luck at another instant, caused by nobody's request.
func (m Moment) at(t Time) Moment {
	return Moment{Now: t, Random: m.Random}
}

// Open reads a stored world, or makes an empty one where nothing is stored.
func Open(document []byte, place Place) (*World, error) {
	w := &World{
		Version:        version,
		Products:       map[string]*Product{},
		Prices:         map[string]*Price{},
		Customers:      map[string]*Customer{},
		Methods:        map[string]*Method{},
		Sessions:       map[string]*Session{},
		Challenges:     map[string]*Challenge{},
		Subscriptions:  map[string]*Subscription{},
		Schedules:      map[string]*Schedule{},
		Invoices:       map[string]*Invoice{},
		Intents:        map[string]*Intent{},
		Charges:        map[string]*Charge{},
		Refunds:        map[string]*Refund{},
		Disputes:       map[string]*Dispute{},
		Portals:        map[string]*Portal{},
		Configurations: map[string]*Configuration{},
		TestClocks:     map[string]*TestClock{},
		Endpoints:      map[string]*Endpoint{},
		Events:         map[string]*Event{},
		Answers:        map[string]*Answer{},
		place:          place,
	}
	if len(document) == 0 {
		return w, nil
	}
	// Looking for names that appear twice costs half of the time, and this package
	// has written none.
	if err := json.Unmarshal(document, w, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("sandbox: reading a stored world: %w", err)
	}
	if w.Version != version {
		return nil, fmt.Errorf("sandbox: the stored world has version %d, this program knows %d", w.Version, version)
	}
	return w, nil
}

// Document is the world as it is stored.
func (w *World) Document() ([]byte, error) {
	document, err := json.Marshal(w, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("sandbox: writing a world down: %w", err)
	}
	return document, nil
}

// Object is anything with an id that the API can show.
type Object interface{ head() *Head }

// Head is what every object starts with. Nth orders objects that were made in
// the same second.
type Head struct {
	ID      string
	Nth     int64
	Created Time
}

func (h *Head) head() *Head { return h }

// maxObjects bounds each kind. The world is one document, read and written
// whole, so past this a sandbox would only get slower.
const maxObjects = 10_000

// newHead names a new object of the kind that the map holds.
func newHead[T any](w *World, m Moment, kind map[string]T, prefix string) (Head, error) {
	return namedHead(w, m, kind, m.token(prefix, idLength))
}

func namedHead[T any](w *World, m Moment, kind map[string]T, id string) (Head, error) {
	if len(kind) >= maxObjects {
		return Head{}, invalid("", "This sandbox is full: it holds %d objects of this kind, the most that it can.", maxObjects)
	}
	return w.head(m, id), nil
}

// head is for objects that come along with another, which was counted.
func (w *World) head(m Moment, id string) Head {
	w.Made++
	return Head{ID: id, Nth: w.Made, Created: m.Now}
}

const (
	idLength      = 24
	sessionLength = 58 // as long as Stripe's; the id is all that opens the page
	tokenLength   = 40
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// token is unguessable when the moment's luck is: 24 characters are 142 bits.
func (m Moment) token(prefix string, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = base62[m.Random.IntN(len(base62))]
	}
	return prefix + string(text)
}
