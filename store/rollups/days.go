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
	for range completedRuns {
		if more, err := a.completeNext(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

// completeNext adds up the next days, and reports whether there are others.
func (a App) completeNext(ctx context.Context) (more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		more = false
		if err := setForSettling(ctx, tx); err != nil {
			return err
		}
		s, err := lockSettled(ctx, tx)
		if err != nil {
			return err
		}
		from, end := s.Days, metering.DayOf(s.Until).Start
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
		more = to < end
		return tx.Exec(ctx, setDays, 1, max(from, to))
	})
	return more, err
}

// lockSettled reads the progress and keeps other runs from changing it.
func lockSettled(ctx context.Context, tx *pg.Tx) (settled, error) {
	if _, err := pg.Find(ctx, tx, lockProgress, pgx.RowToStructByPos[rollup.Progress], pg.ErrNoAppState); err != nil {
		return settled{}, err
	}
	return readSettled(ctx, tx)
}
