package store_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/store/verify"
)

// pause stops both clocks of the node for this long, as a hypervisor does with a
// machine that it suspends: the node itself cannot notice.
func (m *machine) pause(d time.Duration) { m.pass(-d) }

func TestAPausedMachineChargesNothingByItsStoppedClock(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for name, locked := range map[string]bool{"from memory": false, "under locks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(0)
			n := openNodeOn(t, url, m)
			s := shop{nodes: []node{n}}.stocked(t)
			s.credit(t, "ann", 1000)
			s.warm(t, n, "ann", true)
			if locked {
				n.usage.ForcePessimistic(s.application.ID, "ann")
			}
			held := s.balance(t, "ann")
			n.db.StopClock()
			n.usage.SetTimeouts(200*time.Millisecond, time.Minute)
			m.pause(8 * time.Hour)
			if _, err := n.usage.Check(s.message("ann", "paused")); err == nil {
				t.Error("the check is answered")
			}
			noError(t, n.db.MeasureClock(t.Context()))
			m.pause(8 * time.Hour)
			if d, err := n.usage.Track(s.message("ann", "paused")); err == nil {
				t.Errorf("the event is %s", answer(d, err))
			}
			if left := s.balance(t, "ann"); left != held {
				t.Errorf("the balance went from %s to %s", held, left)
			}
			noError(t, n.db.MeasureClock(t.Context()))
			n.usage.SetTimeouts(time.Minute, time.Minute)
			mustAccept(t, n, s.message("ann", "paused"))
		})
	}
}

func TestAPausedMachineMeasuresAgainBeforeItCharges(t *testing.T) {
	t.Parallel()
	m := newMachine(0)
	n := openNodeOn(t, storetest.URL(t), m)
	s := shop{nodes: []node{n}}.stocked(t)
	s.credit(t, "ann", 1000)
	s.warm(t, n, "ann", true)
	for range 3 {
		m.pause(8 * time.Hour)
		d, err := n.usage.Track(s.message("ann", freshID()))
		noError(t, err)
		if off := time.Since(time.UnixMilli(d.Event.CreatedAt)); d.Verdict != metering.Accepted || off.Abs() > 10*time.Minute {
			t.Errorf("the event is %s, and %s old", answer(d, err), off)
		}
	}
}

// What was asked before the pause is not recorded after it: rollups have passed its id.
func TestAPausedMachineRecordsNoOldID(t *testing.T) {
	t.Parallel()
	n := openNodeOn(t, storetest.URL(t), newMachine(0))
	s := shop{nodes: []node{n}}.stocked(t)
	s.credit(t, "ann", 1000)
	s.warm(t, n, "ann", true)
	held, use := s.balance(t, "ann"), s.message("ann", "asked before")
	old := store.IDAt(n.db.Clock().Now() - rollup.Margin.Milliseconds())
	copy(use.TransactionID[:6], old[:6])
	_, err := n.usage.Track(use)
	wantFault(t, err, fault.Overloaded)
	if left := s.balance(t, "ann"); left != held {
		t.Errorf("the balance went from %s to %s", held, left)
	}
	mustAccept(t, n, s.message("ann", "asked before"))
}

// The first event of the group got its id before the pause, the second after it.
func TestAPausedMachineRecordsNoPartOfAGroup(t *testing.T) {
	t.Parallel()
	n := openNodeOn(t, storetest.URL(t), newMachine(0))
	s := shop{nodes: []node{n}}.stocked(t)
	s.credit(t, "ann", 1000)
	held, group := s.balance(t, "ann"), []store.Usage{s.message("ann", "before"), s.message("ann", "after")}
	old := store.IDAt(n.db.Clock().Now() - rollup.Margin.Milliseconds())
	copy(group[0].TransactionID[:6], old[:6])
	_, _, err := n.usage.TrackGroup(group)
	wantFault(t, err, fault.Overloaded)
	if left := s.balance(t, "ann"); left != held {
		t.Errorf("the balance went from %s to %s", held, left)
	}
}

