package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

const (
	// Keys that expire within this time are listed.
	expirySoonMillis = 14 * dayMillis
	// The limit of the counts.
	countedUpTo = 100
	// How many plans and keys are listed.
	namedUpTo = 5
)

// Attention lists what needs a person's attention.
type Attention struct {
	SyncErrors []PlanInError
	Expiring   []KeyExpiring
	InDebt     int // balances, at most 101
	OnHold     int // subscriptions, at most 101
	Alerts     int // of payments, at most 101
	Jobs       int // failing or stopped, at most 101
}

// CountedUpTo is the number from which on Attention says only "more".
const CountedUpTo = countedUpTo

// PlanInError is a plan that the payment provider rejected.
type PlanInError struct {
	Key, Name, Error string
}

// KeyExpiring is a key that expires soon.
type KeyExpiring struct {
	ID        ids.ID
	Name      string
	ExpiresAt int64
}

// DayStats are the totals of the last 24 hours.
type DayStats struct {
	Uses       int64
	Denials    int64
	Requests   int64
	Failures   int64
	SyncErrors int64
}

var (
	listPlansInError = pg.Declare("list plans in error", `
		SELECT key, name, coalesce(sync_error, '') FROM plans
		WHERE app_id = $1 AND sync_status = 'error' ORDER BY key LIMIT $2`)

	listExpiringKeys = pg.Declare("list expiring keys", `
		SELECT id, name, expires_at FROM api_keys
		WHERE app_id = $1 AND NOT revoked AND revoked_at IS NULL AND replaced_by IS NULL AND expires_at > $2 AND expires_at < $3
		ORDER BY expires_at LIMIT $4`)

	// Each is counted no further than the limit, by an index that has only these. The
	// numbers at the jobs are ManyTries and StoppedJob.
	countAttention = pg.Declare("count attention", `
		SELECT
			(SELECT count(*) FROM (SELECT 1 FROM debtors WHERE app_id = $1 LIMIT $2) d),
			(SELECT count(*) FROM (SELECT 1 FROM subscriptions WHERE app_id = $1 AND status IN ('past_due', 'unpaid') LIMIT $2) s),
			(SELECT count(*) FROM (SELECT 1 FROM alerts WHERE app_id = $1 AND resolved_at IS NULL LIMIT $2) a),
			(SELECT count(*) FROM (SELECT 1 FROM work_queue
				WHERE app_id = $1 AND failing_since IS NOT NULL AND (tries >= 5 OR due_at >= 253402300799999) LIMIT $2) q)`)

	sumHours = pg.Declare("sum activity by hour", `
		SELECT coalesce(sum(h.uses) FILTER (WHERE h.hour > $2 + s.clock_offset), 0)::bigint,
			coalesce(sum(h.denials) FILTER (WHERE h.hour > $2 + s.clock_offset), 0)::bigint,
			coalesce(sum(h.requests), 0)::bigint, coalesce(sum(h.failures), 0)::bigint,
			(SELECT count(*) FROM plans WHERE app_id = $1 AND sync_status = 'error')
		FROM app_state s LEFT JOIN activity_hours h ON h.app_id = $1 AND h.hour > $2
		WHERE s.app_id = $1
		GROUP BY s.app_id`)
)

// Attention reads what needs attention. Keys expire by the server's clock.
func (a App) Attention(ctx context.Context, now int64) (Attention, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (n Attention, err error) {
		if n.SyncErrors, err = pg.Collect(ctx, tx, listPlansInError, pgx.RowToStructByPos[PlanInError], namedUpTo); err != nil {
			return n, err
		}
		if n.Expiring, err = pg.Collect(ctx, tx, listExpiringKeys, pgx.RowToStructByPos[KeyExpiring], now, now+expirySoonMillis, namedUpTo); err != nil {
			return n, err
		}
		_, err = pg.Find(ctx, tx, countAttention, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&n.InDebt, &n.OnHold, &n.Alerts, &n.Jobs)
		}, pg.ErrNoAppState, countedUpTo+1)
		return n, err
	})
}

// DayStats sums the last 24 hours, by the hour. Requests come by the server's
// clock, which is the one that is given; uses are dated by the application's, which
// may be ahead of it.
func (a App) DayStats(ctx context.Context, now int64) (f DayStats, err error) {
	if err := a.flushStats(ctx); err != nil {
		return f, err
	}
	return pg.FindOne(ctx, a.app, sumHours, pgx.RowToStructByPos[DayStats], pg.ErrNoAppState, now-dayMillis)
}
