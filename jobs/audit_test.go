package jobs_test

import (
	"context"
	"testing"
	"time"

	"purser/ids"
	"purser/jobs"
	"purser/store/queue"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestAnAuditGoesOnAfterAnApplicationThatFails(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db := openNode(t, url)
	failing, scope := newApp(t, db), newApp(t, db)
	noError(t, db.Queue(scope).Enqueue(t.Context(), queue.Job{Kind: kind, Object: "x", DueAt: time.Now().Add(-2 * jobs.AuditSlack).UnixMilli()}))
	storetest.Exec(t, url, `UPDATE work_hints SET due_at = NULL`)
	storetest.Exec(t, url, `DELETE FROM app_state WHERE app_id = $1`, failing.AppID)
	ran := make(chan string, 1)
	q := node(db, nil, func(_ context.Context, job jobs.Job) (int64, error) {
		ran <- job.Object
		return 0, nil
	})
	if err := q.Audit(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	runNotifiedUntil(t, q, ran)
}

// Applications that take all the time of a run must not be the first of every run.
func TestRunsOverAllApplicationsBeginAnywhere(t *testing.T) {
	t.Parallel()
	db := openNode(t, storetest.FreshURL(t))
	newApp(t, db)
	newApp(t, db)
	first := map[ids.ID]bool{}
	for range 64 { // with two applications, all begin with the same one once in 2^63
		begun := false
		noError(t, db.Directory().Each(t.Context(), "test", func(_ context.Context, scope tenancy.Scope) error {
			if !begun {
				first[scope.AppID] = true
			}
			begun = true
			return nil
		}))
	}
	if len(first) != 2 {
		t.Errorf("the first application is one of %d", len(first))
	}
}

// Release 0.1.0 takes every due job, and postpones those whose kind it does not know.
func TestAnAuditRecoversJobsThatAnEarlierReleaseTook(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db := openNode(t, url)
	scope := newApp(t, db)
	inAnHour := time.Now().Add(time.Hour).UnixMilli()
	reasons := map[string]string{
		"unknown":    `cashier: unknown job kind "webhook"`,
		"no account": "This application has no payment account. Connect one in the dashboard.",
		"no sandbox": "The payments sandbox is turned off on this server. Connect a Stripe test account in the dashboard.",
		"own":        "the endpoint can't be read",
	}
	for object, reason := range reasons {
		noError(t, db.Queue(scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobDelivery, Object: object, DueAt: inAnHour}))
		storetest.Exec(t, url, `UPDATE work_queue SET tries = 10, failing_since = 1, last_error = $2 WHERE object = $1`, object, reason)
	}
	// The provider may refuse what a job of this release asks it for.
	noError(t, db.Queue(scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobLabel, Object: "label", DueAt: inAnHour}))
	storetest.Exec(t, url, `UPDATE work_queue SET tries = 10, failing_since = 1, last_error = $1 WHERE object = 'label'`, reasons["no account"])
	ran := make(chan string, 10)
	q := node(db, nil, func(context.Context, jobs.Job) (int64, error) { return 0, nil })
	run := func(_ context.Context, job jobs.Job) (int64, error) {
		if job.Tries != 0 || job.LastError != "" {
			t.Errorf("%s has %d tries: %s", job.Object, job.Tries, job.LastError)
		}
		ran <- job.Object
		return 0, nil
	}
	q.Register(queue.JobDelivery, jobs.Handler{Run: run, Timeout: limit})
	q.Register(queue.JobLabel, jobs.Handler{Run: run, Timeout: limit})
	noError(t, q.Audit(t.Context()))
	got := runNotifiedUntil(t, q, ran, "second", "third")
	if got["own"] || got["label"] || len(got) != 3 {
		t.Errorf("these jobs ran: %v", got)
	}
}

// runNotifiedUntil runs what is notified until one job, and one for each of the others
// named, has run.
func runNotifiedUntil(t *testing.T, q *jobs.Queue, ran <-chan string, more ...string) map[string]bool {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.RunNotified(ctx) }()
	got := map[string]bool{receive(t, ran, "a job runs"): true}
	for _, which := range more {
		got[receive(t, ran, "a "+which+" job runs")] = true
	}
	stop()
	receive(t, ended, "the node stops")
	return got
}
