package queue

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

// The rows of work_hints hold when each application next has work, so that workers do
// not poll every application. They go by the real clock.
const (
	jobsWake    = "billing"
	SandboxWake = "sandbox" // of the accounts of the payments sandbox
)

// Control tables and tenant tables are never in one statement: on Citus they lie on
// different nodes.
var (
	SetHint = pg.Declare("set hint", `
		INSERT INTO work_hints (app_id, kind, org_id, due_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (app_id, kind) DO UPDATE SET due_at = excluded.due_at`)

	ensureNextDue = pg.Declare("ensure hint", `
		INSERT INTO work_hints (app_id, kind, org_id) VALUES ($1, $2, $3)
		ON CONFLICT (app_id, kind) DO NOTHING`)

	lockNextDue = pg.Declare("lock hint", `
		SELECT due_at, failing, failing_since FROM work_hints WHERE app_id = $1 AND kind = $2 FOR UPDATE`)

	// At most 1,000 failing jobs are counted: the hint is locked meanwhile. Stopped jobs
	// count, but don't say since when: they may stay as they are.
	selectQueueState = pg.Declare("select queue state", `
		SELECT (SELECT min(q.due_at) FROM work_queue q WHERE q.app_id = $1) - s.clock_offset,
			(SELECT count(*) FROM (
				SELECT 1 FROM work_queue f WHERE f.app_id = $1 AND f.failing_since IS NOT NULL LIMIT 1000) counted),
			(SELECT min(o.failing_since) FROM work_queue o WHERE o.app_id = $1 AND o.failing_since IS NOT NULL AND o.due_at < 253402300799999)
		FROM app_state s WHERE s.app_id = $1`)

	updateNextDue = pg.Declare("update hint", `
		UPDATE work_hints SET due_at = $3, failing = $4, failing_since = $5 WHERE app_id = $1 AND kind = $2`)
)

// queueState is what a hint says about its queue.
type queueState struct {
	DueAt        *int64 // by the real clock; nil for an empty queue
	Failing      int64
	FailingSince *int64
}

func (s queueState) equal(other queueState) bool {
	same := func(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(s.DueAt, other.DueAt) && s.Failing == other.Failing && same(s.FailingSince, other.FailingSince)
}

// errNoHint means that a hint disappeared in the transaction that made it.
var errNoHint = errors.New("store: the application has no hint")

// readQueue locks the hint, then reads the queue. The hint is nil when the application had
// no job yet.
func (tx Tx) readQueue(ctx context.Context) (hint *queueState, queue queueState, err error) {
	hints, states, err := pg.CollectBoth(ctx, tx, pg.Query{Statement: lockNextDue, Args: []any{jobsWake}}, pgx.RowToAddrOfStructByPos[queueState],
		pg.Query{Statement: selectQueueState}, pgx.RowToStructByPos[queueState])
	switch {
	case err != nil:
		return nil, queue, err
	case len(states) == 0:
		return nil, queue, pg.ErrNoAppState
	case len(hints) == 0:
		return nil, states[0], nil
	}
	return hints[0], states[0], nil
}

// ScheduleWake stores when the application's next job is due. It ends every transaction
// that changes the queue. Every transaction locks work_hints last, and only the head of the
// audit log after it, so this row never takes part in a deadlock; the queue is read by a
// statement after the lock and so sees what the previous holder committed.
func (tx Tx) ScheduleWake(ctx context.Context) error {
	stored, queue, err := tx.readQueue(ctx)
	if err == nil && stored == nil {
		if _, err := tx.ExecAny(ctx, ensureNextDue, jobsWake, tx.Scope.OrgID); err != nil {
			return err
		}
		if stored, queue, err = tx.readQueue(ctx); err == nil && stored == nil {
			err = errNoHint
		}
	}
	if err != nil || queue.equal(*stored) {
		return err
	}
	return tx.Exec(ctx, updateNextDue, 1, jobsWake, queue.DueAt, queue.Failing, queue.FailingSince)
}
