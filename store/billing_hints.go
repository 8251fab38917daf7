package store

import "context"

// Hints say which applications have work, so that nobody has to ask them all. They
// belong to no application and go by the real clock.
const (
	billingHint = "billing"
	sandboxHint = "sandbox"
)

var (
	setHint = declare("set hint", `
		INSERT INTO work_hints (app_id, kind, org_id, due_at)
		SELECT s.app_id, $2, s.org_id, $3 FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id, kind) DO UPDATE SET due_at = excluded.due_at`)

	ensureHint = declare("ensure hint", `
		INSERT INTO work_hints (app_id, kind, org_id)
		SELECT s.app_id, $2, s.org_id FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id, kind) DO NOTHING`)

	lockHint = declare("lock hint", `
		UPDATE work_hints SET due_at = due_at WHERE app_id = $1 AND kind = $2`)

	// No more than 1,000 failing jobs are counted: the hint is locked meanwhile.
	computeHint = declare("compute hint", `
		UPDATE work_hints SET due_at =
			(SELECT min(q.due_at) FROM work_queue q WHERE q.app_id = $1) - (SELECT s.clock_offset FROM app_state s WHERE s.app_id = $1),
			failing = (SELECT count(*) FROM (
				SELECT 1 FROM work_queue f WHERE f.app_id = $1 AND f.failing_since IS NOT NULL LIMIT 1000) counted),
			failing_since = (SELECT min(o.failing_since) FROM work_queue o WHERE o.app_id = $1 AND o.failing_since IS NOT NULL)
		WHERE app_id = $1 AND kind = $2`)
)

// hint says when the application next has billing work. It ends every transaction
// that changes the queue: the hint is the last row that is locked, so whoever has
// it waits for nobody who could wait for them. The queue is looked at by a
// statement after the lock, and so sees what the holder before has left.
func (tx appTx) hint(ctx context.Context) error {
	if _, err := tx.execAny(ctx, ensureHint, billingHint); err != nil {
		return err
	}
	if err := tx.exec(ctx, lockHint, 1, billingHint); err != nil {
		return err
	}
	return tx.exec(ctx, computeHint, 1, billingHint)
}
