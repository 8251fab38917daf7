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
