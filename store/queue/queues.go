package queue

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
	"purser/tenancy"
)

// ScopesWithJobs lists applications that have billing work by now, the longest
// waiting first, at most limit. It says nothing about the work.
func (q Queues) ScopesWithJobs(ctx context.Context, realNow int64, limit int) ([]tenancy.Scope, error) {
	return q.Due(ctx, jobsWake, realNow, limit)
}

// JobQueue describes the jobs of one kind of queue, of all applications.
type JobQueue struct {
	Kind string // "billing" or "sandbox"
	// Failing counts failing jobs, of each application up to 1,000.
	Failing int64
	// FailingSince is when the oldest of them first failed; zero for none.
	FailingSince int64
	// OldestDue is when the longest waiting application's next job is or was due; zero
	// for none. Stopped jobs do not count, and neither do those that were enqueued without
	// a time.
	OldestDue int64
}

// JobQueues summarizes the queues by the database's clock. It says nothing about single
// jobs or applications.
func (q Queues) JobQueues(ctx context.Context) ([]JobQueue, error) {
	return pg.CollectSQL(ctx, q.db.Pool, "job queues", pgx.RowToStructByPos[JobQueue], `
		SELECT kind, coalesce(sum(failing), 0)::bigint, coalesce(min(failing_since), 0)::bigint,
			coalesce(min(due_at) FILTER (WHERE due_at > 0 AND due_at < $1), 0)::bigint
		FROM work_hints GROUP BY kind ORDER BY kind`, StoppedJob/2)
}

// Due lists the applications whose hint of a kind is due, the longest waiting first.
func (q Queues) Due(ctx context.Context, kind string, realNow int64, limit int) ([]tenancy.Scope, error) {
	return pg.CollectSQL(ctx, q.db.Pool, "work hints", pgx.RowToStructByPos[tenancy.Scope], `
		SELECT org_id, app_id FROM work_hints WHERE kind = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3`, kind, realNow, limit)
}
