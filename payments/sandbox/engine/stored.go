package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"purser/payments/sandbox/persist"
)

func newAccount(urls BaseURLs) *Account {
	a := &Account{head: head{Version: version, Endpoints: map[string]*Endpoint{}}, tables: map[string]table{}, searched: map[search]bool{}, urls: urls}
	a.Products = newTable[Product](a, kindProduct)
	a.Prices = newTable[Price](a, kindPrice)
	a.Customers = newTable[Customer](a, kindCustomer)
	a.Methods = newTable[Method](a, kindMethod)
	a.Sessions = newTable[Session](a, kindSession)
	a.Challenges = newTable[Challenge](a, kindChallenge)
	a.Subscriptions = newTable[Subscription](a, kindSubscription)
	a.Schedules = newTable[Schedule](a, kindSchedule)
	a.Invoices = newTable[Invoice](a, kindInvoice)
	a.Intents = newTable[Intent](a, kindIntent)
	a.Charges = newTable[Charge](a, kindCharge)
	a.Refunds = newTable[Refund](a, kindRefund)
	a.Disputes = newTable[Dispute](a, kindDispute)
	a.BalanceTransactions = newTable[BalanceTransaction](a, kindBalance)
	a.Portals = newTable[Portal](a, kindPortal)
	a.Configurations = newTable[Configuration](a, kindConfiguration)
	a.TestClocks = newTable[TestClock](a, kindTestClock)
	a.Events = newTable[Event](a, kindEvent)
	a.Answers = newTable[Answer](a, kindAnswer)
	a.Deliveries = newTable[Delivery](a, kindDelivery)
	a.timers = newTable[Timer](a, kindTimer)
	return a
}

func newTable[O any](a *Account, kind string) *Table[O] {
	t := &Table[O]{kind: kind, account: a, slots: map[string]*slot[O]{}}
	a.tables[kind] = t
	return t
}

// Wanted is what a session reads in its first statement: the objects with the keys
// and the earliest timers.
func Wanted(keys ...string) persist.Want {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !persist.Storable(key) })
	slices.Sort(keys)
	return persist.Want{Keys: slices.Compact(keys), Timers: kindTimer, Limit: timerBatch}
}

// OpenStored opens an account whose objects are read lazily. An account that is stored
// as one document is read whole, and rewritten as rows by the next change.
func OpenStored(s persist.Session, want persist.Want, urls BaseURLs) (*Account, error) {
	if s.Head == nil {
		a, err := Open(s.Legacy, urls)
		if err == nil {
			a.replace = s.Legacy != nil
			a.classifyEndpoints()
		}
		return a, err
	}
	a := newAccount(urls)
	if err := json.Unmarshal(s.Head, &a.head); err != nil {
		return nil, fmt.Errorf("sandbox: decode stored account: %w", err)
	}
	if a.Version != version {
		return nil, fmt.Errorf("sandbox: the stored account has version %d, this program supports %d", a.Version, version)
	}
	a.source, a.madeAtOpen = s.Source, a.Made
	return a, Guard(func() error {
		a.addRows(s.Rows)
		a.markMissing(want.Keys)
		a.window.extend(a, s.Timers)
		return nil
	})
}

// load reads an object and the objects it refers to.
func (a *Account) load(key string) {
	var rows []persist.Row
	if persist.Storable(key) {
		var err error
		rows, err = a.source.Load([]string{key})
		panicOnReadError(err)
	}
	a.addRows(rows)
	a.markMissing([]string{key})
}

// addRows adds rows to their tables. Sources return rows together with all that they
// refer to, so a reference that is not among them does not exist.
func (a *Account) addRows(rows []persist.Row) {
	for _, row := range rows {
		t := a.tables[row.Kind]
		if t == nil {
			panic(readError{fmt.Errorf("sandbox: row of unknown kind %s", row.Kind)})
		}
		t.add(row)
	}
	for _, row := range rows {
		a.markMissing(row.Refs)
	}
}

func (a *Account) markMissing(keys []string) {
	for _, key := range keys {
		if kind, id, _ := strings.Cut(key, "/"); a.tables[kind] != nil {
			a.tables[kind].markMissing(id)
		}
	}
}

// pruneEvery is the number of new objects between two deletions of expired ones.
const pruneEvery = 100

