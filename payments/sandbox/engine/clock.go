package engine

import (
	"cmp"
	"slices"

	"purser/payments/sandbox/persist"
)

// Timer is a scheduled change of an object. Timers are never cancelled: when one fires,
// the object's state decides whether there is anything to do.
type Timer struct {
	At     Time
	Kind   timerKind
	Object string
	Nth    int64
}

type timerKind int

// The kinds, in the order in which timers of the same instant fire. A pending update
// expires before its period ends; a renewal follows everything due in the old period.
const (
	sessionExpires timerKind = iota
	pendingExpires
	incompleteExpires
	cancelDue
	periodEnds
	draftEnds
	retryDue
	debitEnds
	refundEnds
	disputeOpens
)

// maxTimerKinds is more than there are kinds.
const maxTimerKinds = 16

// due orders timers by instant and then by kind.
func (t *Timer) due() int64 { return int64(t.At)*maxTimerKinds + int64(t.Kind) }

func compareTimers(a, b Timer) int {
	return cmp.Or(cmp.Compare(a.due(), b.due()), cmp.Compare(a.Nth, b.Nth))
}

// timerBatch is how many stored timers are read at a time.
const timerBatch = 2

// timerWindow holds the earliest timers: all new ones, and the stored ones up to an
// edge. More stored timers may follow the edge.
type timerWindow struct {
	sorted []Timer
	edge   Timer
	more   bool
}

func (a *Account) setTimer(at Time, kind timerKind, o Object) {
	a.addTimer(Timer{At: at, Kind: kind, Object: o.head().ID})
}

// addTimer adds a timer. It gets a sequence number, so that timers of the same instant
// and kind fire in the order in which they were set.
func (a *Account) addTimer(timer Timer) {
	if timer.Nth == 0 {
		a.Made++
		timer.Nth = a.Made
	}
	a.timers.Put(&timer)
	a.window.insert(timer)
}

func (n *timerWindow) insert(timer Timer) {
	i, _ := slices.BinarySearchFunc(n.sorted, timer, compareTimers)
	n.sorted = slices.Insert(n.sorted, i, timer)
}

// extend adds the stored timers that follow the edge.
func (n *timerWindow) extend(a *Account, rows []persist.Row) {
	a.addRows(rows)
	n.more = len(rows) >= timerBatch
	for _, row := range rows {
		timer := a.timers.Get(row.Key[len(kindTimer)+1:])
		n.insert(*timer)
		n.edge = *timer
	}
}

// next is the earliest timer, or nil.
func (n *timerWindow) next(a *Account) *Timer {
	for n.more && (len(n.sorted) == 0 || compareTimers(n.sorted[0], n.edge) > 0) {
		rows, err := a.source.Earliest(kindTimer, n.edge.due(), n.edge.Nth, timerBatch)
		panicOnReadError(err)
		n.extend(a, rows)
	}
	if len(n.sorted) == 0 {
		return nil
	}
	return &n.sorted[0]
}

// Next returns the time of the earliest timer.
func (a *Account) Next() (Time, bool) {
	timer := a.window.next(a)
	if timer == nil {
		return 0, false
	}
	return timer.At, true
}

// maxFired is how many timers fire in one transaction: a long clock advance must not
// hold the account's lock, or its changes in memory, all at once.
const maxFired = 50

// IsTimerDue reports whether a timer is due at the real time.
func (a *Account) IsTimerDue(realNow int64) bool {
	at, timed := a.Next()
	return timed && int64(at)*1000 <= a.Now(realNow)
}

// Fire fires the timers that are due, each at its own time. It reports whether all have
// fired: beyond maxFired since the account was opened, the rest stays for later.
func (a *Account) Fire(env Env) (done bool) {
	for next := a.window.next(a); next != nil && next.At <= env.Now; next = a.window.next(a) {
		if a.fired >= maxFired && a.source != nil {
			return false
		}
		a.fired++
		timer := *next
		a.window.sorted = slices.Delete(a.window.sorted, 0, 1)
		id, _ := timer.key()
		a.timers.Delete(id)
		a.fire(env.at(timer.At), timer)
	}
	return true
}

