package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// ErrFenced says that a lease has gone to somebody else since it was taken, so that
// whatever its holder found out may be old. Nothing was stored.
var ErrFenced = errors.New("store: the lease has gone to somebody else")

// ErrUnknown says that there is no such thing of the provider here.
var ErrUnknown = errors.New("store: this is not known here")

// Fence is proof of having held a lease at its number. A later holder has a higher
// one.
type Fence struct {
	Name   string
	Number int64
}

var (
	// The first number of a lease is the time, and each holder's is one more. So one
	// that was let go of and is made anew goes on above all numbers that it ever had.
	takeLease = declare("take lease", `
		INSERT INTO leases (app_id, org_id, name, holder, held_until, fence) VALUES ($1, $2, $3, $4, $6, $5)
		ON CONFLICT (app_id, name) DO UPDATE
		SET holder = excluded.holder, held_until = excluded.held_until, fence = leases.fence + 1
		WHERE leases.holder IN (excluded.holder, '00000000-0000-0000-0000-000000000000') OR leases.held_until <= $5
		RETURNING fence`)

	renewLease = declare("renew lease", `
		UPDATE leases SET held_until = $4
		WHERE app_id = $1 AND name = $2 AND fence = $3 AND holder <> '00000000-0000-0000-0000-000000000000'`)

	// Nobody holds it then, whatever the clock says: it may go back.
	releaseLease = declare("release lease", `
		UPDATE leases SET held_until = $4, holder = '00000000-0000-0000-0000-000000000000' WHERE app_id = $1 AND name = $2 AND fence = $3 AND held_until > $4`)

	checkFence = declare("check fence", `
		SELECT fence FROM leases WHERE app_id = $1 AND name = $2 AND fence = $3 FOR SHARE`)
)

// Lease takes a lease that is free, has run out, or is the holder's own, for a time.
// It reports whether it was to be had. The database's clock alone says when a lease
// has run out: those of two nodes may be hours apart.
func (a App) Lease(ctx context.Context, name string, holder ids.ID, length time.Duration) (f Fence, held bool, err error) {
	f.Name = name
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		now, err := tx.clock(ctx)
		if err != nil {
			return err
		}
		taken, err := collect(ctx, tx, takeLease, pgx.RowTo[int64], a.scope.OrgID, name, holder, now, now+length.Milliseconds())
		if held = len(taken) == 1; held {
			f.Number = taken[0]
		}
		return err
	})
	return f, held, err
}

// RenewLease makes a lease last for the length from now on, under the same number. It
// reports whether the lease is still held: one that has run out is, until another
// holder takes it.
func (a App) RenewLease(ctx context.Context, f Fence, length time.Duration) (held bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		now, err := tx.clock(ctx)
		if err != nil {
			return err
		}
		renewed, err := tx.execAny(ctx, renewLease, f.Name, f.Number, now+length.Milliseconds())
		held = renewed == 1
		return err
	})
	return held, err
}

// Release gives a lease back. One that has gone to somebody else stays theirs.
func (a App) Release(ctx context.Context, f Fence) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		now, err := tx.clock(ctx)
		if err != nil {
			return err
		}
		_, err = tx.execAny(ctx, releaseLease, f.Name, f.Number, now)
		return err
	})
}

// clock reads the database's clock. It is asked by itself: a statement that several
// shards may run has to be given its times.
func (tx appTx) clock(ctx context.Context) (now int64, err error) {
	if err := tx.conn.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`).Scan(&now); err != nil {
		return 0, fmt.Errorf("store: the database's clock: %w", err)
	}
	return now, nil
}

// hold refuses a fence that is not the lease's latest. Until the transaction ends,
// nobody else gets the lease.
func (tx appTx) hold(ctx context.Context, f Fence) error {
	_, err := find(ctx, tx, checkFence, pgx.RowTo[int64], ErrFenced, f.Name, f.Number)
	return err
}
