package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestWork(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	invoice := func(dueAt int64) queue.Job { return queue.Job{Kind: queue.JobInvoice, Object: "in_1", DueAt: dueAt} }
	only := func(t *testing.T, a tenant, now int64) queue.Job {
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
		noError(t, a.Queue().Enqueue(t.Context(), invoice(50), invoice(40)))
		noError(t, a.Queue().Enqueue(t.Context(), invoice(30)))
		noError(t, a.Queue().Enqueue(t.Context(), invoice(60)))
		if due, err := a.DueJobs(t.Context(), 29, 10); err != nil || len(due) != 0 {
			t.Errorf("%+v, %v", due, err)
		}
		if w := only(t, a, 30); w.DueAt != 30 || w.Tries != 0 {
			t.Errorf("%+v", w)
		}
		for now, want := range map[int64]bool{29: false, 30: true} {
			if due, err := a.Queue().HasJobsDue(t.Context(), now); err != nil || due != want {
				t.Errorf("at %d: %v, %v", now, due, err)
			}
		}
	})

	t.Run("comes the longest waiting first, and no more than asked for", func(t *testing.T) {
		a := newTenant(t, db)
		for i, kind := range []queue.JobKind{queue.JobCharge, queue.JobSession, queue.JobPlan} {
			noError(t, a.Queue().Enqueue(t.Context(), queue.Job{Kind: kind, Object: "x", DueAt: int64(30 - i)}))
		}
		due, err := a.DueJobs(t.Context(), 100, 2)
		if err != nil || len(due) != 2 || due[0].Kind != queue.JobPlan || due[1].Kind != queue.JobSession {
			t.Errorf("%+v, %v", due, err)
		}
	})

	t.Run("is gone once it is done", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		noError(t, a.Queue().FinishJob(t.Context(), only(t, a, 0), 0, 0))
		if due, err := a.Queue().HasJobsDue(t.Context(), 1<<60); err != nil || due {
			t.Error(due, err)
		}
	})

	t.Run("stays when it was asked for again meanwhile", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		taken := only(t, a, 0)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(5)))
		noError(t, a.Queue().FinishJob(t.Context(), taken, 0, 0))
		noError(t, a.Queue().FinishJob(t.Context(), taken, 1000, 0))
		if w := only(t, a, 0); w.Version == taken.Version {
			t.Errorf("%+v", w)
		}
	})

	t.Run("that was asked for again meanwhile is due since its end", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		taken := only(t, a, 0)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(5)))
		noError(t, a.Queue().FinishJob(t.Context(), taken, 1000, 7))
		if w := only(t, a, 7); w.DueAt != 7 {
			t.Errorf("%+v", w)
		}
	})

	t.Run("stays when another node ran it and it was requested again", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		slow := only(t, a, 0)
		noError(t, a.Queue().FinishJob(t.Context(), slow, 0, 0))
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		noError(t, a.Queue().FinishJob(t.Context(), slow, 0, 0))
		only(t, a, 0)
	})

	t.Run("waits longer after each failure, and says why", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		noError(t, a.Queue().RetryJob(t.Context(), only(t, a, 0), "no answer", 10))
		noError(t, a.Queue().RetryJob(t.Context(), only(t, a, 10), "no answer yet", 20))
		if w := only(t, a, 20); w.Tries != 2 || w.LastError != "no answer yet" || w.DueAt != 20 {
			t.Errorf("%+v", w)
		}
		failing, err := a.Queue().FailingJobs(t.Context(), 10)
		if err != nil || len(failing) != 1 {
			t.Errorf("%+v, %v", failing, err)
		}
		noError(t, a.Queue().FinishJob(t.Context(), only(t, a, 20), 30, 0))
		if w := only(t, a, 30); w.Tries != 0 || w.LastError != "" {
			t.Errorf("%+v", w)
		}
	})

	t.Run("that fails while it is retried by hand is retried once more", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		noError(t, a.Queue().RetryJob(t.Context(), only(t, a, 0), "no answer", 10))
		running := only(t, a, 10)
		noError(t, a.Queue().RetryJobNow(t.Context(), queue.JobInvoice, "in_1", 10))
		noError(t, a.Queue().RetryJob(t.Context(), running, "refused", queue.StoppedJob))
		only(t, a, 10)
	})

	t.Run("that fails while its account gets a new key runs with that", func(t *testing.T) {
		a := newTenant(t, db)
		c := a.connect(t)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		running := only(t, a, 0)
		_, err := a.Accounts().PutConnection(t.Context(), c, 10)
		noError(t, err)
		noError(t, a.Queue().RetryJob(t.Context(), running, "the key is not valid", queue.StoppedJob))
		if w := only(t, a, 10); w.Tries != 1 {
			t.Errorf("%+v", w)
		}
	})

	t.Run("that is put off while it runs stays put off with a new key", func(t *testing.T) {
		a := newTenant(t, db)
		c := a.connect(t)
		noError(t, a.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobArchive, Object: "price_1"}))
		running := only(t, a, 0)
		noError(t, a.Payments().DelayArchive(t.Context(), "price_1", 1_000))
		_, err := a.Accounts().PutConnection(t.Context(), c, 10)
		noError(t, err)
		noError(t, a.Queue().FinishJob(t.Context(), running, 0, 0))
		if due, err := a.DueJobs(t.Context(), 999, 10); err != nil || len(due) != 0 {
			t.Errorf("%+v, %v", due, err)
		}
		only(t, a, 1_000)
	})

	t.Run("that is asked for again is not put off", func(t *testing.T) {
		a := newTenant(t, db)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(0)))
		taken := only(t, a, 0)
		noError(t, a.Queue().Enqueue(t.Context(), invoice(5)))
		noError(t, a.Queue().RetryJob(t.Context(), taken, "no answer", 1000))
		if w := only(t, a, 5); w.Tries != 1 {
			t.Errorf("%+v", w)
		}
	})
}