func (a *Account) fire(env Env, timer Timer) {
	id := timer.Object
	switch timer.Kind {
	case sessionExpires:
		a.sessionExpires(env, a.Sessions.Get(id))
	case pendingExpires:
		a.pendingExpires(env, a.Subscriptions.Get(id))
	case incompleteExpires:
		a.incompleteExpires(env, a.Subscriptions.Get(id))
	case cancelDue:
		a.cancelDue(env, a.Subscriptions.Get(id))
	case periodEnds:
		a.periodEnds(env, a.Subscriptions.Get(id))
	case draftEnds:
		a.draftEnds(env, a.Invoices.Get(id))
	case retryDue:
		a.retryDue(env, a.Invoices.Get(id))
	case debitEnds:
		a.debitEnds(env, a.Intents.Get(id))
	case refundEnds:
		a.refundEnds(env, a.Refunds.Get(id))
	case disputeOpens:
		a.disputeOpens(env, a.Charges.Get(id))
	}
}

// Now is the account's time at a real time; both are in milliseconds.
func (a *Account) Now(realNow int64) int64 { return realNow + a.Offset }

// MoveClock sets the account's clock to the given time at a real time. It never turns
// the clock back.
func (a *Account) MoveClock(realNow, to int64) {
	if to > a.Now(realNow) {
		a.Offset = to - realNow
	}
}

// WakeAt is the real time at which the next timer or delivery is due.
func (a *Account) WakeAt() (realTime int64, found bool) {
	realTime, found = a.nextDelivery()
	if at, waiting := a.Next(); waiting {
		if due := int64(at)*1000 - a.Offset; !found || due < realTime {
			realTime, found = due, true
		}
	}
	return realTime, found
}

// TestClock is Stripe's test clock object. An account has one clock, and every test
// clock shows it.
type TestClock struct {
	Head
	Name   string
	Frozen Time
}

// isAdvancing reports whether timers up to the clock's time have still to fire.
func (a *Account) isAdvancing(c *TestClock) bool {
	next, timed := a.Next()
	return timed && next <= c.Frozen
}

// CreateTestClock creates a test clock that shows the account's time.
func (a *Account) CreateTestClock(env Env, name string) *TestClock {
	clock := &TestClock{Head: a.newHead(env, "clock_"), Name: name, Frozen: env.Now}
	a.TestClocks.Put(clock)
	return clock
}

const (
	// frozenSlack is how far in the past a new test clock may start: it then starts now.
	frozenSlack = hour
	// longestStart is how far in the future it may start.
	longestStart = 5 * 365 * day
)

// CheckFrozen refuses a test clock that would start where the account's clock cannot go.
func CheckFrozen(env Env, at Time) error {
	if at < env.Now-frozenSlack || at > env.Now+longestStart {
		return invalid("frozen_time", "The sandbox has one clock for the whole application, and it only goes forward: it shows %d, and a test clock can begin there or up to five years later.", env.Now)
	}
	return nil
}

// CheckAdvance refuses an advance that Stripe's test clocks refuse: backwards,
// or further than two intervals of the shortest subscription.
func (a *Account) CheckAdvance(env Env, to Time) error {
	if to <= env.Now {
		return invalid("frozen_time", "The clock can only be advanced: %d is not after its current time %d.", to, env.Now)
	}
	shortest := to
	_, _, err := List(a.Subscriptions, Page{Limit: 1}, Filter[Subscription]{Keep: func(s *Subscription) bool {
		if !s.ended() {
			shortest = min(shortest, a.interval(s.Items).boundary(env.Now, 2))
		}
		return false
	}})
	if err == nil && to > shortest {
		err = invalid("frozen_time", "A clock can be advanced by at most two intervals of its shortest subscription, to %d.", shortest)
	}
	return err
}
