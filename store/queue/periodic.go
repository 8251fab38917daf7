package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// TaskClaim is a periodic task that one node has claimed.
type TaskClaim struct {
	Name    string
	LeaseID ids.ID
	Tries   int // consecutive failures
}

// Periodic tasks belong to no application. Their times go by the database's clock.
const (
	databaseMillis = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

	ensureTask = `INSERT INTO periodic_tasks (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`

	claimTask = `
		UPDATE periodic_tasks SET lease_id = $2, leased_until = ` + databaseMillis + ` + $3
		WHERE name = $1 AND due_at <= ` + databaseMillis + ` AND leased_until <= ` + databaseMillis + `
		RETURNING tries`

	finishTask = `
		UPDATE periodic_tasks SET due_at = ` + databaseMillis + ` + $3, lease_id = NULL, leased_until = 0,
			tries = CASE WHEN $4::text IS NULL THEN 0 ELSE tries + 1 END, last_error = $4
		WHERE name = $1 AND lease_id = $2`
)

// ClaimTask claims a periodic task that is due and that no other node holds.
func (q Queues) ClaimTask(ctx context.Context, name string, lease time.Duration) (claim TaskClaim, claimed bool, err error) {
	claim = TaskClaim{Name: name, LeaseID: ids.New()}
	if _, err := pg.ExecSQL(ctx, q.db.Pool, "periodic task", ensureTask, name); err != nil {
		return claim, false, err
	}
	err = q.db.Pool.QueryRow(ctx, claimTask, name, claim.LeaseID, lease.Milliseconds()).Scan(&claim.Tries)
	if errors.Is(err, pgx.ErrNoRows) {
		return claim, false, nil
	}
	if err != nil {
		return claim, false, fmt.Errorf("store: claim of a periodic task: %w", err)
	}
	return claim, true, nil
}

// FinishTask ends a claim and makes the task due again after next. failure is why the
// run failed; empty for one that succeeded. When the lease was lost, nothing changes.
func (q Queues) FinishTask(ctx context.Context, claim TaskClaim, next time.Duration, failure string) error {
	_, err := pg.ExecSQL(ctx, q.db.Pool, "end of a periodic task", finishTask, claim.Name, claim.LeaseID, next.Milliseconds(), pg.OrNull(pg.CutText(failure, MaxError)))
	return err
}
