package packing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/migrations"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

const (
	// MaxBlock is how many events a block has, and one transaction moves, at most.
	MaxBlock = 1_000
	// MinBlock is how many it has at least: a smaller block takes more space than its rows.
	MinBlock = 8
	// idsPerRead is how many ids one transaction lists at most, and idsPerBlock how many of
	// them are one row: three rows fill a page, also with a wallet for each id.
	idsPerRead, idsPerBlock = 1_024, 58
	// walletsPerRead is how many wallets are read at once, and walletWindow how many numbers
	// of a wallet one statement looks at.
	walletsPerRead, walletWindow = 100, 20_000
	// maxPause bounds the pause after a transaction, which is as long as the transaction was.
	maxPause = 100 * time.Millisecond
	// horizonWait is how long a run waits for older transactions to end.
	horizonWait, horizonPoll = time.Minute, 20 * time.Millisecond
)

// Packer packs events on one connection of the owner.
type Packer struct {
	// Between is called between the steps of a run, for tests that end it there; nil for
	// none.
	Between func(step string) error
	// Continues is called with the end of what is packed when an earlier run with another end
	// is continued; nil for none.
	Continues func(before int64)
	// Skipped is called for each wallet whose events stay, with the reason; nil for none.
	Skipped func(wallet ids.ID, reason error)
	// Rebuilds is called before the index of transactions is rebuilt; nil for none.
	Rebuilds func()

	conn *pgx.Conn
}

// setLimits bounds how long a wallet may be busy. Then it is tried again.
var setLimits = `SET lock_timeout = '` + pg.Milliseconds(pg.LockWait) + `'; SET statement_timeout = '5min'; SET timezone = 'UTC'`

// Open connects as the login of the address, which has to own the tables.
func Open(ctx context.Context, address string, log *slog.Logger) (*Packer, error) {
	conn, err := pg.ConnectOwner(ctx, address, log)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, setLimits); err != nil {
		return nil, errors.Join(fmt.Errorf("store: packing: %w", err), conn.Close(context.WithoutCancel(ctx)))
	}
	return &Packer{conn: conn}, nil
}

// Close ends the connection.
func (p *Packer) Close() error { return p.conn.Close(context.Background()) }

// Ends reports that an error is not about one wallet or application, so that no other is
// tried after it: the caller has stopped, the connection or the disk is at its end.
func (p *Packer) Ends(ctx context.Context, err error) bool {
	if errors.As(err, new(runError)) || ctx.Err() != nil || p.conn.IsClosed() {
		return true
	}
	state := pg.SQLState(err)
	return state != "" && !pg.WasRolledBack(err) && !strings.HasPrefix(state, invalidValue) && !strings.HasPrefix(state, violatedConstraint)
}

// Classes of Postgres errors about the rows of a statement.
const (
	invalidValue       = "22"
	violatedConstraint = "23"
)

// Result is what a call of Pack did.
type Result struct {
	Events  int64 // moved into blocks by this call
	Before  int64 // events before this time are packed; 0 when there was nothing to do
	Skipped int64 // wallets whose events stay, because of an error
}

// Pack moves the events of an application that were created before a time, and have ids of
// an earlier time, into blocks. A run that was interrupted is finished first, and one that
// skipped wallets tries them again. Now is the application's time, for the record.
func (p *Packer) Pack(ctx context.Context, scope tenancy.Scope, before, now int64) (r Result, err error) {
	if err := p.raiseFence(ctx); err != nil {
		return r, err
	}
	release, err := p.alone(ctx, scope)
	if err != nil {
		return r, err
	}
	defer release()
	w := worker{p, pg.App{Scope: scope, By: audit.Actor{Name: "purser pack", At: now}}}
	for last := int64(0); ; {
		run, err := w.begin(ctx, before, now, last)
		if err != nil || run == nil {
			return r, err
		}
		if run.Before != before && p.Continues != nil {
			p.Continues(run.Before)
		}
		moved, skipped, err := w.finish(ctx, *run)
		r.Events += moved
		r.Skipped = skipped // a later run has tried those of an earlier one again
		if err != nil {
			return r, err
		}
		r.Before, last = run.Before, run.Number
	}
}

// raiseFence has usage_events refuse sessions of releases that do not look packed events up,
// and properties of packed events stay. Both are done once for a database.
func (p *Packer) raiseFence(ctx context.Context) error {
	var done bool
	err := p.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_constraint WHERE conname = 'session_reads_packed_events')
		AND NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'properties_belong_to_an_event')`).Scan(&done)
	if err != nil {
		return fmt.Errorf("store: packing: %w", err)
	}
	if done {
		return nil
	}
	err = pg.RetryLocked(ctx, pg.SchemaPatience, func() error {
		return pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, migrations.PackingFence)
			return err
		})
	})
	if err != nil {
		return runError{fmt.Errorf("store: packing: keeping earlier releases from charging twice: %w", err)}
	}
	return nil
}

// alone keeps other processes from packing the application, until release is called or the
// connection ends. Two at once could make blocks of a wallet that overlap, and an event in
// the overlap is not found by its id.
func (p *Packer) alone(ctx context.Context, scope tenancy.Scope) (release func(), err error) {
	release, free, err := p.tryLock(ctx, "purser pack "+scope.AppID.String())
	if err != nil {
		return nil, fmt.Errorf("store: packing: %w", err)
	}
	if !free {
		return nil, errors.New("another process packs events of this application: wait until it has ended")
	}
	return release, nil
}

// tryLock takes an advisory lock unless another process has it.
func (p *Packer) tryLock(ctx context.Context, name string) (release func(), free bool, err error) {
	if err := p.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`, name).Scan(&free); err != nil {
		return nil, false, err
	}
	return func() {
		// Otherwise the lock ends with the connection.
		_, _ = p.conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, name)
	}, free, nil
}