func TestClaimedJobsAreLeased(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	kinds := []queue.JobKind{queue.JobInvoice, queue.JobCharge}
	claim := func(t *testing.T, a tenant, most int, lease time.Duration, of ...queue.JobKind) queue.JobBatch {
		t.Helper()
		if len(of) == 0 {
			of = kinds
		}
		batch, err := a.Queue().ClaimJobs(t.Context(), queue.ClaimInput{Kinds: of, Now: 100, Most: most, Lease: lease})
		noError(t, err)
		return batch
	}
	names := func(batch queue.JobBatch) (list []string) {
		for _, job := range batch.Jobs {
			list = append(list, job.Object)
		}
		return list
	}
	enqueue := func(t *testing.T, a tenant, objects ...string) {
		t.Helper()
		for i, object := range objects {
			noError(t, a.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobInvoice, Object: object, DueAt: int64(i)}))
		}
	}

	t.Run("one claim at a time has a job", func(t *testing.T) {
		a := newTenant(t, db)
		enqueue(t, a, "in_1", "in_2", "in_3")
		first := claim(t, a, 2, time.Hour)
		if got := names(first); !slices.Equal(got, []string{"in_1", "in_2"}) || first.HeldElsewhere {
			t.Errorf("the first claim has %v, held elsewhere: %v", got, first.HeldElsewhere)
		}
		if got := names(claim(t, a, 2, time.Hour)); !slices.Equal(got, []string{"in_3"}) {
			t.Errorf("the second claim has %v", got)
		}
		if third := claim(t, a, 2, time.Hour); len(third.Jobs) != 0 || !third.HeldElsewhere {
			t.Errorf("the third claim has %+v", third)
		}
		noError(t, a.Queue().ReleaseJobs(t.Context(), first))
		if got := names(claim(t, a, 5, time.Hour)); !slices.Equal(got, []string{"in_1", "in_2"}) {
			t.Errorf("after a release the claim has %v", got)
		}
	})
	t.Run("an expired lease is another claim's", func(t *testing.T) {
		a := newTenant(t, db)
		enqueue(t, a, "in_1")
		dead := claim(t, a, 1, 0)
		next := claim(t, a, 1, time.Hour)
		if len(next.Jobs) != 1 || next.LeaseID == dead.LeaseID {
			t.Fatalf("the next claim has %+v", next)
		}
		noError(t, a.Queue().FinishJob(t.Context(), dead.Jobs[0], 0, 0))
		noError(t, a.Queue().RetryJob(t.Context(), dead.Jobs[0], "late", 1000))
		noError(t, a.Queue().RenewJobs(t.Context(), dead, time.Hour))
		noError(t, a.Queue().ReleaseJobs(t.Context(), dead))
		if again := claim(t, a, 1, time.Hour); len(again.Jobs) != 0 || !again.HeldElsewhere {
			t.Errorf("a claim that lost its lease changed the job: %+v", again)
		}
		noError(t, a.Queue().FinishJob(t.Context(), next.Jobs[0], 0, 0))
		if due, err := a.Queue().HasJobsDue(t.Context(), 1<<60); err != nil || due {
			t.Error("the job is still there", err)
		}
	})
	t.Run("a renewed lease lasts", func(t *testing.T) {
		a := newTenant(t, db)
		enqueue(t, a, "in_1")
		held := claim(t, a, 1, 0)
		noError(t, a.Queue().RenewJobs(t.Context(), held, time.Hour))
		if got := claim(t, a, 1, time.Hour); len(got.Jobs) != 0 {
			t.Errorf("another claim has %+v", got)
		}
	})
	t.Run("a job that is requested again while it runs is free when it ends", func(t *testing.T) {
		a := newTenant(t, db)
		enqueue(t, a, "in_1")
		running := claim(t, a, 1, time.Hour)
		enqueue(t, a, "in_1")
		if got := claim(t, a, 1, time.Hour); len(got.Jobs) != 0 {
			t.Errorf("it runs twice at once: %+v", got)
		}
		noError(t, a.Queue().FinishJob(t.Context(), running.Jobs[0], 0, 0))
		if got := claim(t, a, 1, time.Hour); len(got.Jobs) != 1 {
			t.Error("the second request is lost")
		}
	})
	t.Run("other kinds are left to other nodes", func(t *testing.T) {
		a := newTenant(t, db)
		enqueue(t, a, "in_1")
		if got := claim(t, a, 1, time.Hour, queue.JobCharge); len(got.Jobs) != 0 || got.HeldElsewhere {
			t.Errorf("the claim has %+v", got)
		}
	})
	t.Run("many claims at once share the jobs", func(t *testing.T) {
		a := newTenant(t, db)
		const number = 40
		for i := range number {
			enqueue(t, a, "in_"+string(rune('A'+i)))
		}
		var mu sync.Mutex
		claimed := map[string]int{}
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for {
					batch, err := a.Queue().ClaimJobs(t.Context(), queue.ClaimInput{Kinds: kinds, Now: 100, Most: 3, Lease: time.Hour})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					twice := false
					for _, job := range batch.Jobs {
						claimed[job.Object]++
						twice = twice || claimed[job.Object] > 1
					}
					left := number - len(claimed)
					mu.Unlock()
					if left == 0 || twice {
						return
					}
				}
			})
		}
		wait.Wait()
		for object, times := range claimed {
			if times != 1 {
				t.Errorf("%s was claimed %d times", object, times)
			}
		}
	})
}

