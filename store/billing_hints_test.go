package store_test

import (
	"testing"

	"purser/store/queue"
	"purser/store/storetest"
)

// Every change of a queue locks its hint, so what is done meanwhile must not grow with
// the queue.
func TestAHintCountsAtMostAThousandFailingJobs(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	a := newTenant(t, openStore(t, url))
	owner := connect(t, url)
	for _, c := range []struct{ more, want int64 }{{1000, 1000}, {1, 1000}} {
		exec(t, owner, `INSERT INTO work_queue (app_id, org_id, kind, object, due_at, version, tries, failing_since)
			SELECT app_id, org_id, 'charge', gen_random_uuid()::text, 1, gen_random_uuid(), 1, 7 FROM app_state, generate_series(1, $2) WHERE app_id = $1`,
			a.application.ID, c.more)
		noError(t, a.Queue().Enqueue(t.Context(), queue.Job{Kind: queue.JobPlan, Object: "p", DueAt: 70}))
		queues, err := openStore(t, url).Queues().JobQueues(t.Context())
		if err != nil || len(queues) != 1 || queues[0] != (queue.JobQueue{Kind: "billing", Failing: c.want, FailingSince: 7, OldestDue: 1}) {
			t.Errorf("the queues are %+v, %v; want %d failing jobs", queues, err, c.want)
		}
	}
}