func (p *Packer) step(name string) error {
	if p.Between == nil {
		return nil
	}
	if err := p.Between(name); err != nil {
		return runError{err}
	}
	return nil
}

// runError is an error that every other wallet and application would meet, too.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// pause waits, or returns why the caller stopped.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// worker packs one application.
type worker struct {
	*Packer
	app pg.App
}

// run is a row of packed_runs.
type run struct {
	Number, Before int64
	Scanned        ids.ID
	Indexed, Done  bool
	Events         int64
	Skipped        int64
}

func (w worker) transact(ctx context.Context, work func(context.Context, *pg.Tx) error) error {
	return pg.OwnerTransaction(ctx, w.conn, w.app, work)
}

// begin returns the run to work on: the last one if it is not done or has skipped wallets, or
// a new one. It is nil when events before the time are packed, or have just been tried.
func (w worker) begin(ctx context.Context, before, now, tried int64) (*run, error) {
	return pg.Return(ctx, w.transact, func(ctx context.Context, tx *pg.Tx) (*run, error) {
		// The application's row is locked first: two processes begin one run after the other.
		if _, err := tx.AdvanceEpochBy(ctx, 0); err != nil {
			return nil, err
		}
		runs, err := pg.Collect(ctx, tx, lastRun, pgx.RowToStructByPos[run])
		if err != nil {
			return nil, err
		}
		next := run{Number: 1, Before: before}
		if len(runs) > 0 {
			if last := runs[0]; !last.Done {
				return &last, nil
			}
			if last := runs[0]; last.Before >= before {
				if last.Skipped == 0 || last.Number == tried {
					return nil, nil
				}
				return &last, tx.Exec(ctx, reopenRun, 1, last.Number)
			}
			next.Number = runs[0].Number + 1
		}
		settled, err := pg.Find(ctx, tx, selectSettled, pgx.RowTo[int64], pg.ErrNoAppState)
		if err != nil {
			return nil, err
		}
		if settled < before {
			return nil, fmt.Errorf("usage is added up until %s, and events until %s are to be packed: run 'purser serve' until its statistics have caught up",
				moment(settled), moment(before))
		}
		if err := tx.Exec(ctx, insertRun, 1, pg.Named{"run": next.Number, "before": before, "none": ids.ID{}, "at": now}); err != nil {
			return nil, err
		}
		if _, err := tx.AdvanceEpoch(ctx); err != nil {
			return nil, err
		}
		return &next, tx.AuditRemoval(ctx, "events.pack", w.app.Scope.AppID.Format(ids.Application), nil, audit.Fields{"before": moment(before)})
	})
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// finish lists the ids of a run, moves its events, and returns how many, and of how many
// wallets they stay.
func (w worker) finish(ctx context.Context, r run) (moved, skipped int64, err error) {
	if err := w.step("announced"); err != nil {
		return 0, 0, err
	}
	if err := w.awaitHorizon(ctx); err != nil {
		return 0, 0, err
	}
	for !r.Indexed {
		if err := w.index(ctx, &r); err != nil {
			return 0, 0, err
		}
		if err := w.step("indexed"); err != nil {
			return 0, 0, err
		}
	}
	moved, skipped, err = w.moveAll(ctx, r)
	if err != nil {
		return moved, skipped, err
	}
	return moved, skipped, w.transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		if err := tx.Exec(ctx, finishRun, 1, r.Number, skipped); err != nil {
			return err
		}
		events, err := pg.Find(ctx, tx, sumMoved, pgx.RowTo[int64], pg.ErrNoAppState)
		if err != nil {
			return err
		}
		_, err = tx.Conn.Exec(ctx, recordResult, w.app.Scope.AppID, events, skipped)
		return err
	})
}

// awaitHorizon waits until every transaction has ended that may have been decided before the
// run was announced. Later ones see the epoch that it advanced.
func (w worker) awaitHorizon(ctx context.Context) error {
	var own, oldest int64
	if err := w.conn.QueryRow(ctx, `SELECT pg_current_xact_id()::text::bigint`).Scan(&own); err != nil {
		return fmt.Errorf("store: packing: %w", err)
	}
	for waited := time.Duration(0); ; waited += horizonPoll {
		if err := w.conn.QueryRow(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`).Scan(&oldest); err != nil {
			return fmt.Errorf("store: packing: %w", err)
		}
		if oldest > own {
			return nil
		}
		if waited >= horizonWait {
			return runError{fmt.Errorf("transaction %d of the database is open for more than %s: packing waits for it (see pg_stat_activity.backend_xid). Run it again when it has ended", oldest, horizonWait)}
		}
		if err := pause(ctx, horizonPoll); err != nil {
			return err
		}
	}
}
