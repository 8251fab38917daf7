package rollups

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/metering/rollup"
	"purser/store/internal/pg"
)

const (
	// chunkEvents is how many events one transaction adds at most, unless they have
	// their ids of the same millisecond.
	chunkEvents = 50_000
	// firstChunk is the length of the first chunk. The next is four times longer or
	// shorter, by what was found in it.
	firstChunk  = int64(time.Hour / time.Millisecond)
	chunkFactor = 4
	// rollUpStatement is how long one statement may run.
	rollUpStatement = time.Minute
)

const progressColumns = `added, until, proposed, proposed_until, proposed_xid, proposed_at, clock_offset`

var (
	ensureProgress = pg.Declare("ensure usage progress", `
		INSERT INTO usage_progress (app_id, org_id) SELECT s.app_id, s.org_id FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO NOTHING`)

	lockProgress = pg.Declare("lock usage progress", `
		SELECT `+progressColumns+` FROM usage_progress WHERE app_id = $1 FOR UPDATE`)

	setProgress = pg.Declare("set usage progress", `
		UPDATE usage_progress SET added = @added, until = @until, proposed = @proposed, proposed_until = @proposed_until,
			proposed_xid = @xid, proposed_at = @at, clock_offset = @offset
		WHERE app_id = $1`)

	// The transaction ids are those of the node that has the application's rows. The own one
	// is behind all that were given out: a snapshot's end is not, for it only follows those
	// that have ended.
	selectHorizon = pg.Declare("select horizon of transactions", `
		SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_current_xact_id()::text::bigint, s.clock_offset
		FROM app_state s WHERE s.app_id = $1`)

	countSettled = pg.Declare("count events to add", `
		SELECT count(*) FROM (SELECT 1 FROM usage_events WHERE app_id = $1 AND tx_id >= $2 AND tx_id < $3 LIMIT $4) counted`)
)

// Alone is the margin of a caller who knows that nothing is written meanwhile.
const Alone time.Duration = 0

// RollUpResult says how far a run came.
type RollUpResult struct {
	Added  int64 // events with an id before this time of the database are in the sums
	Until  int64 // sums are final before this time of the application's clock
	Events int64 // that were added
	// Waiting reports that events may be left: they are too recent, a transaction that is
	// still running could change them, or the time for the run was used.
	Waiting bool
}

// RollUp adds the events that are settled to the sums, in transactions of bounded size. It may run on
// several nodes at once: each event is added once. Once half of the time until the context's
// deadline is used it returns with Waiting, after at least one transaction of each kind.
//
// The margin is rollup.Margin. With Alone it waits for no other transaction.
func (a App) RollUp(ctx context.Context, margin time.Duration) (s RollUpResult, err error) {
	a = a.within(ctx)
	if err := a.propose(ctx, margin); err != nil {
		return s, err
	}
	for _, complete := range []func(context.Context) error{a.completeDays, a.packDays, a.completeRevenue} {
		if err := complete(ctx); err != nil {
			return s, err
		}
	}
	for length := firstChunk; ; {
		step, err := a.rollUpChunk(ctx, &length, margin == Alone)
		if err != nil {
			return s, err
		}
		used := a.timeUsed()
		s.Added, s.Until, s.Waiting, s.Events = step.added, step.until, step.waiting || used, s.Events+step.events
		if step.done || used {
			return s, nil
		}
	}
}

// propose sets the next boundary.
func (a App) propose(ctx context.Context, margin time.Duration) error {
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := tx.ExecAny(ctx, ensureProgress); err != nil {
			return err
		}
		horizon, err := readHorizon(ctx, tx)
		if err != nil {
			return err
		}
		stored, err := pg.Find(ctx, tx, lockProgress, pgx.RowToStructByPos[rollup.Progress], pg.ErrNoAppState)
		if err != nil {
			return err
		}
		if next := stored.Propose(horizon, margin); next != stored {
			return storeProgress(ctx, tx, next)
		}
		return nil
	})
}

