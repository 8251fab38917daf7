package jobs_test

import (
	"context"
	"testing"
	"time"

	"purser/jobs"
	"purser/store/queue"
	"purser/store/storetest"
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
