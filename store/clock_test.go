package store_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// machine is the clocks of a node that a test sets.
type machine struct {
	start         time.Time
	wall, elapsed atomic.Int64 // added to the real ones, in nanoseconds
}

func newMachine(ahead time.Duration) *machine {
	m := &machine{start: time.Now()}
	m.wall.Store(int64(ahead))
	return m
}

func (m *machine) clocks() (int64, time.Duration) {
	now := time.Now()
	return now.UnixNano() + m.wall.Load(), now.Sub(m.start) + time.Duration(m.elapsed.Load())
}

// step sets the wall clock of the node, as a suspended machine finds it when it wakes.
func (m *machine) step(d time.Duration) { m.wall.Add(int64(d)) }

// pass lets time pass on the node alone.
func (m *machine) pass(d time.Duration) {
	m.elapsed.Add(int64(d))
	m.wall.Add(int64(d))
}

// openNodeOn opens a node that goes by the database's clock.
func openNodeOn(tb testing.TB, url string, m *machine) node {
	tb.Helper()
	db, err := store.Open(tb.Context(), url, store.Options{MaxConns: nodeConns, Machine: m.clocks})
	noError(tb, err)
	usage, err := db.OpenEngine(tb.Context(), store.EngineOptions{})
	noError(tb, err)
	usage.SetTimeouts(busyMachine, busyMachine) // more, here
	tb.Cleanup(func() {
		usage.Close()
		db.Close()
	})
	return node{db: db, usage: usage}
}

// skews are how far the wall clocks of the nodes are off.
var skews = []time.Duration{0, time.Hour, -time.Hour, 8 * time.Hour, -8 * time.Hour}

func skewedShop(tb testing.TB, url string) shop {
	tb.Helper()
	var s shop
	for _, skew := range skews {
		s.nodes = append(s.nodes, openNodeOn(tb, url, newMachine(skew)))
	}
	return s.stocked(tb)
}

// setClock puts the application's clock to a moment.
func (s shop) setClock(tb testing.TB, url string, to time.Time) {
	tb.Helper()
	exec(tb, connect(tb, url), `UPDATE app_state SET clock_offset = $2, epoch = epoch + 1 WHERE app_id = $1`,
		s.application.ID, to.UnixMilli()-s.nodes[0].db.Clock().Now())
}

func TestNodesWithWrongClocksAgreeOnTime(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	conn := connect(t, url)
	read := func() (ms int64) {
		noError(t, conn.QueryRow(t.Context(), `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`).Scan(&ms))
		return ms
	}
	for _, skew := range skews {
		clock := openNodeOn(t, url, newMachine(skew)).db.Clock()
		slack := clock.Uncertainty().Milliseconds() + 2
		before := read()
		now, err := clock.Read()
		after := read()
		if noError(t, err); now < before-slack || now > after+slack {
			t.Errorf("a node %s ahead reads %d, between %d and %d", skew, now, before, after)
		}
		if off := (clock.Offset() - skew).Abs(); off > time.Minute {
			t.Errorf("a node %s ahead finds itself %s ahead", skew, clock.Offset())
		}
	}
}

