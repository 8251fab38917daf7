package engine

import (
	"cmp"
	"slices"

	"purser/billing/sandbox/persist"
)

// Timer is something that will happen by itself. It names its object and not
// what it expects there: when it fires, the object's own state decides whether
// there is still anything to do, so nobody has to take a timer back.
type Timer struct {
	At     Time
	Kind   timerKind
	Object string
	Nth    int64
}

type timerKind int

// The kinds, in the order in which those of one instant fire. A pending update
// ends before the period that it would have changed; a renewal comes after all
// that its old period still owed.
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

// timersRead is how many stored timers are read at a time.
const timersRead = 2

// timerWindow is the timers that come next: all that are new, and the stored ones up
// to an edge, behind which there may be more.
type timerWindow struct {
	sorted []Timer
	edge   Timer
	more   bool
}

func (w *Account) setTimer(at Time, kind timerKind, o Object) {
	w.addTimer(Timer{At: at, Kind: kind, Object: o.head().ID})
}

// addTimer numbers a timer that has no number, so that equal ones fire in the order
// in which they were set.
func (w *Account) addTimer(timer Timer) {
	if timer.Nth == 0 {
		w.Made++
		timer.Nth = w.Made
	}
	w.timers.Put(&timer)
	w.window.insert(timer)
}

func (n *timerWindow) insert(timer Timer) {
	i, _ := slices.BinarySearchFunc(n.sorted, timer, compareTimers)
	n.sorted = slices.Insert(n.sorted, i, timer)
}

// extend takes in the stored timers that follow the edge.
func (n *timerWindow) extend(w *Account, rows []persist.Row) {
	w.keep(rows)
	n.more = len(rows) >= timersRead
	for _, row := range rows {
		timer := w.timers.Get(row.Key[len(kindTimer)+1:])
		n.insert(*timer)
		n.edge = *timer
	}
}

// next is the earliest timer, or nil.
func (n *timerWindow) next(w *Account) *Timer {
	for n.more && (len(n.sorted) == 0 || compareTimers(n.sorted[0], n.edge) > 0) {
		rows, err := w.source.Earliest(kindTimer, n.edge.due(), n.edge.Nth, timersRead)
		readable(err)
		n.extend(w, rows)
	}
	if len(n.sorted) == 0 {
		return nil
	}
	return &n.sorted[0]
}

// all takes in every timer that has been read.
func (n *timerWindow) all(w *Account) {
	n.sorted, n.more = nil, false
	for _, timer := range w.timers.Loaded() {
		n.insert(*timer)
	}
}

// Next is the instant of the earliest timer.
func (w *Account) Next() (Time, bool) {
	timer := w.window.next(w)
	if timer == nil {
		return 0, false
	}
	return timer.At, true
}

// maxFired is how many timers fire in one transaction: a far jump of the clock must not
// hold the account's lock and all that it changes at once.
const maxFired = 50

// IsTimerDue reports whether a timer's time has come at a real one.
func (w *Account) IsTimerDue(realNow int64) bool {
	at, timed := w.Next()
	return timed && int64(at)*1000 <= w.Now(realNow)
}

// Fire lets happen what is due by the moment, each at its own instant. It reports whether
// that was all: past maxFired since the account was opened, timers stay for later.
func (w *Account) Fire(m Clock) (done bool) {
	for next := w.window.next(w); next != nil && next.At <= m.Now; next = w.window.next(w) {
		if w.fired >= maxFired && w.source != nil {
			return false
		}
		w.fired++
		timer := *next
		w.window.sorted = slices.Delete(w.window.sorted, 0, 1)
		id, _ := timer.key()
		w.timers.Delete(id)
		w.fire(m.at(timer.At), timer)
	}
	return true
}

func (w *Account) fire(m Clock, timer Timer) {
	id := timer.Object
	switch timer.Kind {
	case sessionExpires:
		w.sessionExpires(m, w.Sessions.Get(id))
	case pendingExpires:
		w.pendingExpires(m, w.Subscriptions.Get(id))
	case incompleteExpires:
		w.incompleteExpires(m, w.Subscriptions.Get(id))
	case cancelDue:
		w.cancelDue(m, w.Subscriptions.Get(id))
	case periodEnds:
		w.periodEnds(m, w.Subscriptions.Get(id))
	case draftEnds:
		w.draftEnds(m, w.Invoices.Get(id))
	case retryDue:
		w.retryDue(m, w.Invoices.Get(id))
	case debitEnds:
		w.debitEnds(m, w.Intents.Get(id))
	case refundEnds:
		w.refundEnds(m, w.Refunds.Get(id))
	case disputeOpens:
		w.disputeOpens(m, w.Charges.Get(id))
	}
}

// Now is the world's clock at a real time; both are in milliseconds.
func (w *Account) Now(realNow int64) int64 { return realNow + w.Offset }

// MoveClock makes the world's clock show the given time at a real one. It never
// turns the clock back.
func (w *Account) MoveClock(realNow, to int64) {
	if to > w.Now(realNow) {
		w.Offset = to - realNow
	}
}

// WakeAt is the real time at which something is next due, a timer or a delivery.
func (w *Account) WakeAt() (realTime int64, found bool) {
	realTime, found = w.nextDelivery()
	if at, waiting := w.Next(); waiting {
		if due := int64(at)*1000 - w.Offset; !found || due < realTime {
			realTime, found = due, true
		}
	}
	return realTime, found
}

// TestClock is Stripe's handle on a clock. Here there is one clock, the world's,
// and every test clock shows it.
type TestClock struct {
	Head
	Name   string
	Frozen Time
}

// isAdvancing reports whether something has still to happen by the clock's time.
func (w *Account) isAdvancing(c *TestClock) bool {
	next, timed := w.Next()
	return timed && next <= c.Frozen
}

// CreateTestClock names the world's clock. It cannot start elsewhere.
func (w *Account) CreateTestClock(m Clock, name string) (*TestClock, error) {
	head := w.newHead(m, "clock_")
	clock := &TestClock{Head: head, Name: name, Frozen: m.Now}
	w.TestClocks.Put(clock)
	return clock, nil
}

const (
	// frozenSlack is how far in the past a new test clock may begin: callers mean now.
	frozenSlack = hour
	// longestStart is how far ahead it may begin.
	longestStart = 5 * 365 * day
)

// CheckFrozen refuses a test clock that would begin where the account's clock cannot go.
func CheckFrozen(m Clock, at Time) error {
	if at < m.Now-frozenSlack || at > m.Now+longestStart {
		return invalid("frozen_time", "The sandbox has one clock for the whole application, and it only goes forward: it shows %d, and a test clock can begin there or up to five years later.", m.Now)
	}
	return nil
}

// CheckAdvance refuses an advance that Stripe's test clocks refuse: backwards,
// or further than two intervals of the shortest subscription.
func (w *Account) CheckAdvance(m Clock, to Time) error {
	if to <= m.Now {
		return invalid("frozen_time", "The clock can only be advanced: %d is not after its current time %d.", to, m.Now)
	}
	shortest := to
	_, _, err := List(w.Subscriptions, Page{Limit: 1}, Filter[Subscription]{Keep: func(s *Subscription) bool {
		if !s.ended() {
			shortest = min(shortest, w.interval(s.Items).boundary(m.Now, 2))
		}
		return false
	}})
	if err == nil && to > shortest {
		err = invalid("frozen_time", "A clock can be advanced by at most two intervals of its shortest subscription, to %d.", shortest)
	}
	return err
}
