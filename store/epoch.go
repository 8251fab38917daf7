package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

var (
	selectClock = pg.Declare("select clock", `
		SELECT clock_offset FROM app_state WHERE app_id = $1`)
)

// ClockOffset is how far the application's clock is ahead of the real one. It is
// zero but in an application whose sandbox was moved in time.
func (a App) ClockOffset(ctx context.Context) (int64, error) {
	return pg.FindOne(ctx, a.app, selectClock, pgx.RowTo[int64], pg.ErrNoAppState)
}
