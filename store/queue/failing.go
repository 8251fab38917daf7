package queue

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

var (
	listFailingJobs = pg.Declare("list failing work", `
		SELECT `+jobColumns+`
		FROM work_queue WHERE app_id = $1 AND failing_since IS NOT NULL ORDER BY failing_since, kind, object LIMIT $2`)

	listFailingObjects = pg.Declare("list failing work of a kind", `
		SELECT object FROM work_queue WHERE app_id = $1 AND kind = $2 AND failing_since IS NOT NULL`)

	retryJobNow = pg.Declare("retry work", `
		UPDATE work_queue SET due_at = $4, version = $5 WHERE app_id = $1 AND kind = $2 AND object = $3 AND failing_since IS NOT NULL RETURNING last_error`)
)

// FailingJobs lists failing jobs, the longest failing first.
func (a App) FailingJobs(ctx context.Context, most int) ([]Job, error) {
	return pg.ListAll(ctx, a.app, listFailingJobs, readJob, most)
}

func (a App) FailingObjects(ctx context.Context, kind JobKind) ([]string, error) {
	return pg.ListAll(ctx, a.app, listFailingObjects, pgx.RowTo[string], kind)
}

// RetryJobNow makes a failing or stopped job due now. One that runs is run again.
func (a App) RetryJobNow(ctx context.Context, kind JobKind, object string, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx Tx) error {
		reason, err := pg.Find(ctx, tx, retryJobNow, pgx.RowTo[*string], fault.New(fault.PathNotFound), kind, object, now, ids.New())
		if err != nil {
			return err
		}
		if err := tx.ScheduleWake(ctx); err != nil {
			return err
		}
		return tx.Audit(ctx, "job.retry", string(kind)+" "+object, nil, audit.Fields{"error": pg.OrZero(reason)})
	})
}
