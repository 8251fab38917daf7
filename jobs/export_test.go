package jobs

import (
	"context"
	"time"

	"purser/tenancy"
)

// DrainSize is how many jobs one drain runs at most.
const DrainSize = maxBatches * batchSize

// TryDrain runs one drain of the main lane and reports whether there is more.
func (q *Queue) TryDrain(ctx context.Context, scope tenancy.Scope) (more bool, err error) {
	result, err := q.drain(ctx, ctx.Done(), target{scope, MainLane})
	return result == queueHasMore, err
}

// Audit runs the audit task.
func (q *Queue) Audit(ctx context.Context) error { return q.audit(ctx) }

// AuditSlack is how long a job is due before an audit finds it.
const AuditSlack time.Duration = auditSlack

// RunNotified drains notified queues, without sweeps and tasks.
func (q *Queue) RunNotified(ctx context.Context) error { return q.runNotified(ctx) }