// Change returns what has to be stored: the changes since the account was opened.
func (a *Account) Change(env Env) (c persist.Change, err error) {
	err = Guard(func() error {
		if a.queueChanged {
			a.computeNextDelivery()
		}
		c = persist.Change{Replace: a.replace, ClockOffset: a.Offset}
		for _, kind := range slices.Sorted(maps.Keys(a.tables)) {
			a.tables[kind].changes(&c)
		}
		if a.Made/pruneEvery != a.madeAtOpen/pruneEvery {
			now := int64(env.Now)
			c.Prune = []persist.Prune{
				{Kind: kindEvent, Before: now, Keep: maxEvents, Unless: kindDelivery},
				{Kind: kindAnswer, Before: now, Keep: maxAnswers},
				{Kind: kindPortal, Before: now, Keep: maxPortals},
			}
		}
		if at, found := a.WakeAt(); found {
			c.WakeAt = max(at, 1)
		}
		return nil
	})
	if err != nil {
		return persist.Change{}, err
	}
	if c.Head, err = json.Marshal(&a.head, json.OmitZeroStructFields(true), json.Deterministic(true)); err != nil {
		return persist.Change{}, fmt.Errorf("sandbox: encode account: %w", err)
	}
	return c, nil
}

// snapshot is an account as one document.
type snapshot struct {
	Version int
	Offset  int64
	Made    int64

	Products            map[string]*Product
	Prices              map[string]*Price
	Customers           map[string]*Customer
	Methods             map[string]*Method
	Sessions            map[string]*Session
	Challenges          map[string]*Challenge
	Subscriptions       map[string]*Subscription
	Schedules           map[string]*Schedule
	Invoices            map[string]*Invoice
	Intents             map[string]*Intent
	Charges             map[string]*Charge
	Refunds             map[string]*Refund
	Disputes            map[string]*Dispute
	BalanceTransactions map[string]*BalanceTransaction `json:",omitempty"` // absent in older documents
	Portals             map[string]*Portal
	Configurations      map[string]*Configuration
	TestClocks          map[string]*TestClock

	Endpoints map[string]*Endpoint
	Events    map[string]*Event
	Queue     []*Delivery
	Held      bool

	Timers  []*Timer
	Answers map[string]*Answer
}

// Open reads an account from one document, or creates an empty one when there is none.
// The whole account is in memory.
func Open(document []byte, urls BaseURLs) (*Account, error) {
	a := newAccount(urls)
	if len(document) == 0 {
		return a, nil
	}
	var s snapshot
	if err := json.Unmarshal(document, &s, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("sandbox: decode account document: %w", err)
	}
	if s.Version != documentVersion {
		return nil, fmt.Errorf("sandbox: the account document has version %d, this program supports %d", s.Version, documentVersion)
	}
	a.Offset, a.Made, a.Held = s.Offset, s.Made, s.Held
	if s.Endpoints != nil {
		a.Endpoints = s.Endpoints
	}
	fill(a.Products, s.Products)
	fill(a.Prices, s.Prices)
	fill(a.Customers, s.Customers)
	fill(a.Methods, s.Methods)
	fill(a.Sessions, s.Sessions)
	fill(a.Challenges, s.Challenges)
	fill(a.Subscriptions, s.Subscriptions)
	fill(a.Schedules, s.Schedules)
	fill(a.Invoices, s.Invoices)
	fill(a.Intents, s.Intents)
	fill(a.Charges, s.Charges)
	fill(a.Refunds, s.Refunds)
	fill(a.Disputes, s.Disputes)
	fill(a.BalanceTransactions, s.BalanceTransactions)
	fill(a.Portals, s.Portals)
	fill(a.Configurations, s.Configurations)
	fill(a.TestClocks, s.TestClocks)
	fill(a.Events, s.Events)
	fill(a.Answers, s.Answers)
	for _, c := range a.Configurations.Loaded() {
		if c.Default {
			a.Portal = c.ID
		}
	}
	// Documents of the first version list timers and deliveries in order, without
	// sequence numbers.
	for _, d := range s.Queue {
		a.enqueue(d)
	}
	for _, timer := range s.Timers {
		a.addTimer(*timer)
	}
	return a, nil
}

func fill[O any](t *Table[O], all map[string]*O) {
	for _, o := range all {
		t.Put(o)
	}
}
