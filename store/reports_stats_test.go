package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/payments/sandbox/persist"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// kiosk is a tenant with one priced feature and something to spend.
type kiosk struct {
	tenant
	key   keys.APIKey
	usage *store.Engine
	now   int64
}

func newKiosk(t *testing.T, db *store.Store) *kiosk {
	t.Helper()
	s := &kiosk{tenant: newTenant(t, db), now: moment}
	usage, err := db.OpenEngine(t.Context(), store.EngineOptions{Now: func() int64 { return s.now }})
	noError(t, err)
	t.Cleanup(usage.Close)
	usage.SetTimeouts(patience, patience)
	s.usage = usage
	s.key, _ = s.newKey(t, keys.Setup)
	s.newCredit(t, "tokens")
	s.newFeature(t, featureOf("messages", "tokens"))
	return s
}

func (s *kiosk) track(t *testing.T, identity string, quantity int64) metering.Decision {
	t.Helper()
	d, err := s.usage.Track(s.use(identity, quantity))
	noError(t, err)
	return d
}

func (s *kiosk) use(identity string, quantity int64) store.Usage {
	return store.Usage{
		Scope: s.application.Scope(), KeyID: s.key.ID, Identity: identity, FeatureKey: "messages",
		Usage: metering.Usage{TransactionID: ids.New(), EventID: ids.New().String(), Quantity: quantity},
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	yesterday, today := metering.DayOf(moment).Start-1, moment
	for i, identity := range []string{"ann", "bob"} {
		d := depositOf(identity, "tokens", 1_000, fmt.Sprint("first ", i))
		d.CreatedAt = yesterday
		s.deposit(t, d)
	}
	s.now = yesterday
	s.track(t, "ann", 2)
	s.now = today
	s.track(t, "ann", 3)
	s.track(t, "bob", 1)
	repeat := s.use("bob", 1)
	for range 2 {
		_, err := s.usage.Track(repeat)
		noError(t, err)
	}
	repeat.TransactionID = ids.New()
	if d, err := s.usage.Track(repeat); err != nil || d.Verdict != metering.Duplicate {
		t.Fatalf("got %+v, %v", d, err)
	}
	if d := s.track(t, "ann", 1_000_000); d.Code != fault.InsufficientBalance {
		t.Fatalf("got %+v", d)
	}
	_, err := s.usage.Check(s.use("unknown", 1))
	noError(t, err)
	if d, err := s.usage.Explain(s.use("unknown", 1)); err != nil || d.Code != fault.InsufficientBalance {
		t.Fatalf("got %+v, %v", d, err)
	}

	t.Run("sums today against yesterday, repeats and questions of members left out", func(t *testing.T) {
		o, err := s.Reports().Overview(t.Context(), today, 1)
		noError(t, err)
		if o.Now.Uses != 3 || o.Before.Uses != 1 || o.Now.Denied != 2 || o.Before.Denied != 0 {
			t.Errorf("uses %d and %d, denied %d and %d", o.Now.Uses, o.Before.Uses, o.Now.Denied, o.Before.Denied)
		}
		if o.Now.Active != 2 || !o.Now.ActiveExact || o.Before.Active != 1 {
			t.Errorf("active are %d and %d", o.Now.Active, o.Before.Active)
		}
		if len(o.Now.Charged) != 1 || o.Now.Charged[0].Total.String() != "35" || o.Before.Charged[0].Total.String() != "14" {
			t.Errorf("charged %v and %v", o.Now.Charged, o.Before.Charged)
		}
		if len(o.Now.Deposited) != 0 || o.Before.Deposited[0].Total.String() != "2000" || o.Before.Deposited[0].CreditKey != "tokens" {
			t.Errorf("deposited %v and %v", o.Now.Deposited, o.Before.Deposited)
		}
		if len(o.Reasons) != 1 || o.Reasons[0] != (reports.DenialReason{Code: fault.InsufficientBalance, Count: 2}) {
			t.Errorf("reasons %v", o.Reasons)
		}
		if len(o.Top) != 1 || o.Top[0] != (reports.FeatureStats{FeatureKey: "messages", Uses: 3, Denied: 2}) {
			t.Errorf("top %v", o.Top)
		}
	})

	t.Run("has a bar for every day, with nothing on most", func(t *testing.T) {
		o, err := s.Reports().Overview(t.Context(), today, 7)
		noError(t, err)
		if len(o.Days) != 7 || o.Days[5].Uses != 1 || o.Days[6].Uses != 3 || o.Days[6].Denied != 2 || o.Days[0].Uses != 0 || o.Days[0].Day != o.Since {
			t.Errorf("got %v", o.Days)
		}
		if o.Now.Active != 2 || o.Before.Active != 0 {
			t.Errorf("who was there on both days counts once: %d", o.Now.Active)
		}
	})

	t.Run("counts the last hours", func(t *testing.T) {
		stats, err := s.Reports().DayStats(t.Context(), today)
		noError(t, err)
		if stats.Uses != 4 || stats.Denials != 2 {
			t.Errorf("got %+v", stats)
		}
	})
}

// TestPagesWaitForAFlush has the node flush its stats while a page is read: what the flush
// has taken is neither in the counters nor in the database.
func TestPagesWaitForAFlush(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := newKiosk(t, openStore(t, url))
	s.deposit(t, depositOf("ann", "tokens", 1_000, "first"))
	s.track(t, "ann", 1)
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `LOCK TABLE usage_days IN EXCLUSIVE MODE`) // reads go on
	watch := connect(t, url)
	var all errgroup.Group
	all.Go(func() error { return s.db.Stats().WriteStats(t.Context()) })
	soon(t, "the flush waits", func() bool {
		return waitingFor(t, watch, "usage_days") == 1
	})
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Reports().Overview(ended, moment, 1); err == nil || !strings.Contains(err.Error(), "being flushed") {
		t.Errorf("a page that can't wait: %v", err)
	}
	noError(t, lock.Rollback(t.Context()))
	noError(t, all.Wait())
	if o, err := s.Reports().Overview(t.Context(), moment, 1); err != nil || o.Now.Uses != 1 {
		t.Errorf("the page has %d uses, %v", o.Now.Uses, err)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	db := openStore(t, storetest.URL(t))

	t.Run("of two nodes add up, while both write", func(t *testing.T) {
		t.Parallel()
		here, there := openStore(t, storetest.URL(t)), openStore(t, storetest.URL(t))
		s := newKiosk(t, here)
		other := *s
		other.App = there.App(s.application.Scope())
		var err error
		other.usage, err = there.OpenEngine(t.Context(), store.EngineOptions{Now: func() int64 { return moment }})
		noError(t, err)
		t.Cleanup(other.usage.Close)
		other.usage.SetTimeouts(patience, patience)
		s.deposit(t, depositOf("ann", "tokens", 1_000_000, "two nodes"))
		var wait sync.WaitGroup
		for range 5 {
			for _, node := range []*kiosk{s, &other} {
				wait.Go(func() {
					node.track(t, "ann", 1)
					if _, err := node.Reports().DayStats(t.Context(), moment); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wait.Wait()
		noError(t, here.Stats().WriteStats(t.Context()))
		noError(t, there.Stats().WriteStats(t.Context()))
		if f, err := s.Reports().DayStats(t.Context(), moment); err != nil || f.Uses != 10 {
			t.Errorf("got %+v, %v", f, err)
		}
	})

	t.Run("are written down when the server stops", func(t *testing.T) {
		t.Parallel()
		stopping := openStore(t, storetest.URL(t))
		s := newKiosk(t, stopping)
		stop := stopping.Stats().KeepStats(slog.New(slog.DiscardHandler))
		s.track(t, "unknown", 1)
		stop()
		stats, err := db.Reports(s.application.Scope()).DayStats(t.Context(), moment)
		if err != nil || stats.Denials != 1 {
			t.Errorf("another node sees %+v, %v", stats, err)
		}
	})

	t.Run("follow an application's clock that is ahead", func(t *testing.T) {
		t.Parallel()
		const month = 30 * 24 * 3_600_000
		s := newKiosk(t, db)
		s.track(t, "unknown", 1)
		noError(t, db.SandboxAccounts().Update(t.Context(), s.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
			return persist.Change{Head: []byte("{}"), ClockOffset: month}, nil
		}))
		if f, err := s.Reports().DayStats(t.Context(), moment); err != nil || f.Denials != 0 {
			t.Errorf("a month ago counts as today: %+v, %v", f, err)
		}
		s.track(t, "unknown", 1)
		if f, err := s.Reports().DayStats(t.Context(), moment); err != nil || f.Denials != 1 {
			t.Errorf("today does not count: %+v, %v", f, err)
		}
	})

	t.Run("wait for a database that does not take them", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		cut, owner := openStore(t, url), connect(t, url)
		s := newKiosk(t, cut)
		s.track(t, "unknown", 1)
		exec(t, owner, `REVOKE INSERT ON denial_days FROM purser_app`)
		if err := cut.Stats().WriteStats(t.Context()); err == nil {
			t.Error("they are written down without a right to")
		}
		s.track(t, "unknown", 1)
		exec(t, owner, `GRANT INSERT ON denial_days TO purser_app`)
		noError(t, cut.Stats().WriteStats(t.Context()))
		if f, err := s.Reports().DayStats(t.Context(), moment); err != nil || f.Denials != 2 {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

func TestRecentRequests(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	note := func(status int, code fault.Code) reports.Request {
		r := reports.Request{
			ID: ids.New(), At: moment, Method: "POST", Route: "/v1/events", Status: status, Code: code, TookMicros: 1_500, KeyID: s.key.ID,
			Authenticated: status != 200,
		}
		s.db.Stats().RecordRequest(s.application.Scope(), r)
		r.Authenticated = false // it is not read back
		return r
	}

	t.Run("are listed newest first, with the key's name and no secret", func(t *testing.T) {
		note(200, "")
		failed := note(409, fault.InsufficientBalance)
		list, more, err := s.Reports().Requests(t.Context(), reports.RequestQuery{Page: store.Page{Limit: 10}})
		noError(t, err)
		failed.KeyName, failed.KeyMasked = s.key.Name, s.key.Masked()
		if len(list) != 2 || more != nil || list[0] != failed {
			t.Errorf("got %+v", list)
		}
		list, _, err = s.Reports().Requests(t.Context(), reports.RequestQuery{Failed: true, Page: store.Page{Limit: 10}})
		if err != nil || len(list) != 1 || list[0] != failed {
			t.Errorf("failures are %+v, %v", list, err)
		}
	})

	t.Run("are all counted, and kept up to a limit", func(t *testing.T) {
		for range store.KeptFailures + 5 {
			note(400, fault.InvalidRequest)
		}
		for range store.KeptSuccesses + 5 {
			note(200, "")
		}
		list, _, err := s.Reports().Requests(t.Context(), reports.RequestQuery{Page: store.Page{Limit: 1000}})
		noError(t, err)
		if len(list) != 2+store.KeptFailures+store.KeptSuccesses {
			t.Errorf("%d are kept", len(list))
		}
		stats, err := s.Reports().DayStats(t.Context(), moment)
		if err != nil || stats.Requests != 2+store.KeptFailures+5+store.KeptSuccesses+5 || stats.Failures != 1+store.KeptFailures+5 {
			t.Errorf("%+v are counted, %v", stats, err)
		}
	})

	t.Run("take the place of the oldest", func(t *testing.T) {
		var last reports.Request
		for range store.RingSize/store.KeptFailures + 1 {
			for range store.KeptFailures {
				last = note(400, fault.InvalidRequest)
			}
			noError(t, s.db.Stats().WriteStats(t.Context()))
		}
		list, _, err := s.Reports().Requests(t.Context(), reports.RequestQuery{Page: store.Page{Limit: store.RingSize + 1}})
		noError(t, err)
		if len(list) != store.RingSize || list[0].ID != last.ID {
			t.Errorf("%d are kept, the newest is %v", len(list), list[0].ID)
		}
	})
}

func TestFailedRequestsThatCannotBeStoredHoldBackNoCounter(t *testing.T) {
	t.Parallel()
	address := storetest.FreshURL(t)
	db, owner := openStore(t, address), connect(t, address)
	s := newKiosk(t, db)
	exec(t, owner, `ALTER TABLE request_failures ADD CONSTRAINT nothing_is_stored CHECK (false) NOT VALID`)
	note := func() {
		db.Stats().RecordRequest(s.application.Scope(), reports.Request{
			ID: ids.New(), At: moment, Method: "POST", Route: "/v1/events", Status: 409, Code: fault.InsufficientBalance, KeyID: s.key.ID, Authenticated: true,
		})
	}
	note()
	if err := db.Stats().WriteStats(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing_is_stored") {
		t.Errorf("dropped failures are not reported: %v", err)
	}
	noError(t, db.Stats().WriteStats(t.Context())) // nothing is left to write
	note()
	if list, _, err := s.Reports().Requests(t.Context(), reports.RequestQuery{Page: store.Page{Limit: 10}}); err != nil || len(list) != 2 {
		t.Errorf("the page lists %d requests, %v", len(list), err)
	}
	if counted := texts(t, owner, `SELECT sum(failures)::text FROM activity_hours WHERE app_id = $1`, s.application.ID); counted[0] != "2" {
		t.Errorf("%s failures are counted", counted[0])
	}
}

func TestFailedRequestsAreKeptForADay(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{KeepFailures: 24 * time.Hour})
	noError(t, err)
	t.Cleanup(db.Close)
	s := newKiosk(t, db)
	now := db.Clock().Now()
	minute := now - now%60_000
	note := func(id ids.ID, at int64, authenticated bool) {
		db.Stats().RecordRequest(s.application.Scope(), reports.Request{
			ID: id, At: at, Method: "POST", Route: "/v1/events", Status: 409, Code: fault.InsufficientBalance, KeyID: s.key.ID,
			Identity: "ann", Feature: "chat", Authenticated: authenticated,
		})
	}
	failures := func(t *testing.T) []reports.Request {
		t.Helper()
		list, _, err := s.Reports().Requests(t.Context(), reports.RequestQuery{Failed: true, Page: store.Page{Limit: 1000}})
		noError(t, err)
		return list
	}

	t.Run("with whom and what they were about", func(t *testing.T) {
		note(ids.New(), minute, true)
		if list := failures(t); len(list) != 1 || list[0].Identity != "ann" || list[0].Feature != "chat" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("and not those of strangers", func(t *testing.T) {
		note(ids.New(), minute, false)
		if list := failures(t); len(list) != 1 {
			t.Errorf("%d are kept", len(list))
		}
	})
	t.Run("a bounded number in a minute, over many writings", func(t *testing.T) {
		random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
		for range 3 * store.FailuresPerMinute {
			note(ids.New(), minute, true)
			if random.IntN(10) == 0 {
				noError(t, db.Stats().WriteStats(t.Context()))
			}
		}
		if list := failures(t); len(list) != store.FailuresPerMinute {
			t.Errorf("%d are kept", len(list))
		}
		note(ids.New(), minute+60_000, true)
		if list := failures(t); len(list) != store.FailuresPerMinute+1 {
			t.Errorf("in the next minute %d are kept", len(list))
		}
	})
	t.Run("also while slow requests of the minute before end between others", func(t *testing.T) {
		for range 2 * store.FailuresPerMinute {
			note(ids.New(), minute, true)
			note(ids.New(), minute+60_000, true)
		}
		if list := failures(t); len(list) != 2*store.FailuresPerMinute {
			t.Errorf("%d of two minutes are kept", len(list))
		}
	})
	t.Run("also with names that cannot be stored", func(t *testing.T) {
		for name, want := range map[string]string{"\xff\xfe": "\ufffd", "a\x00b": "a\ufffdb", strings.Repeat("x", 5_000): strings.Repeat("x", 800)} {
			hostile := reports.Request{
				ID: ids.New(), At: minute + 180_000, Method: "GET", Route: "/v1/wallets/:identity", Status: 400, Code: fault.InvalidRequest,
				KeyID: s.key.ID, Identity: name, Feature: name, Authenticated: true,
			}
			db.Stats().RecordRequest(s.application.Scope(), hostile)
			list := failures(t)
			if i := slices.IndexFunc(list, func(r reports.Request) bool { return r.ID == hostile.ID }); i < 0 || list[i].Identity != want || list[i].Feature != want {
				t.Errorf("%q is not kept", name)
			}
		}
	})
	t.Run("and one with another code beside a flood of them", func(t *testing.T) {
		rare := reports.Request{
			ID: ids.New(), At: minute, Method: "POST", Route: "/v1/plans", Status: 403, Code: fault.PermissionDenied, KeyID: s.key.ID, Authenticated: true,
		}
		for range 2 * store.FailuresPerMinute {
			note(ids.New(), minute, true)
		}
		db.Stats().RecordRequest(s.application.Scope(), rare)
		if list := failures(t); !slices.ContainsFunc(list, func(r reports.Request) bool { return r.ID == rare.ID }) {
			t.Error("it is not listed")
		}
	})
	t.Run("and not those of the day before", func(t *testing.T) {
		old := store.IDAt(now - 25*time.Hour.Milliseconds())
		note(old, minute+240_000, true)
		if list := failures(t); slices.ContainsFunc(list, func(r reports.Request) bool { return r.ID == old }) {
			t.Error("it is listed")
		}
		owner := connect(t, storetest.URL(t))
		if left := texts(t, owner, `SELECT id::text FROM request_failures WHERE app_id = $1 AND id = $2`, s.application.ID.String(), old.String()); len(left) != 0 {
			t.Error("it is stored")
		}
	})
}