func TestNodesWithWrongClocksChargeOnceADay(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	// Where the clocks of nodes that are ahead, or behind, show another day. An application's
	// clock is never behind.
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 2)
	for name, at := range map[string]time.Time{
		"before midnight": midnight.Add(-30 * time.Minute),
		"after midnight":  midnight.Add(30 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := skewedShop(t, url)
			daily := featureOf("daily", "tokens")
			daily.Cost, daily.Deduplication = messagePrice, metering.DeduplicateDay
			s.newFeature(t, daily)
			s.credit(t, "ann", 1000)
			s.setClock(t, url, at)
			for round := range 2 { // the second from memory
				for i, n := range s.nodes {
					use := s.useOf("daily", "ann", freshID())
					use.EntityID = "report"
					d, err := n.usage.Track(use)
					if charged := err == nil && d.Event.Charge.Amount > 0; err != nil || charged != (round == 0 && i == 0) {
						t.Errorf("node %s ahead, round %d: %s, charged %t", skews[i], round, answer(d, err), charged)
					}
				}
			}
			if left := s.balance(t, "ann"); left != 1000-messagePrice {
				t.Errorf("%s is left", left)
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

func TestNodesWithWrongClocksShareOneAllowance(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	month := metering.MonthOf(moment)
	for name, at := range map[string]time.Time{
		"before its end":  time.UnixMilli(month.End).Add(-30 * time.Minute),
		"after its start": time.UnixMilli(month.Start).Add(30 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := skewedShop(t, url)
			s.credit(t, "ann", 1000)
			s.limitMessages(t, "ann", int64(len(s.nodes)))
			s.setClock(t, url, at)
			for _, want := range []string{"accepted", string(fault.FeatureLimitExceeded)} {
				for i, n := range s.nodes {
					if d, err := n.usage.Track(s.message("ann", freshID())); answer(d, err) != want {
						t.Errorf("node %s ahead: %s, want %s", skews[i], answer(d, err), want)
					}
				}
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

func TestNodesWithWrongClocksAgreeOnExpiredKeys(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := skewedShop(t, url)
	s.credit(t, "ann", 1000)
	owner := connect(t, url)
	for i, n := range s.nodes {
		for expired, after := range map[bool]time.Duration{true: -30 * time.Minute, false: 30 * time.Minute} {
			key, _ := s.newKey(t, keys.Ingestion)
			exec(t, owner, `UPDATE api_keys SET expires_at = $3 WHERE app_id = $1 AND id = $2`,
				s.application.ID, key.ID, s.nodes[0].db.Clock().Now()+after.Milliseconds())
			for _, ask := range map[string]func(store.Usage) (metering.Decision, error){"event": n.usage.Track, "check": n.usage.Check} {
				use := s.message("ann", freshID())
				use.KeyID = key.ID
				if _, err := ask(use); fault.Is(err, fault.ExpiredAPIKey) != expired {
					t.Errorf("node %s ahead: a key that expired %s: %v", skews[i], -after, err)
				}
			}
		}
	}
	if left := s.balance(t, "ann"); left != 1000-metering.Amount(len(skews))*messagePrice {
		t.Errorf("%s is left", left)
	}
}

func TestNothingIsChargedWhileTheTimeIsUnknown(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for name, c := range map[string]struct {
		happens func(*machine)
		says    string
	}{
		"after the machine was suspended": {func(m *machine) { m.step(8 * time.Hour) }, "suspended"},
		"after its clock was set back":    {func(m *machine) { m.step(-time.Hour) }, "its clock was set"},
		"after 5 minutes unmeasured":      {func(m *machine) { m.pass(5*time.Minute + time.Second) }, "not measured for 5 minutes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(0)
			n := openNodeOn(t, url, m)
			s := shop{nodes: []node{n}}.stocked(t)
			s.credit(t, "ann", 1000)
			s.warm(t, n, "ann", true)
			held := s.balance(t, "ann")
			n.db.StopClock()
			n.usage.SetTimeouts(200*time.Millisecond, time.Minute)
			c.happens(m)
			if d, err := n.usage.Track(s.message("ann", "untimed")); err == nil {
				t.Errorf("the event is %s", answer(d, err))
			}
			if _, err := n.usage.Check(s.message("ann", "untimed")); err == nil {
				t.Error("the check is answered")
			}
			soon(t, "readiness says why", func() bool { // on a busy machine, that the database is slow
				err := n.usage.Ready(t.Context())
				return err != nil && strings.Contains(store.Reason(err), c.says)
			})
			if left := s.balance(t, "ann"); left != held {
				t.Errorf("the balance went from %s to %s", held, left)
			}
			noError(t, n.db.MeasureClock(t.Context()))
			n.usage.SetTimeouts(time.Minute, time.Minute)
			mustAccept(t, n, s.message("ann", "untimed"))
			if off := time.Duration(n.db.Clock().Now()-time.Now().UnixMilli()) * time.Millisecond; off.Abs() > time.Minute {
				t.Errorf("it is %s off", off)
			}
		})
	}
}

func TestASuspendedMachineMeasuresAgainByItself(t *testing.T) {
	t.Parallel()
	m := newMachine(0)
	n := openNodeOn(t, storetest.URL(t), m)
	s := shop{nodes: []node{n}}.stocked(t)
	s.credit(t, "ann", 1000)
	n.usage.SetTimeouts(time.Minute, time.Minute)
	for range 3 {
		m.step(8 * time.Hour)
		mustAccept(t, n, s.message("ann", freshID()))
		m.pass(6 * time.Minute)
		mustAccept(t, n, s.message("ann", freshID()))
	}
	if off := time.Duration(n.db.Clock().Now()-time.Now().UnixMilli()) * time.Millisecond; off.Abs() > time.Minute {
		t.Errorf("it is %s off", off)
	}
}

func TestTheShortestRoundTripCounts(t *testing.T) {
	t.Parallel()
	const sample, slow = "clock_timestamp", 3 * time.Second
	proxy, err := startProxy(storetest.URL(t))
	noError(t, err)
	m := newMachine(0)
	n := openNodeOn(t, proxy.URL(), m)
	t.Cleanup(proxy.Close)
	n.db.StopClock()
	measure := func(slowSamples int) error {
		t.Helper()
		m.pass(6 * time.Minute) // what was measured before no longer counts
		for range slowSamples {
			proxy.Before(sample, func() { m.pass(slow) })
		}
		noError(t, n.db.MeasureClock(t.Context()))
		_, err := n.db.Clock().Read()
		return err
	}
	// All hooks strike at one statement: each sample needs its own.
	if err := measure(1); err != nil || n.db.Clock().Uncertainty() >= slow/2 {
		t.Errorf("one slow round trip of five leaves it uncertain by %s: %v", n.db.Clock().Uncertainty(), err)
	}
	var slowEach func()
	slowEach = func() {
		m.pass(slow)
		proxy.Before(sample, slowEach)
	}
	proxy.Before(sample, slowEach)
	m.pass(6 * time.Minute)
	noError(t, n.db.MeasureClock(t.Context()))
	if _, err := n.db.Clock().Read(); err == nil || !strings.Contains(err.Error(), "within a second") {
		t.Errorf("round trips of %s are trusted: %v", slow, err)
	}
}