// readHorizon reads the clock first: a transaction that gets its id after the second
// statement has inserted nothing before that time.
func readHorizon(ctx context.Context, tx *pg.Tx) (h rollup.Horizon, err error) {
	now, err := tx.DatabaseClock(ctx)
	if err != nil {
		return h, err
	}
	return pg.Find(ctx, tx, selectHorizon, func(row pgx.CollectableRow) (rollup.Horizon, error) {
		h := rollup.Horizon{Now: now}
		err := row.Scan(&h.Oldest, &h.Next, &h.ClockOffset)
		return h, err
	}, pg.ErrNoAppState)
}

func storeProgress(ctx context.Context, tx *pg.Tx, p rollup.Progress) error {
	return tx.Exec(ctx, setProgress, 1, pg.Named{
		"added": p.Added, "until": p.Until, "proposed": p.Proposed, "proposed_until": p.ProposedUntil,
		"xid": p.Transaction, "at": p.ProposedAt, "offset": p.ClockOffset,
	})
}

type chunkResult struct {
	added, until, events int64
	waiting, done        bool
}

// rollUpChunk adds the next events below the boundary, if it is confirmed.
func (a App) rollUpChunk(ctx context.Context, length *int64, alone bool) (chunkResult, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (step chunkResult, err error) {
		if err := setForRollUp(ctx, tx); err != nil {
			return step, err
		}
		p, err := pg.Find(ctx, tx, lockProgress, pgx.RowToStructByPos[rollup.Progress], pg.ErrNoAppState)
		if err != nil {
			return step, err
		}
		horizon, err := readHorizon(ctx, tx)
		if err != nil {
			return step, err
		}
		step.added, step.until = p.Added, p.Until
		if !p.Confirmed(horizon) && !(alone && p.Transaction != 0) {
			step.done = true
			step.waiting, err = hasEvents(ctx, tx, p.Added)
			return step, err
		}
		end, found, err := nextChunk(ctx, tx, p.Added, p.Proposed, length)
		if err != nil {
			return step, err
		}
		if found > 0 {
			if err := addEvents(ctx, tx, pg.IDAt(p.Added), pg.IDAt(end)); err != nil {
				return step, err
			}
		}
		next := p.Advance(end)
		step.added, step.until, step.events = next.Added, next.Until, found
		return step, storeProgress(ctx, tx, next)
	})
}

// nextChunk finds a range of ids with few enough events.
func nextChunk(ctx context.Context, tx *pg.Tx, from, boundary int64, length *int64) (end, found int64, err error) {
	for {
		end = min(boundary, from+*length)
		found, err = pg.Find(ctx, tx, countSettled, pgx.RowTo[int64], pg.ErrNoAppState, pg.IDAt(from), pg.IDAt(end), chunkEvents+1)
		switch {
		case err != nil:
			return 0, 0, err
		case found > chunkEvents && end-from > 1:
			*length = max(1, (end-from)/chunkFactor)
			continue
		case found < chunkEvents/chunkFactor:
			*length *= chunkFactor
		}
		return end, found, nil
	}
}

// hasEvents reports whether there is an event behind the boundary.
func hasEvents(ctx context.Context, tx *pg.Tx, added int64) (bool, error) {
	found, err := pg.Find(ctx, tx, countSettled, pgx.RowTo[int64], pg.ErrNoAppState, pg.IDAt(added), pg.Page{}.Start(), 1)
	return found > 0, err
}

// setForRollUp gives a transaction time, and plans for the values at hand: a generic
// plan was chosen for another range.
func setForRollUp(ctx context.Context, tx *pg.Tx) error {
	for _, setting := range []string{
		fmt.Sprintf("SET LOCAL statement_timeout = %d", rollUpStatement.Milliseconds()),
		"SET LOCAL max_parallel_workers_per_gather = 0",
		"SET LOCAL jit = off",
		"SET LOCAL plan_cache_mode = force_custom_plan",
	} {
		if _, err := tx.Conn.Exec(ctx, setting); err != nil {
			return fmt.Errorf("store: %s: %w", setting, err)
		}
	}
	return nil
}
