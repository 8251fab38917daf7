package main

import (
	"context"
	"testing"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/metering"
	"purser/store"
	"purser/store/queue"
)

// TestBalancesAreAddedUpNowAndThen runs the job of usage by a clock that moves only when
// the test says so.
func TestBalancesAreAddedUpNowAndThen(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now, took := time.Now(), time.Duration(0)
	u := &usageStats{store: n.store, observe: func(time.Duration) {}, requested: map[ids.ID]time.Time{}, liability: map[ids.ID]time.Time{},
		realTime: func() time.Time { now = now.Add(took); return now }}
	app := n.store.App(n.first)
	must(app.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: 1}))
	// after lets time pass, adds a nanocredit and runs the job.
	after := func(pause time.Duration) (held string) {
		t.Helper()
		now = now.Add(pause)
		key := ids.New().String()
		_, _, err := app.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "tokens", Amount: 1, IdempotencyKey: &key, CreatedAt: 1})
		must(err)
		_, err = u.rollUp(t.Context(), jobs.Job{Scope: n.first})
		must(err)
		found, err := n.store.Rollups(n.first).Finance(t.Context(), 0, 1, 1)
		must(err)
		return found.Liability[0].Held.String()
	}
	for _, c := range []struct {
		name  string
		pause time.Duration
		took  time.Duration // between two readings of the clock
		want  string
	}{
		{"the first time", 0, 0, "1"},
		{"within ten minutes", 10*time.Minute - 1, 0, "1"},
		{"after ten minutes", 1, 0, "3"},
		{"after ten more, for a minute", 10 * time.Minute, time.Minute, "4"},
		{"within a hundred minutes", 100*time.Minute - 1, 0, "4"},
		{"after a hundred minutes", 1, 0, "6"},
	} {
		took = c.took
		if held := after(c.pause); held != c.want {
			t.Errorf("%s: customers hold %s, not %s", c.name, held, c.want)
		}
	}

	t.Run("and a failure does not hold up usage", func(t *testing.T) {
		now = now.Add(time.Hour)
		n.exec(`ALTER TABLE liability_days RENAME TO missing`)
		if _, err := u.rollUp(t.Context(), jobs.Job{Scope: n.first}); err == nil {
			t.Error("it is not reported")
		}
		if _, err := u.rollUp(t.Context(), jobs.Job{Scope: n.first}); err != nil {
			t.Errorf("the next run: %v", err)
		}
	})
}

// lateContext has a deadline that has passed, and does not end.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func TestAnUpdateOfUsageWithoutTimeIsNoFailure(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	q := jobs.New(jobs.Options{Store: n.store})
	u := &usageStats{store: n.store, jobs: q, observe: func(time.Duration) {}, requested: map[ids.ID]time.Time{}, liability: map[ids.ID]time.Time{}, realTime: time.Now}
	q.Register(queue.JobUsage, jobs.Handler{Run: u.rollUp, Timeout: usageRunTimeout, Lane: usageLane})
	noFailure(t, u.request(t.Context(), n.first))
	noFailure(t, q.DrainLane(lateContext{t.Context()}, n.first.AppID, usageLane))
	n.exec(`DO $$ BEGIN
		ASSERT EXISTS (SELECT FROM work_queue WHERE kind = 'usage' AND failing_since IS NULL AND tries = 0 AND due_at > extract(epoch FROM now()) * 1000); END $$`)
	for took, want := range map[time.Duration]time.Duration{0: time.Minute, 6 * time.Second: 2 * time.Minute, usageRunTimeout / 2: 10 * time.Minute} {
		if pause := pauseOfUsage(took); pause != want {
			t.Errorf("after %s it pauses for %s, not %s", took, pause, want)
		}
	}
}

func TestUsageIsRequestedBesideAnApplicationThatFails(t *testing.T) {
	t.Parallel()
	n := newVerifiedNode(t)
	u := &usageStats{store: n.store, jobs: jobs.New(jobs.Options{Store: n.store})}
	n.exec(`DELETE FROM app_state WHERE app_id = '` + n.first.AppID.String() + `'`)
	if err := u.requestAll(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	if due, err := n.store.Queue(n.other).HasJobsDue(t.Context(), time.Now().UnixMilli()); err != nil || !due {
		t.Errorf("the other application has a job: %t, %v", due, err)
	}
}
