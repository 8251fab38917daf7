package store

import (
	"context"

	"purser/store/internal/pg"
)

// The rows of work_hints hold when each application next has work, so that workers do
// not poll every application. They go by the real clock.
const (
	billingWake = "billing"
	sandboxWake = "sandbox"
)

var (
	setNextDue = pg.Declare("set hint", `
		INSERT INTO work_hints (app_id, kind, org_id, due_at)
		SELECT s.app_id, $2, s.org_id, $3 FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id, kind) DO UPDATE SET due_at = excluded.due_at`)

	ensureNextDue = pg.Declare("ensure hint", `
		INSERT INTO work_hints (app_id, kind, org_id)
		SELECT s.app_id, $2, s.org_id FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id, kind) DO NOTHING`)

	lockNextDue = pg.Declare("lock hint", `
		UPDATE work_hints SET due_at = due_at WHERE app_id = $1 AND kind = $2`)

	// At most 1,000 failing jobs are counted: the row is locked meanwhile.
	computeNextDue = pg.Declare("compute hint", `
		UPDATE work_hints SET due_at =
			(SELECT min(q.due_at) FROM work_queue q WHERE q.app_id = $1) - (SELECT s.clock_offset FROM app_state s WHERE s.app_id = $1),
			failing = (SELECT count(*) FROM (
				SELECT 1 FROM work_queue f WHERE f.app_id = $1 AND f.failing_since IS NOT NULL LIMIT 1000) counted),
			failing_since = (SELECT min(o.failing_since) FROM work_queue o WHERE o.app_id = $1 AND o.failing_since IS NOT NULL)
		WHERE app_id = $1 AND kind = $2`)
)

// scheduleWake stores when the application's next job is due. It ends every transaction
// that changes the queue. Every transaction locks work_hints last, so this row never
// takes part in a deadlock; the queue is read by a statement after the lock and so sees
// what the previous holder committed.
func (tx appTx) scheduleWake(ctx context.Context) error {
	if _, err := tx.ExecAny(ctx, ensureNextDue, billingWake); err != nil {
		return err
	}
	if err := tx.Exec(ctx, lockNextDue, 1, billingWake); err != nil {
		return err
	}
	return tx.Exec(ctx, computeNextDue, 1, billingWake)
}
