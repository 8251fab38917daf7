package engine

import (
	"math/rand/v2"

	"purser/billing/sandbox/persist"
)

// version is that of the stored form. A newer one was written by a newer
// program, which this one cannot replace without losing something.
const version = 2

// documentVersion is that of an account as one document, which is how accounts were
// stored before version 2 and how they are exported.
const documentVersion = 1

// Account is all that one account holds. Tables are read as far as they are needed.
type Account struct {
	head
	Products            *Table[Product]
	Prices              *Table[Price]
	Customers           *Table[Customer]
	Methods             *Table[Method]
	Sessions            *Table[Session]
	Challenges          *Table[Challenge]
	Subscriptions       *Table[Subscription]
	Schedules           *Table[Schedule]
	Invoices            *Table[Invoice]
	Intents             *Table[Intent]
	Charges             *Table[Charge]
	Refunds             *Table[Refund]
	Disputes            *Table[Dispute]
	BalanceTransactions *Table[BalanceTransaction]
	Portals             *Table[Portal]
	Configurations      *Table[Configuration]
	TestClocks          *Table[TestClock]
	Events              *Table[Event]
	Answers             *Table[Answer]
	Deliveries          *Table[Delivery]
	timers              *Table[Timer]

	tables   map[string]table
	source   persist.Source // nil for an account that is in memory as a whole
	searched map[search]bool
	window   timerWindow
	fired    int   // timers, since the account was opened
	swept    int64 // Made, when the account was opened
	replace  bool  // what is stored is replaced as a whole
	touched  bool  // deliveries were removed or postponed
	place    BaseURLs
}

// head is what every request reads of an account.
type head struct {
	Version       int
	Offset        int64 // milliseconds by which this world's clock is ahead of the real one
	Made          int64 // how many objects were ever made; numbers them in that order
	Held          bool  // deliveries wait until they are let go
	Endpoints     map[string]*Endpoint
	Queued        int    // how many deliveries are waiting
	QueuedOutside int    // those to other programs among them
	NextDelivery  int64  // the real time at which the first of them may be tried
	Portal        string // the default configuration of portals
}

// BaseURLs is where a world is reached. It is not stored: a server that moves to
// another address shows the new one.
type BaseURLs struct {
	Site     string // the hosted pages lie under it; without a slash at the end
	Account  string // the account's id, such as "acct_1"
	Webhooks string // the server's own endpoints begin with it
}

// Clock is when something happens to a world, by its own clock, and the luck
// that names what comes of it.
type Clock struct {
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
func (m Clock) at(t Time) Clock {
	return Clock{Now: t, Random: m.Random}
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

// newHead names a new object.
func (w *Account) newHead(m Clock, prefix string) Head {
	return w.numbered(m, m.token(prefix, idLength))
}

// numbered is the head of an object that is made now.
func (w *Account) numbered(m Clock, id string) Head {
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
func (m Clock) token(prefix string, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = base62[m.Random.IntN(len(base62))]
	}
	return prefix + string(text)
}