// Each reading of this machine's wall clock is seconds after the one before, while its
// monotonic clock is right: no measurement succeeds.
func TestUsageIsRefusedOnceAMeasurementOfTheClockHasFailed(t *testing.T) {
	t.Parallel()
	m := newMachine(0)
	var broken atomic.Bool
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: nodeConns, Machine: func() (int64, time.Duration) {
		if broken.Load() {
			m.step(5 * time.Second)
		}
		return m.clocks()
	}})
	noError(t, err)
	usage, err := db.OpenEngine(t.Context(), store.EngineOptions{})
	noError(t, err)
	t.Cleanup(func() {
		usage.Close()
		db.Close()
	})
	n := node{db: db, usage: usage}
	s := shop{nodes: []node{n}}.stocked(t)
	s.credit(t, "ann", 1000)
	n.usage.SetTimeouts(time.Hour, time.Hour)
	broken.Store(true)
	// The test would end before an hour is over.
	if d, err := n.usage.Track(s.message("ann", "untimed")); err == nil {
		t.Errorf("the event is %s", answer(d, err))
	}
	if _, err := n.usage.Check(s.message("ann", "untimed")); err == nil {
		t.Error("the check is answered")
	}
	broken.Store(false)
	noError(t, db.MeasureClock(t.Context()))
	mustAccept(t, n, s.message("ann", "untimed"))
}

// A server makes ids by its store's clock. Those of nodes whose own clocks are hours
// off lie where lists and verification look for them.
func TestIDsOfNodesWithWrongClocksAreListedAndVerified(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := skewedShop(t, url)
	s.credit(t, "ann", 1000)
	made := func(n node) ids.ID {
		at, id := store.IDAt(n.db.Clock().Now()), ids.New()
		copy(id[:6], at[:6])
		return id
	}
	var want []string
	for range 3 {
		for i, n := range s.nodes {
			use := s.message("ann", freshID())
			use.TransactionID = made(n)
			mustAccept(t, n, use)
			want = append(want, use.TransactionID.String())
			deposit := depositOf("ann", "tokens", 1, freshID())
			deposit.ID = made(n)
			_, _, err := n.db.App(s.application.Scope()).Deposit(t.Context(), deposit)
			noError(t, err)
			if off := time.Since(time.UnixMilli(n.db.Clock().Now())); off.Abs() > 10*time.Minute {
				t.Errorf("a node %s ahead makes ids of %s ago", skews[i], off)
			}
		}
	}
	app := s.nodes[0].db.App(s.application.Scope())
	var seen []string
	for page := (&store.Page{Limit: 4}); page != nil; {
		list, next, err := s.nodes[0].db.Reports(s.application.Scope()).Events(t.Context(), reports.EventQuery{Page: *page})
		noError(t, err)
		for _, e := range list {
			seen = append(seen, e.TransactionID.String())
		}
		page = next
	}
	if !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("the list is not newest first: %v", seen)
	}
	slices.Sort(seen)
	slices.Sort(want)
	if !slices.Equal(seen, want) {
		t.Errorf("the list has %d events, %v, want %v", len(seen), seen, want)
	}
	wallet, err := app.Wallet(t.Context(), "ann")
	noError(t, err)
	lines, _, more, err := s.nodes[0].db.Reports(s.application.Scope()).Journal(t.Context(), reports.JournalPage{WalletID: wallet.ID, Limit: 100})
	if noError(t, err); len(lines) != 2*len(want)+1 || more {
		t.Errorf("the journal has %d entries, want %d", len(lines), 2*len(want)+1)
	}
	for _, o := range []verify.Options{{New: true}, {Since: s.nodes[0].db.Clock().Time().Add(-10 * time.Minute), Record: true, Now: moment}, {}} {
		v, err := s.nodes[0].db.Verification(s.application.Scope()).Verify(t.Context(), o)
		if noError(t, err); len(v.Differences) > 0 || v.Entries != int64(2*len(want)+1) {
			t.Errorf("%+v read %d entries and found %v", o, v.Entries, v.Differences)
		}
	}
}
