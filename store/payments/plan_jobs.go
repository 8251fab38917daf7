package payments

import (
	"context"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/queue"
)

var (
	// The new version makes a worker that is about to finish the job keep it.
	delayArchive = pg.Declare("delay archive", `
		UPDATE work_queue SET due_at = greatest(due_at, $3), version = $4
		WHERE app_id = $1 AND kind = '`+string(queue.JobArchive)+`' AND object = $2`)

	// A stopped job stays stopped: the provider's rejection does not go away by itself.
	enqueuePlans = pg.Declare("enqueue plans", `
		INSERT INTO work_queue (app_id, org_id, kind, object, due_at, version)
		SELECT s.app_id, s.org_id, 'plan', p.id::text, $2, $3
		FROM app_state s JOIN plans p ON p.app_id = $1
		WHERE s.app_id = $1
		ON CONFLICT (app_id, kind, object) DO UPDATE
		SET due_at = least(work_queue.due_at, excluded.due_at), version = excluded.version
		WHERE work_queue.due_at < 253402300799999`)
)

// DelayArchive postpones the archiving of a price to that time at least.
func (a App) DelayArchive(ctx context.Context, priceID string, until int64) error {
	return a.app.ExecAny(ctx, delayArchive, priceID, until, ids.New())
}

// EnqueuePlans enqueues the sync of every plan.
func (a App) EnqueuePlans(ctx context.Context, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if _, err := tx.ExecAny(ctx, enqueuePlans, now, ids.New()); err != nil {
			return err
		}
		return tx.ScheduleWake(ctx)
	})
}