// The statements are those of the release before jobs were leased. During an upgrade
// its nodes work on the same queue.
func TestAnEarlierReleaseSharesTheQueue(t *testing.T) {
	t.Parallel()
	a := newTenant(t, storetest.Open(t))
	app, conn := a.application, connect(t, storetest.URL(t))
	claim := func() queue.JobBatch {
		t.Helper()
		batch, err := a.Queue().ClaimJobs(t.Context(), queue.ClaimInput{Kinds: []queue.JobKind{queue.JobInvoice}, Now: 100, Most: 10, Lease: time.Hour})
		noError(t, err)
		return batch
	}
	enqueue := func() {
		t.Helper()
		exec(t, conn, `
			INSERT INTO work_queue (app_id, org_id, kind, object, connection_id, due_at, version) VALUES ($1, $2, 'invoice', 'in_1', NULL, 5, $3)
			ON CONFLICT (app_id, kind, object) DO UPDATE SET due_at = least(work_queue.due_at, excluded.due_at), version = excluded.version`,
			app.ID, app.OrgID, ids.New())
	}
	enqueue()
	taken := claim()
	if len(taken.Jobs) != 1 {
		t.Fatalf("its job is not found: %+v", taken)
	}
	exec(t, conn, `DELETE FROM work_queue WHERE app_id = $1 AND kind = 'invoice' AND object = 'in_1' AND version = $2`, app.ID, taken.Jobs[0].Version)
	noError(t, a.Queue().FinishJob(t.Context(), taken.Jobs[0], 0, 0))
	enqueue()
	taken = claim()
	exec(t, conn, `
		UPDATE work_queue SET due_at = 50, tries = 0, last_error = NULL, failing_since = NULL
		WHERE app_id = $1 AND kind = 'invoice' AND object = 'in_1' AND version = $2`, app.ID, taken.Jobs[0].Version)
	noError(t, a.Queue().FinishJob(t.Context(), taken.Jobs[0], 60, 0))
	if again := claim(); len(again.Jobs) != 1 || again.Jobs[0].DueAt != 60 {
		t.Errorf("the job is %+v", again)
	}
}

