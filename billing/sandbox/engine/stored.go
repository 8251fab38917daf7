package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"purser/billing/sandbox/persist"
)

func newWorld(place BaseURLs) *Account {
	w := &Account{head: head{Version: version, Endpoints: map[string]*Endpoint{}}, tables: map[string]table{}, searched: map[search]bool{}, place: place}
	w.Products = newTable[Product](w, kindProduct)
	w.Prices = newTable[Price](w, kindPrice)
	w.Customers = newTable[Customer](w, kindCustomer)
	w.Methods = newTable[Method](w, kindMethod)
	w.Sessions = newTable[Session](w, kindSession)
	w.Challenges = newTable[Challenge](w, kindChallenge)
	w.Subscriptions = newTable[Subscription](w, kindSubscription)
	w.Schedules = newTable[Schedule](w, kindSchedule)
	w.Invoices = newTable[Invoice](w, kindInvoice)
	w.Intents = newTable[Intent](w, kindIntent)
	w.Charges = newTable[Charge](w, kindCharge)
	w.Refunds = newTable[Refund](w, kindRefund)
	w.Disputes = newTable[Dispute](w, kindDispute)
	w.BalanceTransactions = newTable[BalanceTransaction](w, kindBalance)
	w.Portals = newTable[Portal](w, kindPortal)
	w.Configurations = newTable[Configuration](w, kindConfiguration)
	w.TestClocks = newTable[TestClock](w, kindTestClock)
	w.Events = newTable[Event](w, kindEvent)
	w.Answers = newTable[Answer](w, kindAnswer)
	w.Deliveries = newTable[Delivery](w, kindDelivery)
	w.timers = newTable[Timer](w, kindTimer)
	return w
}

func newTable[O any](w *Account, kind string) *Table[O] {
	t := &Table[O]{kind: kind, w: w, slots: map[string]*slot[O]{}}
	w.tables[kind] = t
	return t
}

// Wanted is what a session should read at once: the objects with the keys, and the
// timers that come next.
func Wanted(keys ...string) persist.Want {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !persist.Storable(key) })
	slices.Sort(keys)
	return persist.Want{Keys: slices.Compact(keys), Timers: kindTimer, Limit: timersRead}
}

// OpenStored opens an account whose objects are read as they are needed. One that was
// stored as a document is read whole, and rewritten as rows with the next change.
func OpenStored(s persist.Session, want persist.Want, place BaseURLs) (*Account, error) {
	if s.Head == nil {
		w, err := Open(s.Legacy, place)
		if err == nil {
			w.replace = s.Legacy != nil
			w.classifyEndpoints()
		}
		return w, err
	}
	w := newWorld(place)
	if err := json.Unmarshal(s.Head, &w.head); err != nil {
		return nil, fmt.Errorf("sandbox: reading a stored account: %w", err)
	}
	if w.Version != version {
		return nil, fmt.Errorf("sandbox: the stored account has version %d, this program knows %d", w.Version, version)
	}
	w.source, w.swept = s.Source, w.Made
	return w, Guard(func() error {
		w.keep(s.Rows)
		w.missing(want.Keys)
		w.window.extend(w, s.Timers)
		return nil
	})
}

// load reads an object and everything it refers to.
func (w *Account) load(key string) {
	var rows []persist.Row
	if persist.Storable(key) {
		var err error
		rows, err = w.source.Load([]string{key})
		readable(err)
	}
	w.keep(rows)
	w.missing([]string{key})
}

// keep takes rows in. All that they refer to has been read with them, so what is not
// among them does not exist.
func (w *Account) keep(rows []persist.Row) {
	for _, row := range rows {
		t := w.tables[row.Kind]
		if t == nil {
			panic(unreadable{fmt.Errorf("sandbox: a row of the unknown kind %s", row.Kind)})
		}
		t.add(row)
	}
	for _, row := range rows {
		w.missing(row.Refs)
	}
}

func (w *Account) missing(keys []string) {
	for _, key := range keys {
		if kind, id, _ := strings.Cut(key, "/"); w.tables[kind] != nil {
			w.tables[kind].miss(id)
		}
	}
}

// sweepEvery is after how many new objects expired ones are deleted.
const sweepEvery = 100

