package store_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"purser/fault"
	"purser/metering"
	"purser/store/storetest"
)

// lostReplies is how many commits must have been done and never answered.
const lostReplies = 100

// TestCutConnectionsLoseAndDoubleNothing uses wallets while connections break
// around more than every second commit. Nobody gets an error, and every answer is so.
func TestCutConnectionsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	const workers, perWave = 8, 10
	random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
	url := storetest.URL(t)
	s, proxy := newProxiedShop(t, url, 2)
	for w := range workers {
		s.credit(t, numbered("wallet", w), 1_000_000_000)
		s.warm(t, s.nodes[0], numbered("wallet", w), w%2 == 0)
	}
	s.credit(t, "poor", 40*messagePrice)
	proxy.Plan(func(int) commitFault {
		switch n := random.IntN(20); {
		case n < 8:
			return afterCommit
		case n < 10:
			return beforeCommit
		case n < 12:
			return midRow
		default:
			return noFault
		}
	})

	var all []outcome
	for wave := 0; proxy.Struck(afterCommit) < lostReplies; wave++ {
		outcomes := make([]outcome, workers*perWave)
		var done sync.WaitGroup
		for w := range workers {
			done.Go(func() {
				for i := range perWave {
					identity := numbered("wallet", (w+i)%workers)
					if i%5 == 0 {
						identity = "poor"
					}
					event := numbered("event", (wave*workers+w)*perWave+i)
					outcomes[w*perWave+i] = trackOutcome(s.nodes[0], s.message(identity, event))
				}
			})
		}
		done.Wait()
		all = append(all, outcomes...)
	}
	proxy.Plan(nil)
	for _, f := range []commitFault{beforeCommit, afterCommit, midRow} {
		t.Logf("%s: %d cuts", f, proxy.Struck(f))
		if proxy.Struck(f) == 0 {
			t.Errorf("no connection was cut %s", f)
		}
	}
	s.definiteAnswers(t, url, all)
	soundBooks(t, url, s.tenant)
}

// definiteAnswers expects that each use was accepted and is stored once, under its
// own transaction, or was refused and is not; and that the first ones, sent again,
// are recognised.
func (s shop) definiteAnswers(t *testing.T, url string, outcomes []outcome) {
	t.Helper()
	t.Logf("answers: %v", tally(outcomes))
	stored := s.storedEvents(t, connect(t, url))
	repeats := make([]outcome, len(outcomes))
	atOnce(len(outcomes), func(i int) {
		repeats[i] = trackOutcome(s.nodes[0], s.message(outcomes[i].use.Identity, outcomes[i].use.EventID))
	})
	for i, o := range outcomes {
		rows := stored[o.use.EventID]
		switch {
		case o.String() == "accepted" && (len(rows) != 1 || rows[0] != o.use.TransactionID):
			t.Errorf("%q was accepted as %s and is stored as %v", o.use.EventID, o.use.TransactionID, rows)
		case o.String() == "accepted" && (repeats[i].String() != "duplicate" || repeats[i].d.Event.TransactionID != o.use.TransactionID):
			t.Errorf("%q was accepted, and its repeat is %s", o.use.EventID, repeats[i])
		case o.String() == "insufficient_balance" && len(rows) != 0:
			t.Errorf("%q was refused and is stored as %v", o.use.EventID, rows)
		case o.String() != "accepted" && o.String() != "insufficient_balance":
			t.Errorf("%q got %s: %v", o.use.EventID, o, o.err)
		}
	}
}

// TestDepositSurvivesACutConnection breaks the connection at the first commit of
// every deposit.
func TestDepositSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	const deposits = 30
	url := storetest.URL(t)
	s, proxy := newProxiedShop(t, url, 2)
	cut := s.on(s.nodes[0])
	var sum metering.Amount
	for i := range deposits {
		for _, f := range []commitFault{beforeCommit, afterCommit} {
			proxy.Plan(once(f))
			requested := depositOf("ann", "tokens", metering.Amount(i), freshID())
			made, duplicate, err := cut.Deposit(t.Context(), requested)
			if err != nil || duplicate || made.ID != requested.ID || made.Amount != requested.Amount {
				t.Errorf("cut %s: deposit %v, duplicate %t, %v", f, made, duplicate, err)
			}
			sum += requested.Amount

			proxy.Plan(nil)
			again, duplicate, err := cut.Deposit(t.Context(), depositOf("ann", "tokens", 1, *requested.IdempotencyKey))
			if err != nil || !duplicate || again.ID != requested.ID || again.Amount != requested.Amount {
				t.Errorf("cut %s: the repeat gives %v, duplicate %t, %v", f, again, duplicate, err)
			}
		}
	}
	if struck := proxy.Struck(beforeCommit) + proxy.Struck(afterCommit); struck != 2*deposits {
		t.Errorf("%d cuts", struck)
	}

	// Inside a row the caller may get no answer, and sends the same again.
	for i := range deposits {
		proxy.Plan(once(midRow))
		requested := depositOf("ann", "tokens", metering.Amount(i), freshID())
		sum += requested.Amount
		made, _, err := cut.Deposit(t.Context(), requested)
		for sends := 1; err != nil && sends < 3; sends++ {
			var refused *fault.Fault
			if errors.As(err, &refused) {
				t.Errorf("a cut connection is answered as %s", refused.Code)
			}
			made, _, err = cut.Deposit(t.Context(), requested)
		}
		if err != nil || made.ID != requested.ID {
			t.Errorf("a deposit sent again is %v, %v", made, err)
		}
	}
	if proxy.Struck(midRow) == 0 {
		t.Error("no connection was cut inside a row")
	}
	if got := s.balance(t, "ann"); got != sum {
		t.Errorf("the balance is %s, and %s came in", got, sum)
	}
	soundBooks(t, url, s.tenant)
}

// TestSilentServerIsWaitedForOnlySoLong swallows everything after a commit.
func TestSilentServerIsWaitedForOnlySoLong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		warm, once bool
		want       string
	}{
		{"and then asked again, under locks", false, false, "accepted"},
		{"and then asked again, from memory", true, false, "accepted"},
		// It is over after one trip without an answer.
		{"and then the outcome is unknown, under locks", false, true, "error"},
		{"and then the outcome is unknown, from memory", true, true, "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s, proxy := newProxiedShop(t, url, 2)
			// A round trip takes milliseconds. A machine on which the time of one was over before
			// the commit gets more.
			for trip := 3 * time.Second; proxy.Struck(blackHole) == 0; trip *= 2 {
				if trip > patience {
					t.Fatal("no commit in time")
				}
				identity, event, deadline := freshID(), freshID(), patience
				s.credit(t, identity, 1000)
				s.nodes[0].usage.SetTimeouts(patience, patience)
				s.warm(t, s.nodes[0], identity, c.warm)
				if c.once {
					deadline = trip - time.Millisecond
				}
				s.nodes[0].usage.SetTimeouts(deadline, trip)
				proxy.Plan(once(blackHole))
				o := trackOutcome(s.nodes[0], s.message(identity, event))
				if proxy.Struck(blackHole) == 0 {
					continue
				}
				if o.String() != c.want || o.took < min(trip, deadline) {
					t.Errorf("after %s the use is %s: %v", o.took, o, o.err)
				}
				// It was committed, so a caller without an answer finds it by its id.
				if d, err := s.nodes[1].usage.Track(s.message(identity, event)); answer(d, err) != "duplicate" || d.Event.TransactionID != o.use.TransactionID {
					t.Errorf("the repeat is %s", answer(d, err))
				}
			}
			soundBooks(t, url, s.tenant)
		})
	}
}
