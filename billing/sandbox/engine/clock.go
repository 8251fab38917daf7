package engine

import (
	"cmp"
	"slices"
)

// Timer is something that will happen by itself. It names its object and not
// what it expects there: when it fires, the object's own state decides whether
// there is still anything to do, so nobody has to take a timer back.
type Timer struct {
	At     Time
	Kind   timerKind
	Object string
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

func compareTimers(a, b Timer) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind))
}

func (w *World) setTimer(at Time, kind timerKind, o Object) {
	timer := Timer{At: at, Kind: kind, Object: o.head().ID}
	// After its equals, so that equal timers fire in the order they were set.
	i, _ := slices.BinarySearchFunc(w.Timers, timer, func(a, b Timer) int {
		return cmp.Or(compareTimers(a, b), -1)
	})
	w.Timers = slices.Insert(w.Timers, i, timer)
}

// Next is the instant of the earliest timer.
func (w *World) Next() (Time, bool) {
	if len(w.Timers) == 0 {
		return 0, false
	}
	return w.Timers[0].At, true
}

// Fire lets happen what is due by the moment, each at its own instant.
func (w *World) Fire(m Moment) {
	for len(w.Timers) > 0 && w.Timers[0].At <= m.Now {
		timer := w.Timers[0]
		w.Timers = slices.Delete(w.Timers, 0, 1)
		w.fire(m.at(timer.At), timer)
	}
}

func (w *World) fire(m Moment, timer Timer) {
	id := timer.Object
	switch timer.Kind {
	case sessionExpires:
		w.sessionExpires(m, w.Sessions[id])
	case pendingExpires:
		w.pendingExpires(m, w.Subscriptions[id])
	case incompleteExpires:
		w.incompleteExpires(m, w.Subscriptions[id])
	case cancelDue:
		w.cancelDue(m, w.Subscriptions[id])
	case periodEnds:
		w.periodEnds(m, w.Subscriptions[id])
	case draftEnds:
		w.draftEnds(m, w.Invoices[id])
	case retryDue:
		w.retryDue(m, w.Invoices[id])
	case debitEnds:
		w.debitEnds(m, w.Intents[id])
	case refundEnds:
		w.refundEnds(m, w.Refunds[id])
	case disputeOpens:
		w.disputeOpens(m, w.Charges[id])
	}
}

// Now is the world's clock at a real time; both are in milliseconds.
func (w *World) Now(realNow int64) int64 { return realNow + w.Offset }

// MoveClock makes the world's clock show the given time at a real one. It never
// turns the clock back.
func (w *World) MoveClock(realNow, to int64) {
	if to > w.Now(realNow) {
		w.Offset = to - realNow
	}
}

// WakeAt is the real time at which something is next due, a timer or a delivery.
func (w *World) WakeAt() (realTime int64, found bool) {
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

// CreateTestClock names the world's clock. It cannot start elsewhere.
func (w *World) CreateTestClock(m Moment, name string) (*TestClock, error) {
	head, err := newHead(w, m, w.TestClocks, "clock_")
	if err != nil {
		return nil, err
	}
	clock := &TestClock{Head: head, Name: name, Frozen: m.Now}
	w.TestClocks[head.ID] = clock
	return clock, nil
}

// CheckAdvance refuses an advance that Stripe's test clocks refuse: backwards,
// or further than two intervals of the shortest subscription.
func (w *World) CheckAdvance(m Moment, to Time) error {
	if to <= m.Now {
		return invalid("frozen_time", "The clock can only be advanced: %d is not after its current time %d.", to, m.Now)
	}
	for _, s := range w.Subscriptions {
		if s.ended() {
			continue
		}
		if limit := w.interval(s.Items).boundary(m.Now, 2); to > limit {
			return invalid("frozen_time", "A clock can be advanced by at most two intervals of its shortest subscription, to %d.", limit)
		}
	}
	return nil
}
