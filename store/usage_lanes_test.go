package store_test

import (
	"sync"
	"testing"

	"purser/metering"
	"purser/store"
)

// stopEvent has a single event of the first wallet wait for its lock.
func (s twoLanes) stopEvent(t *testing.T, use store.Usage) (finish func() outcome) {
	t.Helper()
	release := s.hold(t, s.url, s.first)
	var got outcome
	var done sync.WaitGroup
	done.Go(func() { got = trackOutcome(s.nodes[0], use) })
	soon(t, "an event at the lock", func() bool { return s.standsStill(t, s.url, s.first) })
	return func() outcome {
		release()
		done.Wait()
		return got
	}
}

func TestSingleLanesRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	finish := s.stopEvent(t, s.message(s.first, freshID()))
	mustAccept(t, s.nodes[0], s.message(s.second, freshID()))
	for _, identity := range []string{s.first, s.second} { // checks wait for no lock
		if d, err := s.usage().Check(s.message(identity, "")); answer(d, err) != "accepted" {
			t.Errorf("a check of %s is %s: %v", identity, answer(d, err), err)
		}
	}
	if got := finish(); got.String() != "accepted" {
		t.Errorf("the event that waited is %s: %v", got, got.err)
	}
	soundBooks(t, s.url, s.tenant)
}

// An event id counts once, though its lanes know nothing of each other.
func TestARepeatedIDCountsOnceAcrossSingleLanes(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	repeated := freshID()
	before := s.balance(t, s.first)
	finish := s.stopEvent(t, s.message(s.first, repeated))
	mustAccept(t, s.nodes[0], s.message(s.second, repeated))
	if got := finish(); got.d.Verdict != metering.Duplicate {
		t.Errorf("the second event with the id is %s: %v", got, got.err)
	}
	if after := s.balance(t, s.first); after != before {
		t.Errorf("the balance of its wallet went from %s to %s", before, after)
	}
	soundBooks(t, s.url, s.tenant)
}

// A burst over many wallets in both lanes, with every event sent twice.
func TestSingleLanesChargeEachEventOnce(t *testing.T) {
	t.Parallel()
	const events = 400
	s := newTwoLanes(t)
	wallets := []string{s.first, s.second}
	for i := range 14 {
		wallets = append(wallets, numbered("customer", i))
		s.credit(t, numbered("customer", i), 1_000_000)
	}
	outcomes := make([]outcome, 2*events)
	atOnce(len(outcomes), func(i int) {
		event := i % events
		outcomes[i] = trackOutcome(s.nodes[0], s.message(wallets[event%len(wallets)], numbered("event", event)))
	})
	if got := tally(outcomes); got["accepted"] != events || got["duplicate"] != events {
		t.Errorf("of %d sent twice: %v", events, got)
	}
	soundBooks(t, s.url, s.tenant)
}
