package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

// completedDays is how many days one run adds up at most.
const completedDays = 31

var (
	selectDays = pg.Declare("select days of usage", `
		SELECT days_until FROM usage_progress WHERE app_id = $1`)

	selectFirstHour = pg.Declare("select first hour of usage", `
		SELECT hour FROM usage_totals WHERE app_id = $1 ORDER BY hour LIMIT 1`)

	addDays = pg.Declare("add usage by day", `
		INSERT INTO usage_total_days (app_id, day, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
		SELECT s.app_id, t.hour - t.hour % 86400000, t.feature_id, t.credit_id, t.key_id, s.org_id,
			sum(t.events), sum(t.deduplicated), sum(t.quantity), sum(t.included), sum(t.charged_nanocredits)
		FROM app_state s JOIN usage_totals t ON t.app_id = $1
		WHERE s.app_id = $1 AND t.hour >= $2 AND t.hour < $3
		GROUP BY 1, 2, 3, 4, 5, 6`)

	setDays = pg.Declare("set days of usage", `
		UPDATE usage_progress SET days_until = $2 WHERE app_id = $1`)
)

// completeDays adds up the next days whose hours are final. The caller has locked the
// progress.
func completeDays(ctx context.Context, tx *pg.Tx, until int64) error {
	from, err := pg.Find(ctx, tx, selectDays, pgx.RowTo[int64], pg.ErrNoAppState)
	if err != nil {
		return err
	}
	end := metering.DayOf(until).Start
	if from >= end {
		return nil
	}
	if from == 0 {
		hours, err := pg.Collect(ctx, tx, selectFirstHour, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		if from = end; len(hours) > 0 {
			from = metering.DayOf(hours[0]).Start
		}
	}
	to := min(end, from+completedDays*24*rollup.Hour)
	if to > from {
		if _, err := tx.ExecAny(ctx, addDays, from, to); err != nil {
			return err
		}
	}
	return tx.Exec(ctx, setDays, 1, max(from, to))
}
