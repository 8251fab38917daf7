package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/tenancy"
)

var (
	ensureWorld = declare("ensure world", `
		INSERT INTO sandbox_worlds (app_id, org_id)
		SELECT s.app_id, s.org_id FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO NOTHING`)

	lockWorld = declare("lock world", `
		SELECT state FROM sandbox_worlds WHERE app_id = $1 FOR NO KEY UPDATE`)

	selectWorld = declare("select world", `
		SELECT state FROM sandbox_worlds WHERE app_id = $1`)

	updateWorld = declare("update world", `
		UPDATE sandbox_worlds SET state = $2 WHERE app_id = $1`)

	setClock = declare("set clock", `
		UPDATE app_state SET clock_offset = $2, epoch = epoch + 1
		WHERE app_id = $1 AND clock_offset <> $2`)
)

// World is what the payments sandbox keeps of an application.
type World struct {
	State       []byte
	ClockOffset int64 // how far the application's clock is ahead of the real one
	WakeAt      int64 // the real time at which something happens by itself; 0 for never
}

// Worlds keeps the worlds of the payments sandbox, one an application.
type Worlds struct {
	store *Store
}

// Worlds is where the payments sandbox keeps its state.
func (s *Store) Worlds() Worlds { return Worlds{store: s} }

// Update hands the world's state to change, or nothing the first time, and keeps
// what it returns: one change of an application at a time, on all nodes together.
// The application's clock moves in the same transaction, and with it the epoch: a
// use that comes after the reply is decided by the new time, on whichever node. It
// keeps nothing when change fails. When Postgres asks for another try, change runs
// again, on what is then stored.
func (w Worlds) Update(ctx context.Context, app ids.ID, change func(state []byte) (World, error)) error {
	return w.app(app).transact(ctx, func(ctx context.Context, tx appTx) error {
		state, err := tx.lockWorld(ctx)
		if err != nil {
			return err
		}
		next, err := change(state)
		if err != nil {
			return err
		}
		if err := tx.exec(ctx, updateWorld, 1, next.State); err != nil {
			return err
		}
		moved, err := tx.execAny(ctx, setClock, next.ClockOffset)
		if err != nil {
			return err
		}
		if err := tx.exec(ctx, setHint, 1, sandboxHint, orNull(next.WakeAt)); err != nil || moved == 0 {
			return err
		}
		return tx.hint(ctx) // what waits for the application's time waits less
	})
}

// lockWorld locks the world and gives its state. The row is made first: one that
// is not there cannot be locked.
func (tx appTx) lockWorld(ctx context.Context) ([]byte, error) {
	if _, err := tx.execAny(ctx, ensureWorld); err != nil {
		return nil, err
	}
	return find(ctx, tx, lockWorld, pgx.RowTo[[]byte], errNoAppState)
}

// View gives the state as it was last kept, or nothing.
func (w Worlds) View(ctx context.Context, app ids.ID) (state []byte, err error) {
	err = w.app(app).transact(ctx, func(ctx context.Context, tx appTx) error {
		kept, err := collect(ctx, tx, selectWorld, pgx.RowTo[[]byte])
		if err != nil || len(kept) == 0 {
			return err
		}
		state = kept[0]
		return nil
	})
	return state, err
}

// Due lists applications whose worlds have something to do by now, the longest
// waiting first, at most so many.
func (w Worlds) Due(ctx context.Context, at int64, most int) ([]ids.ID, error) {
	scopes, err := w.store.Directory().due(ctx, sandboxHint, at, most)
	if err != nil {
		return nil, err
	}
	apps := make([]ids.ID, len(scopes))
	for i, scope := range scopes {
		apps[i] = scope.AppID
	}
	return apps, nil
}

// app is the door to an application whose organization does not matter: the
// statements above take it from the application's own row.
func (w Worlds) app(id ids.ID) App {
	return w.store.App(tenancy.Scope{AppID: id})
}