// Change is what has to be stored of what happened since the account was opened.
func (w *Account) Change(m Clock) (c persist.Change, err error) {
	err = Guard(func() error {
		if w.touched {
			w.findNextDelivery()
		}
		c = persist.Change{Replace: w.replace, ClockOffset: w.Offset}
		for _, kind := range slices.Sorted(maps.Keys(w.tables)) {
			w.tables[kind].changes(&c)
		}
		if w.Made/sweepEvery != w.swept/sweepEvery {
			now := int64(m.Now)
			c.Prune = []persist.Prune{
				{Kind: kindEvent, Before: now, Keep: maxEvents, Unless: kindDelivery},
				{Kind: kindAnswer, Before: now, Keep: maxAnswers},
				{Kind: kindPortal, Before: now, Keep: maxPortals},
			}
		}
		if at, found := w.WakeAt(); found {
			c.WakeAt = max(at, 1)
		}
		return nil
	})
	if err != nil {
		return persist.Change{}, err
	}
	if c.Head, err = json.Marshal(&w.head, json.OmitZeroStructFields(true), json.Deterministic(true)); err != nil {
		return persist.Change{}, fmt.Errorf("sandbox: writing an account: %w", err)
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
	BalanceTransactions map[string]*BalanceTransaction `json:",omitempty"` // accounts of before have none
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

// Open reads an account from one document, or makes an empty one from nothing. All of
// it is in memory.
func Open(document []byte, place BaseURLs) (*Account, error) {
	w := newWorld(place)
	if len(document) == 0 {
		return w, nil
	}
	var s snapshot
	if err := json.Unmarshal(document, &s, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("sandbox: reading a stored world: %w", err)
	}
	if s.Version != documentVersion {
		return nil, fmt.Errorf("sandbox: the stored world has version %d, this program knows %d", s.Version, documentVersion)
	}
	w.Offset, w.Made, w.Held = s.Offset, s.Made, s.Held
	if s.Endpoints != nil {
		w.Endpoints = s.Endpoints
	}
	fill(w.Products, s.Products)
	fill(w.Prices, s.Prices)
	fill(w.Customers, s.Customers)
	fill(w.Methods, s.Methods)
	fill(w.Sessions, s.Sessions)
	fill(w.Challenges, s.Challenges)
	fill(w.Subscriptions, s.Subscriptions)
	fill(w.Schedules, s.Schedules)
	fill(w.Invoices, s.Invoices)
	fill(w.Intents, s.Intents)
	fill(w.Charges, s.Charges)
	fill(w.Refunds, s.Refunds)
	fill(w.Disputes, s.Disputes)
	fill(w.BalanceTransactions, s.BalanceTransactions)
	fill(w.Portals, s.Portals)
	fill(w.Configurations, s.Configurations)
	fill(w.TestClocks, s.TestClocks)
	fill(w.Events, s.Events)
	fill(w.Answers, s.Answers)
	for _, c := range w.Configurations.Loaded() {
		if c.Default {
			w.Portal = c.ID
		}
	}
	// Documents of the first version give timers and deliveries no number, and list
	// them in order.
	for _, d := range s.Queue {
		w.enqueue(d)
	}
	for _, timer := range s.Timers {
		w.addTimer(*timer)
	}
	return w, nil
}

func fill[O any](t *Table[O], all map[string]*O) {
	for _, o := range all {
		t.Put(o)
	}
}

// Snapshot is the account as one document. Everything must be in memory.
func (w *Account) Snapshot() ([]byte, error) {
	s := snapshot{
		Version: documentVersion, Offset: w.Offset, Made: w.Made, Held: w.Held, Endpoints: w.Endpoints,
		Products: w.Products.all(), Prices: w.Prices.all(), Customers: w.Customers.all(), Methods: w.Methods.all(), Sessions: w.Sessions.all(),
		Challenges: w.Challenges.all(), Subscriptions: w.Subscriptions.all(), Schedules: w.Schedules.all(), Invoices: w.Invoices.all(),
		Intents: w.Intents.all(), Charges: w.Charges.all(), Refunds: w.Refunds.all(), Disputes: w.Disputes.all(), Portals: w.Portals.all(),
		BalanceTransactions: w.BalanceTransactions.all(),
		Configurations:      w.Configurations.all(), TestClocks: w.TestClocks.all(), Events: w.Events.all(), Answers: w.Answers.all(),
		Queue: w.Deliveries.Loaded(),
	}
	for _, timer := range w.window.sorted {
		s.Timers = append(s.Timers, &timer)
	}
	document, err := json.Marshal(&s, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("sandbox: writing a world down: %w", err)
	}
	return document, nil
}

// Export is the account as one document, read as a whole.
func (w *Account) Export() (document []byte, err error) {
	err = Guard(func() error {
		if w.source != nil {
			rows, err := w.source.Everything()
			readable(err)
			w.keep(rows)
			w.window.all(w)
		}
		document, err = w.Snapshot()
		return err
	})
	return document, err
}

// Import makes the account what a document says.
func (w *Account) Import(document []byte) error {
	read, err := Open(document, w.place)
	if err == nil {
		read.replace = true
		*w = *read
		for _, t := range w.tables {
			t.adopt(w)
		}
	}
	return err
}
