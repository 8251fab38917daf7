package engine

import (
	"math/rand/v2"

	"purser/payments/sandbox/persist"
)

// version is the version of the stored format. A newer version is refused: writing it
// back would lose fields that this program does not know.
const version = 2

// documentVersion is the version of an account stored as one document: the format
// before version 2, and the export format.
const documentVersion = 1

// Account holds the objects of one account. Tables read their rows lazily.
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

	tables       map[string]table
	source       persist.Source // nil when the whole account is in memory
	searched     map[search]bool
	window       timerWindow
	fired        int   // timers fired since the account was opened
	madeAtOpen   int64 // Made, when the account was opened
	replace      bool  // the next change replaces everything stored
	queueChanged bool  // deliveries were removed or postponed
	urls         BaseURLs
}

// head is the part of an account that every request reads.
type head struct {
	Version       int
	Offset        int64 // milliseconds by which the account's clock is ahead of the real one
	Made          int64 // how many objects were ever created; their sequence numbers
	Held          bool  // deliveries are paused
	Endpoints     map[string]*Endpoint
	Queued        int    // number of queued deliveries
	QueuedOutside int    // those of them that go to other programs
	NextDelivery  int64  // real time at which the first of them is due
	Portal        string // id of the default portal configuration
}

// BaseURLs are the addresses of an account. They are not stored: a server that moves
// shows its new address.
type BaseURLs struct {
	Site     string // base URL of the hosted pages, without a trailing slash
	Account  string // the account's id, such as "acct_1"
	Webhooks string // prefix of the server's own webhook endpoints
}

// Env is the environment of a change: the account's time, the randomness that new ids
// are drawn from, and the API request that caused it.
type Env struct {
	Now     Time
	Random  *rand.Rand
	Request RequestRef
}

// RequestRef is the API request that caused a change; empty for timers and hosted
// pages.
type RequestRef struct {
	ID             string
	IdempotencyKey string
}

// at is the environment of a timer: the same randomness at its due time, without a
// request.
func (env Env) at(t Time) Env {
	return Env{Now: t, Random: env.Random}
}

// Object is anything with an id that the API can show.
type Object interface {
	head() *Head
	render(a *Account) Doc
}

// Head is common to all objects. Nth orders objects that were created in the same
// second.
type Head struct {
	ID      string
	Nth     int64
	Created Time
}

func (h *Head) head() *Head { return h }

// newHead is the head of a new object with a random id.
func (a *Account) newHead(env Env, prefix string) Head {
	return a.numbered(env, env.token(prefix, idLength))
}

// numbered is the head of a new object with the given id.
func (a *Account) numbered(env Env, id string) Head {
	a.Made++
	return Head{ID: id, Nth: a.Made, Created: env.Now}
}

const (
	idLength      = 24
	sessionLength = 58 // as long as Stripe's; the id is the page's only secret
	tokenLength   = 40
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// token is as unguessable as env.Random: 24 characters are 142 bits.
func (env Env) token(prefix string, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = base62[env.Random.IntN(len(base62))]
	}
	return prefix + string(text)
}
