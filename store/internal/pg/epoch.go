package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	// SelectEpoch reads the epoch, the clock's offset and the database's time.
	SelectEpoch = Declare("select epoch", `
		SELECT epoch, clock_offset, (extract(epoch FROM statement_timestamp()) * 1000)::bigint FROM app_state WHERE app_id = $1`)

	selectClock = Declare("select clock", `
		SELECT clock_offset FROM app_state WHERE app_id = $1`)

	advanceEpoch = Declare("advance epoch", `
		UPDATE app_state SET epoch = epoch + $2 WHERE app_id = $1 RETURNING epoch`)
)

// AdvanceEpoch tells every node that what it remembers of the catalog and the
// keys has changed. It is part of the transaction that changes them.
func (tx *Tx) AdvanceEpoch(ctx context.Context) (int64, error) { return tx.AdvanceEpochBy(ctx, 1) }

// AdvanceEpochBy advances the epoch at once by at least the number of prices that the
// transaction keeps, because each is numbered by an epoch of its own. It gives the last of
// them. By none it only locks the epoch.
func (tx *Tx) AdvanceEpochBy(ctx context.Context, prices int64) (int64, error) {
	if prices > 0 {
		prices += VersionStep() - 1
	}
	return Find(ctx, tx, advanceEpoch, pgx.RowTo[int64], ErrNoAppState, prices)
}

// ClockOffset is how far the application's clock is ahead of the real one.
func (tx *Tx) ClockOffset(ctx context.Context) (int64, error) {
	return Find(ctx, tx, selectClock, pgx.RowTo[int64], ErrNoAppState)
}

const readClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// DatabaseClock reads the database's clock in a statement of its own: a statement that
// may run on several shards gets times as parameters. See App.Clocked.
func (tx *Tx) DatabaseClock(ctx context.Context) (now int64, err error) {
	if tx.clock != 0 {
		return tx.clock, nil
	}
	if err := tx.Conn.QueryRow(ctx, readClock).Scan(&now); err != nil {
		return 0, fmt.Errorf("store: the database's clock: %w", err)
	}
	return now, nil
}

// AppTime is the application's time: the database's, moved by the offset of its clock.
func (tx *Tx) AppTime(ctx context.Context) (int64, error) {
	return Find(ctx, tx, SelectEpoch, func(row pgx.CollectableRow) (int64, error) {
		var epoch, offset, now int64
		err := row.Scan(&epoch, &offset, &now)
		return now + offset, err
	}, ErrNoAppState)
}