func TestAPeriodicTaskRunsOnOneNode(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	name := "test " + ids.New().String()
	claim := func(lease time.Duration) (queue.TaskClaim, bool) {
		t.Helper()
		claim, claimed, err := db.Queues().ClaimTask(t.Context(), name, lease)
		noError(t, err)
		return claim, claimed
	}
	first, claimed := claim(time.Hour)
	if !claimed {
		t.Fatal("a new task is not due")
	}
	if _, claimed := claim(time.Hour); claimed {
		t.Error("two nodes run it")
	}
	noError(t, db.Queues().FinishTask(t.Context(), first, 0, "no answer"))
	second, claimed := claim(0)
	if !claimed || second.Tries != 1 {
		t.Errorf("after a failure: %v, %d tries", claimed, second.Tries)
	}
	third, claimed := claim(time.Hour)
	if !claimed {
		t.Error("a task whose node died is not run again")
	}
	noError(t, db.Queues().FinishTask(t.Context(), second, 0, ""))
	if _, claimed := claim(time.Hour); claimed {
		t.Error("a node that lost its lease has ended the run of another")
	}
	noError(t, db.Queues().FinishTask(t.Context(), third, time.Hour, ""))
	if _, claimed := claim(time.Hour); claimed {
		t.Error("it runs before its interval is over")
	}
	var wait sync.WaitGroup
	runs := make(chan bool, 10)
	other := "test " + ids.New().String()
	for range cap(runs) {
		wait.Go(func() {
			_, claimed, err := db.Queues().ClaimTask(t.Context(), other, time.Hour)
			if err != nil {
				t.Error(err)
			}
			runs <- claimed
		})
	}
	wait.Wait()
	close(runs)
	number := 0
	for claimed := range runs {
		if claimed {
			number++
		}
	}
	if number != 1 {
		t.Errorf("%d of many nodes run it", number)
	}
}

