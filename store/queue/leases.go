package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// ErrFenced means that another holder has taken the lease, so the caller's data may be
// stale. Nothing was stored.
var ErrFenced = errors.New("store: the lease was taken by another holder")

// Fence is a fencing token: it proves that a lease was held under this number. Later
// holders have higher numbers.
type Fence struct {
	Name   string
	Number int64
	// ClockOffset is how far the application's clock was ahead when the lease was taken.
	ClockOffset int64
	// Renamed says that a wallet of the application got another identity less than a minute
	// before: what the lease was taken for may have another one by now.
	Renamed bool
}

// leaseState is what a holder has to know of the application.
type leaseState struct {
	ClockOffset int64
	Renamed     bool
}

// IdentityLease names the lease of an identity by a hash: lease rows outlive
// operations, and the identity is personal data.
func IdentityLease(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "identity:" + hex.EncodeToString(sum[:])
}

var (
	// The first number of a lease is the time, and each holder's is one more. So a
	// lease that was pruned and created again continues above all its earlier numbers.
	takeLease = pg.Declare("take lease", `
		INSERT INTO leases (app_id, org_id, name, holder, held_until, fence) VALUES ($1, $2, $3, $4, $6, $5)
		ON CONFLICT (app_id, name) DO UPDATE
		SET holder = excluded.holder, held_until = excluded.held_until, fence = leases.fence + 1
		WHERE leases.holder IN (excluded.holder, '00000000-0000-0000-0000-000000000000') OR leases.held_until <= $5
		RETURNING fence`)

	renewLease = pg.Declare("renew lease", `
		UPDATE leases SET held_until = $4
		WHERE app_id = $1 AND name = $2 AND fence = $3 AND holder <> '00000000-0000-0000-0000-000000000000'`)

	// The zero holder frees the lease whatever the clock says: it may go back.
	releaseLease = pg.Declare("release lease", `
		UPDATE leases SET held_until = $4, holder = '00000000-0000-0000-0000-000000000000' WHERE app_id = $1 AND name = $2 AND fence = $3 AND held_until > $4`)

	checkFence = pg.Declare("check fence", `
		SELECT fence FROM leases WHERE app_id = $1 AND name = $2 AND fence = $3 FOR SHARE`)

	selectLeaseState = pg.Declare("select state of leases", `
		SELECT s.clock_offset, EXISTS (SELECT 1 FROM identity_changes c WHERE c.app_id = $1 AND NOT c.settled)
		FROM app_state s WHERE s.app_id = $1`)

	raiseFence = pg.Declare("raise fence", `
		UPDATE leases SET fence = greatest(fence, $3) WHERE app_id = $1 AND name = $2`)

	deleteLease = pg.Declare("delete lease", `
		DELETE FROM leases WHERE app_id = $1 AND name = $2`)
)

// Lease takes a lease that is free, expired or already held by the holder, and reports
// whether the holder has it. Expiry goes by the database's clock alone: the clocks of
// two nodes may be hours apart.
//
// A row that stays locked, or a transaction that Postgres rolled back in favour of
// another, means that the lease is not free, and is no error. Lease makes one attempt:
// callers that wait for a lease poll it.
func (a App) Lease(ctx context.Context, name string, holder ids.ID, length time.Duration) (Fence, bool, error) {
	var taken []int64
	var state leaseState
	err := a.clocked().attempt(ctx, func(ctx context.Context, tx Tx) error {
		now, err := tx.DatabaseClock(ctx)
		if err != nil {
			return err
		}
		var states []leaseState
		taken, states, err = pg.CollectBoth(ctx, tx,
			pg.Query{Statement: takeLease, Args: []any{a.app.Scope.OrgID, name, holder, now, now + length.Milliseconds()}}, pgx.RowTo[int64],
			pg.Query{Statement: selectLeaseState}, pgx.RowToStructByPos[leaseState])
		if err != nil || len(taken) == 0 {
			return err
		}
		if len(states) == 0 {
			return pg.ErrNoAppState
		}
		state = states[0]
		return nil
	})
	if pg.WasRolledBack(err) || pg.SQLState(err) == pg.QueryCanceled {
		return Fence{}, false, nil
	}
	if err != nil || len(taken) == 0 {
		return Fence{}, false, err
	}
	return Fence{Name: name, Number: taken[0], ClockOffset: state.ClockOffset, Renamed: state.Renamed}, true, nil
}

// RenewLease extends a lease under the same number and reports whether it is still
// held. An expired lease is held until another holder takes it.
func (a App) RenewLease(ctx context.Context, f Fence, length time.Duration) (bool, error) {
	return pg.Return(ctx, a.clocked().transact, func(ctx context.Context, tx Tx) (held bool, err error) {
		now, err := tx.DatabaseClock(ctx)
		if err != nil {
			return held, err
		}
		renewed, err := tx.ExecAny(ctx, renewLease, f.Name, f.Number, now+length.Milliseconds())
		held = renewed == 1
		return held, err
	})
}

// Release frees a lease, unless another holder has taken it.
func (a App) Release(ctx context.Context, f Fence) error {
	return a.clocked().transact(ctx, func(ctx context.Context, tx Tx) error {
		now, err := tx.DatabaseClock(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecAny(ctx, releaseLease, f.Name, f.Number, now)
		return err
	})
}

// VerifyFence fails unless the fence is the lease's latest, and keeps the lease from
// being taken until the transaction ends.
func (tx Tx) VerifyFence(ctx context.Context, f Fence) error {
	_, err := pg.Find(ctx, tx, checkFence, pgx.RowTo[int64], ErrFenced, f.Name, f.Number)
	return err
}

// HoldIdentities keeps the leases of identities from being taken until the transaction
// ends, and returns the number of each, or nil when another holder has one of them.
func (tx Tx) HoldIdentities(ctx context.Context, identities ...string) (map[string]int64, error) {
	now, err := tx.DatabaseClock(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(identities))
	for _, identity := range identities {
		names[IdentityLease(identity)] = identity
	}
	held, holder := make(map[string]int64, len(names)), ids.New()
	for _, name := range slices.Sorted(maps.Keys(names)) { // in one order, so that two transactions never wait for each other
		taken, err := pg.Collect(ctx, tx, takeLease, pgx.RowTo[int64], tx.Scope.OrgID, name, holder, now, now+1)
		if err != nil || len(taken) == 0 {
			return nil, err
		}
		if _, err := tx.ExecAny(ctx, releaseLease, name, taken[0], now); err != nil {
			return nil, err
		}
		held[names[name]] = taken[0]
	}
	return held, nil
}

// RaiseFence has the later holders of an identity's lease get numbers above this one.
func (tx Tx) RaiseFence(ctx context.Context, identity string, number int64) error {
	_, err := tx.ExecAny(ctx, raiseFence, IdentityLease(identity), number)
	return err
}

// DeleteLease removes the lease of an identity, which its name could be guessed from.
func (tx Tx) DeleteLease(ctx context.Context, identity string) error {
	_, err := tx.ExecAny(ctx, deleteLease, IdentityLease(identity))
	return err
}
