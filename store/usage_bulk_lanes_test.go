package store_test

import (
	"sync"
	"testing"

	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// twoLanes is a shop with a wallet in each lane. The first comes first in the order
// of locks.
type twoLanes struct {
	shop
	url           string
	first, second string
}

func newTwoLanes(t *testing.T) twoLanes {
	t.Helper()
	s := twoLanes{url: storetest.URL(t)}
	s.shop = newShop(t, s.url, 1)
	s.first = numbered("wallet", 0)
	for i := 1; s.second == ""; i++ {
		if i > 100 { // by chance once in 2^100 runs
			t.Fatal("all wallets are in one lane")
		}
		if identity := numbered("wallet", i); s.lane(identity) != s.lane(s.first) {
			s.second = identity
		}
	}
	s.credit(t, s.first, 1_000_000)
	s.credit(t, s.second, 1_000_000)
	return s
}

func (s twoLanes) usage() *store.Engine { return s.nodes[0].usage }

func (s twoLanes) lane(identity string) int { return s.usage().LaneOf(s.application.ID, identity) }

// stopFirst has a batch of the first wallet wait for its lock.
func (s twoLanes) stopFirst(t *testing.T, batch ...store.Usage) (finish func() []store.Outcome) {
	t.Helper()
	release := s.hold(t, s.url, s.first)
	var outcomes []store.Outcome
	var done sync.WaitGroup
	done.Go(func() {
		var err error
		if outcomes, err = s.usage().TrackBatch(batch); err != nil {
			t.Errorf("the batch that waits: %v", err)
		}
	})
	soon(t, "a batch at the lock", func() bool { return s.standsStill(t, s.url, s.first) })
	return func() []store.Outcome {
		release()
		done.Wait()
		return outcomes
	}
}

func (s twoLanes) accept(t *testing.T, batch ...store.Usage) {
	t.Helper()
	outcomes, err := s.usage().TrackBatch(batch)
	noError(t, err)
	for i, o := range outcomes {
		if o.Verdict != metering.Accepted {
			t.Errorf("item %d is %s: %v", i, o.Verdict, o.Err)
		}
	}
}

func TestBulkLanesRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	finish := s.stopFirst(t, s.message(s.first, freshID()))
	s.accept(t, s.message(s.second, freshID()))
	if s.usage().BulkTurnTaken() {
		t.Error("bulk lanes take turns without single events")
	}
	if got := finish(); got[0].Verdict != metering.Accepted {
		t.Errorf("the batch that waited is %s: %v", got[0].Verdict, got[0].Err)
	}
	soundBooks(t, s.url, s.tenant)
}

func TestBulkLanesTakeTurnsBesideSingleEvents(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	s.usage().KeepSinglesRecent()
	finish := s.stopFirst(t, s.message(s.first, freshID()))
	if !s.usage().BulkTurnTaken() {
		t.Error("a bulk lane runs beside single events without its turn")
	}
	finish()
	s.accept(t, s.message(s.second, freshID()), s.message(s.first, freshID()))
	soundBooks(t, s.url, s.tenant)
}

// An event id belongs to the first item that has it, whichever lanes the wallets are in.
func TestARepeatedIDBelongsToTheFirstItemAcrossLanes(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	repeated := freshID()
	finish := s.stopFirst(t, s.message(s.first, repeated), s.message(s.second, repeated))
	s.accept(t, s.message(s.second, freshID())) // the second wallet's lane is not behind
	got := finish()
	if got[0].Verdict != metering.Accepted {
		t.Errorf("the first item is %s: %v", got[0].Verdict, got[0].Err)
	}
	if got[1].Verdict == metering.Accepted {
		t.Error("the repeated id is accepted twice")
	}
	soundBooks(t, s.url, s.tenant)
}

func TestABatchOverTwoLanesIsQueuedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	finish := s.stopFirst(t, s.message(s.first, freshID()))
	full := make([]store.Usage, store.MaxBulkPerApp)
	for i := range full {
		full[i] = s.message(s.first, numbered("full", i))
	}
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := s.usage().TrackBatch(full); err != nil {
			t.Errorf("the batch that fills the queue: %v", err)
		}
	})
	soon(t, "a full queue", func() bool { return s.usage().Stats().QueuedBulk == len(full) })
	before := s.balance(t, s.second)
	for _, batch := range [][]store.Usage{
		{s.message(s.first, freshID()), s.message(s.second, freshID())},
		{s.message(s.second, freshID()), s.message(s.first, freshID())},
	} {
		if _, err := s.usage().TrackBatch(batch); !fault.Is(err, fault.Overloaded) {
			t.Errorf("a batch whose first lane is full: %v", err)
		}
	}
	s.accept(t, s.message(s.second, freshID()))
	finish()
	done.Wait()
	if got, want := s.balance(t, s.second), before-messagePrice; got != want {
		t.Errorf("the second wallet has %s, not %s: part of a refused batch was charged", got, want)
	}
	soundBooks(t, s.url, s.tenant)
}

// Single events and batches of one wallet in turn: each reads what the other has
// committed, and none fails its version check, after which the wallet would be processed
// under locks for seconds.
func TestLanesReadWhatOthersCommitted(t *testing.T) {
	t.Parallel()
	s := newTwoLanes(t)
	for range 4 {
		for _, identity := range []string{s.first, s.second} {
			mustAccept(t, s.nodes[0], s.message(identity, freshID()))
		}
		repeated := freshID() // has both wallets decided in one lane
		for _, batch := range [][]store.Usage{
			{s.message(s.first, freshID()), s.message(s.second, freshID())},
			{s.message(s.first, repeated), s.message(s.second, freshID()), s.message(s.first, repeated)},
		} {
			outcomes, err := s.usage().TrackBatch(batch)
			noError(t, err)
			for i, o := range outcomes {
				noError(t, o.Err)
				if o.Verdict != metering.Accepted && o.Verdict != metering.Duplicate {
					t.Errorf("event %d of a batch is %v", i, o.Verdict)
				}
			}
		}
	}
	if n := s.usage().Conflicts(); n != 0 {
		t.Errorf("%d batches failed because they were decided from a state before", n)
	}
	soundBooks(t, s.url, s.tenant)
}