func TestHintsLeadToApplicationsWithWork(t *testing.T) {
	t.Parallel()
	// A database of its own: the list is that of all applications.
	db := openStore(t, storetest.FreshURL(t))
	a, b := newTenant(t, db), newTenant(t, db)
	want := func(t *testing.T, realNow int64, apps ...tenant) {
		t.Helper()
		got, err := db.Queues().ScopesWithJobs(t.Context(), realNow, 10)
		noError(t, err)
		var expected []tenancy.Scope
		for _, app := range apps {
			expected = append(expected, app.application.Scope())
		}
		if !slices.Equal(got, expected) {
			t.Errorf("%v have work, not %v", got, expected)
		}
	}
	session := queue.Job{Kind: queue.JobSession, Object: "cs_1", DueAt: 100}

	want(t, 1000)
	noError(t, a.Queue().Enqueue(t.Context(), session))
	noError(t, b.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobSession, Object: "cs_1", DueAt: 50}))
	want(t, 49)
	want(t, 50, b)
	want(t, 100, b, a)

	t.Run("until it is done", func(t *testing.T) {
		due, err := b.DueJobs(t.Context(), 50, 10)
		noError(t, err)
		noError(t, b.Queue().RetryJob(t.Context(), due[0], "no", 120))
		want(t, 119, a)
		want(t, 120, a, b)
		due, err = b.DueJobs(t.Context(), 120, 10)
		noError(t, err)
		noError(t, b.Queue().FinishJob(t.Context(), due[0], 0, 0))
		want(t, 1000, a)
	})

	t.Run("by the application's clock", func(t *testing.T) {
		noError(t, db.SandboxAccounts().Update(t.Context(), a.application.ID, persist.Want{}, func(session persist.Session) (persist.Change, error) {
			return persist.Change{ClockOffset: 60}, nil
		}))
		want(t, 39)
		want(t, 40, a)
		noError(t, a.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobPlan, Object: "p", DueAt: 70}))
		want(t, 10, a)
	})

	t.Run("also when many ask at once", func(t *testing.T) {
		var wait sync.WaitGroup
		for i := range 10 {
			wait.Go(func() {
				if err := b.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobCharge, Object: ids.New().String(), DueAt: int64(5 + i)}); err != nil {
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
	take := func(holder ids.ID, length time.Duration) (queue.Fence, bool) {
		t.Helper()
		f, held, err := a.Queue().Lease(t.Context(), "identity:ann", holder, length)
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
	noError(t, a.Queue().Release(t.Context(), first)) // which it is no more
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
	noError(t, a.Queue().Release(t.Context(), late))
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
				_, got, err := a.Queue().Lease(t.Context(), "identity:bob", ids.New(), time.Hour)
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
			exec(t, connect(t, storetest.URL(t)), `SELECT pg_cancel_backend($1::int)`, blocked())
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			db, err := store.OpenWithLockTimeout(t.Context(), storetest.URL(t), c.lock)
			noError(t, err)
			t.Cleanup(db.Close)
			a, holder := newTenant(t, storetest.Open(t)), ids.New()
			_, _, err = a.Queue().Lease(t.Context(), "identity:ann", holder, 0)
			noError(t, err)
			blocked, unlock := storetest.LockLeases(t, storetest.URL(t), a.application.ID.String())
			type result struct {
				held bool
				err  error
			}
			ended := make(chan result)
			go func() {
				_, held, err := db.Queue(a.application.Scope()).Lease(t.Context(), "identity:ann", ids.New(), time.Hour)
				ended <- result{held, err}
			}()
			c.end(t, blocked)
			if got := <-ended; got.held || got.err != nil {
				t.Errorf("it is held: %v, %v", got.held, got.err)
			}
			unlock()
			if _, held, err := a.Queue().Lease(t.Context(), "identity:ann", holder, time.Hour); !held || err != nil {
				t.Errorf("after the lock it is held: %v, %v", held, err)
			}
		})
	}
}

func TestWebhooksAreTakenOnce(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	event := payments.WebhookEvent{ID: "evt_1", Type: "invoice.paid", Object: "in_1", APIVersion: "2024-06-20", Live: true, ReceivedAt: moment, Outcome: "queued"}
	work := []queue.Job{{Kind: queue.JobInvoice, Object: "in_1", DueAt: moment}}
	for range 3 {
		noError(t, s.Accounts().ReceiveEvent(t.Context(), s.connection.ID, event, work))
		due, err := s.DueJobs(t.Context(), moment, 100)
		noError(t, err)
		if !hasWork(due, queue.JobInvoice, "in_1") {
			t.Error("a repeated webhook notifies no node")
		}
		for _, w := range due {
			noError(t, s.Queue().FinishJob(t.Context(), w, 0, 0))
		}
	}
	if unseen, err := s.Accounts().UnseenEvents(t.Context(), s.connection.ID, []string{"evt_0", "evt_1", "evt_2"}); err != nil || !slices.Equal(unseen, []string{"evt_0", "evt_2"}) {
		t.Errorf("%v, %v", unseen, err)
	}
	list := texts(t, connect(t, storetest.URL(t)), `
		SELECT concat_ws(' ', event_id, type, object_id, api_version, live, received_at, outcome) FROM webhook_events WHERE app_id = $1`, s.application.ID)
	if want := fmt.Sprintf("evt_1 invoice.paid in_1 2024-06-20 t %d queued", moment); !slices.Equal(list, []string{want}) {
		t.Errorf("%q is kept, want %q", list, want)
	}
	if err := s.Accounts().ReceiveEvent(t.Context(), ids.New(), event, nil); err == nil {
		t.Error("a webhook of no connection was taken")
	}
}

func TestPlansAreSentToTheProvider(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	plan := func() billing.Plan {
		t.Helper()
		p, err := s.Payments().PlanByID(t.Context(), s.plan.ID)
		noError(t, err)
		return p
	}
	patch := func(patch billing.PlanPatch) billing.Plan {
		t.Helper()
		p, err := s.UpdatePlan(t.Context(), "pro", patch)
		noError(t, err)
		return p
	}
	work := func(kind queue.JobKind, object string, at int64) bool {
		t.Helper()
		due, err := s.DueJobs(t.Context(), at, 100)
		noError(t, err)
		return hasWork(due, kind, object)
	}
	synced := func(began billing.Plan, price string, now int64) billing.Plan {
		t.Helper()
		p, err := s.Payments().PlanSynced(t.Context(), s.lease(t, "plan"), payments.SyncedPlan{
			PlanID: began.ID, Began: began.Sync, Connection: s.connection.ID, ProductID: "prod_pro", PriceID: price, Terms: began.Terms(),
		}, now)
		noError(t, err)
		return p
	}
	due, err := s.DueJobs(t.Context(), moment, 100)
	noError(t, err)
	for _, w := range due {
		noError(t, s.Queue().FinishJob(t.Context(), w, 0, 0))
	}

	if p := plan(); p.Sync.Status != billing.SyncDone || p.Sync.PriceID != "price_pro" {
		t.Fatalf("%+v", p.Sync)
	}
	grants := []billing.Grant{}
	patch(billing.PlanPatch{Grants: &grants})
	if work(queue.JobPlan, s.plan.ID.String(), moment) {
		t.Error("the provider is told of grants")
	}
	raised := patch(billing.PlanPatch{AmountCents: new(int64(3900))})
	if !work(queue.JobPlan, s.plan.ID.String(), moment) || raised.Sync.Status != billing.SyncPending {
		t.Error("the provider is not told of a new price")
	}
	noError(t, s.Payments().PlanRefused(t.Context(), s.lease(t, "plan"), s.plan.ID, raised.Sync, "no such currency"))
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
		if work(queue.JobArchive, price, at-1) || !work(queue.JobArchive, price, at) {
			t.Errorf("%s is taken off sale at another time", price)
		}
		noError(t, s.Payments().PriceArchived(t.Context(), price, at))
	}
	elsewhere := payments.SyncedPlan{PlanID: s.plan.ID, Began: raisedAgain.Sync, Connection: ids.New(), ProductID: "prod_x", PriceID: "price_x", Terms: raisedAgain.Terms()}
	if p, err := s.Payments().PlanSynced(t.Context(), s.lease(t, "plan"), elsewhere, moment); err != nil || p.Sync.PriceID != "price_3" || p.Sync.ProductID != "prod_pro" {
		t.Errorf("another account's price was taken: %+v, %v", p.Sync, err)
	}
	if work(queue.JobArchive, "price_3", 1<<60) {
		t.Error("the current price is taken off sale")
	}
	noError(t, s.Payments().EnqueuePlans(t.Context(), moment))
	if !work(queue.JobPlan, s.plan.ID.String(), moment) {
		t.Error("not every plan is looked at")
	}
}
