package store_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestWork(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	invoice := func(dueAt int64) store.Job { return store.Job{Kind: store.JobInvoice, Object: "in_1", DueAt: dueAt} }
	only := func(t *testing.T, a tenant, now int64) store.Job {
		t.Helper()
		due, err := a.DueJobs(t.Context(), now, 10)
		noError(t, err)
		if len(due) != 1 {
			t.Fatalf("%+v is due", due)
		}
		return due[0]
	}

	t.Run("is due when it was first asked for", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Enqueue(t.Context(), invoice(50), invoice(40)))
		noError(t, a.Enqueue(t.Context(), invoice(30)))
		noError(t, a.Enqueue(t.Context(), invoice(60)))
		if due, err := a.DueJobs(t.Context(), 29, 10); err != nil || len(due) != 0 {
			t.Errorf("%+v, %v", due, err)
		}
		if w := only(t, a, 30); w.DueAt != 30 || w.Tries != 0 {
			t.Errorf("%+v", w)
		}
		if at, found, err := a.NextJobDue(t.Context()); err != nil || !found || at != 30 {
			t.Errorf("%d, %v, %v", at, found, err)
		}
	})

	t.Run("comes the longest waiting first, and no more than asked for", func(t *testing.T) {
		a := newTenant(t, db)
		for i, kind := range []store.JobKind{store.JobCharge, store.JobSession, store.JobPlan} {
			noError(t, a.Enqueue(t.Context(), store.Job{Kind: kind, Object: "x", DueAt: int64(30 - i)}))
		}
		due, err := a.DueJobs(t.Context(), 100, 2)
		if err != nil || len(due) != 2 || due[0].Kind != store.JobPlan || due[1].Kind != store.JobSession {
			t.Errorf("%+v, %v", due, err)
		}
	})

	t.Run("is gone once it is done", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Enqueue(t.Context(), invoice(0)))
		noError(t, a.FinishJob(t.Context(), only(t, a, 0), 0))
		if _, found, err := a.NextJobDue(t.Context()); err != nil || found {
			t.Error(found, err)
		}
	})

	t.Run("stays when it was asked for again meanwhile", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Enqueue(t.Context(), invoice(0)))
		taken := only(t, a, 0)
		noError(t, a.Enqueue(t.Context(), invoice(5)))
		noError(t, a.FinishJob(t.Context(), taken, 0))
		noError(t, a.FinishJob(t.Context(), taken, 1000))
		if w := only(t, a, 0); w.Version == taken.Version {
			t.Errorf("%+v", w)
		}
	})

	t.Run("stays when another did it and it was asked for anew", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Enqueue(t.Context(), invoice(0)))
		slow := only(t, a, 0)
		noError(t, a.FinishJob(t.Context(), slow, 0))
		noError(t, a.Enqueue(t.Context(), invoice(0)))
		noError(t, a.FinishJob(t.Context(), slow, 0))
		only(t, a, 0)
	})

	t.Run("waits longer after each failure, and says why", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Enqueue(t.Context(), invoice(0)))
		noError(t, a.RetryJob(t.Context(), only(t, a, 0), "no answer", 10))
		noError(t, a.RetryJob(t.Context(), only(t, a, 10), "no answer yet", 20))
		if w := only(t, a, 20); w.Tries != 2 || w.LastError != "no answer yet" || w.DueAt != 20 {
			t.Errorf("%+v", w)
		}
		failing, err := a.FailingJobs(t.Context(), 10)
		if err != nil || len(failing) != 1 {
			t.Errorf("%+v, %v", failing, err)
		}
		noError(t, a.FinishJob(t.Context(), failing[0], 30))
		if w := only(t, a, 30); w.Tries != 0 || w.LastError != "" {
			t.Errorf("%+v", w)
		}
	})

	t.Run("that is asked for again is not put off", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Enqueue(t.Context(), invoice(0)))
		taken := only(t, a, 0)
		noError(t, a.Enqueue(t.Context(), invoice(5)))
		noError(t, a.RetryJob(t.Context(), taken, "no answer", 1000))
		if w := only(t, a, 5); w.Tries != 1 {
			t.Errorf("%+v", w)
		}
	})
}

