package rollups

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/metering"
	"purser/metering/rollup"
	"purser/store/internal/pg"
)

const (
	// completedDays is how many days one transaction adds up at most, and completedRuns
	// how many transactions follow each other.
	completedDays = 31
	completedRuns = 12
)

var (
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

// completeDays adds up the days whose hours are final.
func (a App) completeDays(ctx context.Context) error {
	return a.inPortions(ctx, completedRuns, func(ctx context.Context, tx *pg.Tx, s settled, end int64) (more bool, err error) {
		return addPortion(ctx, tx, s.Days, end, selectFirstHour, addDays, setDays)
	})
}

// addPortion adds up the next days before end with one statement, and notes with another
// how far it came. From is 0 before the first run, which begins with the first row.
func addPortion(ctx context.Context, tx *pg.Tx, from, end int64, first, add, set pg.Statement) (more bool, err error) {
	if from >= end {
		return false, nil
	}
	if from == 0 {
		moments, err := pg.Collect(ctx, tx, first, pgx.RowTo[int64])
		if err != nil {
			return false, err
		}
		if from = end; len(moments) > 0 {
			from = min(end, metering.DayOf(moments[0]).Start)
		}
	}
	to := min(end, from+completedDays*24*rollup.Hour)
	if to > from {
		if _, err := tx.ExecAny(ctx, add, from, to); err != nil {
			return false, err
		}
	}
	return to < end, tx.Exec(ctx, set, 1, to)
}

// inPortions runs transactions under the lock of the progress, one after the other, while
// there is more to do and time for it. Days before end are final.
func (a App) inPortions(ctx context.Context, most int, next func(ctx context.Context, tx *pg.Tx, s settled, end int64) (more bool, err error)) error {
	more := true
	for range most {
		err := a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
			if err := setForRollUp(ctx, tx); err != nil {
				return err
			}
			s, err := lockSettled(ctx, tx)
			if err != nil {
				return err
			}
			more, err = next(ctx, tx, s, metering.DayOf(s.Until).Start)
			return err
		})
		if err != nil || !more || a.timeUsed() {
			return err
		}
	}
	return nil
}

// lockSettled reads the progress and keeps other runs from changing it.
func lockSettled(ctx context.Context, tx *pg.Tx) (settled, error) {
	if _, err := pg.Find(ctx, tx, lockProgress, pgx.RowToStructByPos[rollup.Progress], pg.ErrNoAppState); err != nil {
		return settled{}, err
	}
	return readSettled(ctx, tx)
}
