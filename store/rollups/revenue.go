package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

var (
	selectFirstPayment = pg.Declare("select first payment", `
		SELECT created_at FROM provider_payments WHERE app_id = $1 ORDER BY created_at LIMIT 1`)

	addRevenue = pg.Declare("add revenue by day", `
		INSERT INTO revenue_days (app_id, day, currency, topup, org_id, amount_cents)
		SELECT s.app_id, p.created_at - p.created_at % 86400000, p.currency COLLATE "C", p.source_kind = 'session', s.org_id, sum(p.amount_cents)
		FROM app_state s JOIN provider_payments p ON p.app_id = $1
		WHERE s.app_id = $1 AND p.created_at >= $2 AND p.created_at < $3 AND NOT p.free
		GROUP BY 1, 2, 3, 4, 5`)

	setRevenue = pg.Declare("set days of revenue", `
		UPDATE usage_progress SET revenue_until = $2 WHERE app_id = $1`)

	// Days that were added up are read as such, and other payments one by one. What was
	// returned has an index of its own.
	sumRevenue = pg.Declare("sum revenue by day", `
		SELECT r.day, upper(r.currency), r.topup, sum(r.amount)::bigint, sum(r.returned)::bigint
		FROM (
			SELECT d.day, d.currency, d.topup, d.amount_cents AS amount, 0 AS returned
			FROM revenue_days d WHERE d.app_id = $1 AND d.day >= @days_from AND d.day < @days_to
			UNION ALL
			SELECT p.created_at - p.created_at % 86400000, p.currency COLLATE "C", p.source_kind = 'session', p.amount_cents, 0
			FROM unnest(@rest_from::bigint[], @rest_to::bigint[]) AS t (first, last) CROSS JOIN LATERAL (
				SELECT x.created_at, x.currency, x.source_kind, x.amount_cents
				FROM provider_payments x WHERE x.app_id = $1 AND x.created_at >= t.first AND x.created_at < t.last AND NOT x.free OFFSET 0) p
			UNION ALL
			SELECT q.created_at - q.created_at % 86400000, q.currency COLLATE "C", q.source_kind = 'session', 0, q.refunded_cents + q.disputed_cents
			FROM provider_payments q
			WHERE q.app_id = $1 AND q.created_at >= @from AND q.created_at < @to AND NOT q.free AND q.refunded_cents + q.disputed_cents > 0
		) r
		GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`)
)

// paymentDelay is longer than a payment takes from its time until it is committed.
const paymentDelay = rollup.Hour

// completeRevenue adds up the payments of days that can get no more of them. While a test
// clock is ahead, none are: it can be moved while a payment is processed.
func (a App) completeRevenue(ctx context.Context) error {
	return a.inPortions(ctx, completedRuns, func(ctx context.Context, tx *pg.Tx, s settled, _ int64) (more bool, err error) {
		horizon, err := readHorizon(ctx, tx)
		if err != nil {
			return false, err
		}
		if horizon.ClockOffset != 0 {
			return false, nil
		}
		return addPortion(ctx, tx, s.Revenue, metering.DayOf(max(0, s.Until-paymentDelay)).Start, selectFirstPayment, addRevenue, setRevenue)
	})
}

// readRevenue reads the payments of a range by day. Days before settled were added up.
func readRevenue(ctx context.Context, tx *pg.Tx, from, to, settled int64) ([]Revenue, error) {
	first := metering.DayOf(from + 24*rollup.Hour - 1).Start
	days := metering.Period{Start: first, End: max(first, min(metering.DayOf(to).Start, settled))}
	rest := []metering.Period{{Start: from, End: min(first, to)}, {Start: days.End, End: to}}
	restFrom, restTo := bounds(rest)
	return pg.Collect(ctx, tx, sumRevenue, pgx.RowToStructByPos[Revenue], pg.Named{
		"from": from, "to": to, "days_from": days.Start, "days_to": days.End, "rest_from": restFrom, "rest_to": restTo,
	})
}