func TestHintsLeadToApplicationsWithWork(t *testing.T) {
	t.Parallel()
	// A database of its own: the list is that of all applications.
	db := openStore(t, storetest.FreshURL(t))
	a, b := newTenant(t, db), newTenant(t, db)
	want := func(t *testing.T, realNow int64, apps ...tenant) {
		t.Helper()
		got, err := db.Directory().ScopesWithJobs(t.Context(), realNow, 10)
		noError(t, err)
		var expected []tenancy.Scope
		for _, app := range apps {
			expected = append(expected, app.application.Scope())
		}
		if !slices.Equal(got, expected) {
			t.Errorf("%v have work, not %v", got, expected)
		}
	}
	session := store.Job{Kind: store.JobSession, Object: "cs_1", DueAt: 100}

	want(t, 1000)
	noError(t, a.Enqueue(t.Context(), session))
	noError(t, b.Enqueue(t.Context(), store.Job{Kind: store.JobSession, Object: "cs_1", DueAt: 50}))
	want(t, 49)
	want(t, 50, b)
	want(t, 100, b, a)

	t.Run("until it is done", func(t *testing.T) {
		due, err := b.DueJobs(t.Context(), 50, 10)
		noError(t, err)
		noError(t, b.RetryJob(t.Context(), due[0], "no", 120))
		want(t, 119, a)
		want(t, 120, a, b)
		noError(t, b.FinishJob(t.Context(), due[0], 0))
		want(t, 1000, a)
	})

	t.Run("by the application's clock", func(t *testing.T) {
		noError(t, db.SandboxAccounts().Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (store.Change, error) {
			return store.Change{ClockOffset: 60}, nil
		}))
		want(t, 39)
		want(t, 40, a)
		noError(t, a.Enqueue(t.Context(), store.Job{Kind: store.JobPlan, Object: "p", DueAt: 70}))
		want(t, 10, a)
	})

	t.Run("also when many ask at once", func(t *testing.T) {
		var wait sync.WaitGroup
		for i := range 10 {
			wait.Go(func() {
				if err := b.Enqueue(t.Context(), store.Job{Kind: store.JobCharge, Object: ids.New().String(), DueAt: int64(5 + i)}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		want(t, 5, b)
	})
}

func TestLeases(t *testing.T) {
	t.Parallel()
	a := newTenant(t, storetest.Open(t))
	one, two := ids.New(), ids.New()
	take := func(holder ids.ID, length time.Duration) (store.Fence, bool) {
		t.Helper()
		f, held, err := a.Lease(t.Context(), "identity:ann", holder, length)
		noError(t, err)
		return f, held
	}
	first, held := take(one, time.Hour)
	if !held {
		t.Fatal("a free lease is not to be had")
	}
	if _, held := take(two, time.Hour); held {
		t.Error("two hold it")
	}
	again, held := take(one, time.Hour)
	if !held || again.Number <= first.Number {
		t.Errorf("its holder does not get it again: %v, %v", again, held)
	}
	noError(t, a.Release(t.Context(), first)) // which it is no more
	if _, held := take(two, time.Hour); held {
		t.Error("an old fence has released it")
	}
	if _, held := take(one, 0); !held { // and it has run out
		t.Error("its holder cannot shorten it")
	}
	late, held := take(two, time.Hour)
	if !held || late.Number <= again.Number {
		t.Errorf("one that has run out is not to be had: %v, %v", late, held)
	}
	noError(t, a.Release(t.Context(), late))
	// As if the clock had gone back since.
	exec(t, connect(t, storetest.URL(t)), `UPDATE leases SET held_until = held_until + 3600000 WHERE app_id = $1`, a.application.ID)
	if _, held := take(one, time.Hour); !held {
		t.Error("a released one is not to be had")
	}

	t.Run("go to one of many", func(t *testing.T) {
		held := make(chan bool, 10)
		var wait sync.WaitGroup
		for range cap(held) {
			wait.Go(func() {
				_, got, err := a.Lease(t.Context(), "identity:bob", ids.New(), time.Hour)
				if err != nil {
					t.Error(err)
				}
				held <- got
			})
		}
		wait.Wait()
		close(held)
		holders := 0
		for got := range held {
			if got {
				holders++
			}
		}
		if holders != 1 {
			t.Errorf("%d hold it", holders)
		}
	})
}

// A lease whose row another transaction has locked is as good as held: the caller
// polls it again, and an error would end its wait.
func TestALeaseThatCannotBeLockedIsNotHeld(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		lock time.Duration
		end  func(t *testing.T, blocked func() int32)
	}{
		"when the lock is not released in time": {time.Millisecond, func(*testing.T, func() int32) {}},
		"when the statement is canceled": {time.Hour, func(t *testing.T, blocked func() int32) {
			exec(t, connect(t, storetest.URL(t)), `SELECT pg_cancel_backend($1)`, blocked())
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			db, err := store.OpenWithLockTimeout(t.Context(), storetest.URL(t), c.lock)
			noError(t, err)
			t.Cleanup(db.Close)
			a, holder := newTenant(t, storetest.Open(t)), ids.New()
			_, _, err = a.Lease(t.Context(), "identity:ann", holder, 0)
			noError(t, err)
			blocked, unlock := storetest.LockLeases(t, storetest.URL(t), a.application.ID.String())
			type result struct {
				held bool
				err  error
			}
			ended := make(chan result)
			go func() {
				_, held, err := db.App(a.application.Scope()).Lease(t.Context(), "identity:ann", ids.New(), time.Hour)
				ended <- result{held, err}
			}()
			c.end(t, blocked)
			if got := <-ended; got.held || got.err != nil {
				t.Errorf("it is held: %v, %v", got.held, got.err)
			}
			unlock()
			if _, held, err := a.Lease(t.Context(), "identity:ann", holder, time.Hour); !held || err != nil {
				t.Errorf("after the lock it is held: %v, %v", held, err)
			}
		})
	}
}

func TestWebhooksAreTakenOnce(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	event := store.WebhookEvent{ID: "evt_1", Type: "invoice.paid", Object: "in_1", APIVersion: "2024-06-20", Live: true, ReceivedAt: moment, Outcome: "queued"}
	work := []store.Job{{Kind: store.JobInvoice, Object: "in_1", DueAt: moment}}
	for i := range 3 {
		first, err := s.ReceiveEvent(t.Context(), s.connection.ID, event, work)
		if err != nil || first != (i == 0) {
			t.Errorf("%v, %v", first, err)
		}
		due, err := s.DueJobs(t.Context(), moment, 100)
		noError(t, err)
		if !hasWork(due, store.JobInvoice, "in_1") {
			t.Error("a repeated webhook wakes nobody")
		}
		for _, w := range due {
			noError(t, s.FinishJob(t.Context(), w, 0))
		}
	}
	if unseen, err := s.UnseenEvents(t.Context(), s.connection.ID, []string{"evt_0", "evt_1", "evt_2"}); err != nil || !slices.Equal(unseen, []string{"evt_0", "evt_2"}) {
		t.Errorf("%v, %v", unseen, err)
	}
	list, more, err := s.WebhookEvents(t.Context(), store.Page{Limit: 10})
	if err != nil || more || len(list) != 1 || list[0].WebhookEvent != event {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := s.ReceiveEvent(t.Context(), ids.New(), event, nil); err == nil {
		t.Error("a webhook of no connection was taken")
	}
}

func TestPlansAreToldToTheProvider(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	plan := func() billing.Plan {
		t.Helper()
		p, err := s.PlanByID(t.Context(), s.plan.ID)
		noError(t, err)
		return p
	}
	patch := func(patch billing.PlanPatch) billing.Plan {
		t.Helper()
		p, err := s.UpdatePlan(t.Context(), "pro", patch)
		noError(t, err)
		return p
	}
	work := func(kind store.JobKind, object string, at int64) bool {
		t.Helper()
		due, err := s.DueJobs(t.Context(), at, 100)
		noError(t, err)
		return hasWork(due, kind, object)
	}
	synced := func(began billing.Plan, price string, now int64) billing.Plan {
		t.Helper()
		p, err := s.PlanSynced(t.Context(), s.lease(t, "plan"), store.SyncedPlan{
			PlanID: began.ID, Began: began.Sync, Connection: s.connection.ID, ProductID: "prod_pro", PriceID: price, Terms: began.Terms(),
		}, now)
		noError(t, err)
		return p
	}
	due, err := s.DueJobs(t.Context(), moment, 100)
	noError(t, err)
	for _, w := range due {
		noError(t, s.FinishJob(t.Context(), w, 0))
	}

	if p := plan(); p.Sync.Status != billing.SyncDone || p.Sync.PriceID != "price_pro" {
		t.Fatalf("%+v", p.Sync)
	}
	grants := []billing.Grant{}
	patch(billing.PlanPatch{Grants: &grants})
	if work(store.JobPlan, s.plan.ID.String(), moment) {
		t.Error("the provider is told of grants")
	}
	raised := patch(billing.PlanPatch{AmountCents: new(int64(3900))})
	if !work(store.JobPlan, s.plan.ID.String(), moment) || raised.Sync.Status != billing.SyncPending {
		t.Error("the provider is not told of a new price")
	}
	noError(t, s.PlanRefused(t.Context(), s.lease(t, "plan"), s.plan.ID, raised.Sync, "no such currency"))
	if p := plan(); p.Sync.Status != billing.SyncFailed || p.Sync.Error != "no such currency" {
		t.Errorf("%+v", p.Sync)
	}
	// It changes once more while the provider is told of the change before.
	raisedAgain := patch(billing.PlanPatch{AmountCents: new(int64(4900))})
	if p := synced(raised, "price_2", moment); p.Sync.Status != billing.SyncPending || p.Sync.PriceID != "" {
		t.Errorf("an old price was taken for the new one: %+v", p.Sync)
	}
	if p := synced(raisedAgain, "price_3", moment+1); p.Sync.Status != billing.SyncDone || p.Sync.PriceID != "price_3" {
		t.Errorf("%+v", p.Sync)
	}
	for price, at := range map[string]int64{"price_pro": moment + billing.PriceArchiveDelay, "price_2": moment + 1 + billing.PriceArchiveDelay} {
		if work(store.JobArchive, price, at-1) || !work(store.JobArchive, price, at) {
			t.Errorf("%s is taken off sale at another time", price)
		}
		noError(t, s.PriceArchived(t.Context(), price, at))
	}
	elsewhere := store.SyncedPlan{PlanID: s.plan.ID, Began: raisedAgain.Sync, Connection: ids.New(), ProductID: "prod_x", PriceID: "price_x", Terms: raisedAgain.Terms()}
	if p, err := s.PlanSynced(t.Context(), s.lease(t, "plan"), elsewhere, moment); err != nil || p.Sync.PriceID != "price_3" || p.Sync.ProductID != "prod_pro" {
		t.Errorf("another account's price was taken: %+v, %v", p.Sync, err)
	}
	if work(store.JobArchive, "price_3", 1<<60) {
		t.Error("the current price is taken off sale")
	}
	noError(t, s.EnqueuePlans(t.Context(), moment))
	if !work(store.JobPlan, s.plan.ID.String(), moment) {
		t.Error("not every plan is looked at")
	}
}
