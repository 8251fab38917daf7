package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/payments/sandbox/persist"
	"purser/store/internal/pg"
	"purser/store/internal/wire"
	"purser/store/queue"
	"purser/tenancy"
)

var (
	ensureWorld = pg.Declare("ensure world", `
		INSERT INTO sandbox_worlds (app_id, org_id)
		SELECT s.app_id, s.org_id FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO NOTHING`)

	lockWorld = pg.Declare("lock world", `
		SELECT org_id, head, CASE WHEN head IS NULL THEN state END FROM sandbox_worlds WHERE app_id = $1 FOR NO KEY UPDATE`)

	selectWorld = pg.Declare("select world", `
		SELECT org_id, head, CASE WHEN head IS NULL THEN state END FROM sandbox_worlds WHERE app_id = $1`)

	// An account that has become rows keeps a document that an older program refuses.
	// Without one it would start with an empty account.
	updateWorld = pg.Declare("update world", `
		UPDATE sandbox_worlds SET head = $2, state = CASE WHEN head IS NULL THEN '{"Version": 2}' ELSE state END WHERE app_id = $1`)

	setClock = pg.Declare("set clock", `
		UPDATE app_state SET clock_offset = $2, epoch = epoch + $3
		WHERE app_id = $1 AND clock_offset <> $2`)
)

// sandboxConns is how many connections the sandbox uses at once: what strangers do at
// its pages leaves the others to requests.
const sandboxConns = 4

// SandboxAccounts keeps the accounts of the payments sandbox, one an application.
type SandboxAccounts struct {
	handles *Handles
}

// SandboxAccounts is where the payments sandbox keeps its accounts.
func (h *Handles) SandboxAccounts() SandboxAccounts { return SandboxAccounts{handles: h} }

// occupy waits for one of the sandbox's connections.
func (w SandboxAccounts) occupy(ctx context.Context) (leave func(), err error) {
	select {
	case w.handles.sandboxConns <- struct{}{}:
		return func() { <-w.handles.sandboxConns }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("store: no connection for the sandbox: %w", ctx.Err())
	}
}

// Update calls change with an account and stores the result: one change of an
// application at a time, on all nodes together. The application's clock and epoch are
// updated in the same transaction: usage after the response is decided by the new time, on
// every node. It stores nothing when change fails. After a serialization failure, change
// runs again on the state that is stored by then.
func (w SandboxAccounts) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	leave, err := w.occupy(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return w.app(app).transact(ctx, func(ctx context.Context, tx appTx) error {
		session, org, err := tx.lockWorld(ctx, want)
		if err != nil {
			return err
		}
		tx.Scope.OrgID = org
		next, err := change(session)
		if err != nil {
			return err
		}
		moved, err := tx.storeWorld(ctx, next)
		if err != nil || !moved {
			return err
		}
		return tx.ScheduleWake(ctx) // what waits for the application's time waits less
	})
}

// lockWorld locks the account and reads what is wanted of it, after the lock. The row
// is made where it is missing: one that is not there cannot be locked.
func (tx appTx) lockWorld(ctx context.Context, want persist.Want) (session persist.Session, org ids.ID, err error) {
	session, org, err = tx.readWorld(ctx, lockWorld, want)
	if err != nil || !org.IsZero() {
		return session, org, err
	}
	if _, err := tx.ExecAny(ctx, ensureWorld); err != nil {
		return persist.Session{}, org, err
	}
	session, org, err = tx.readWorld(ctx, lockWorld, want)
	if err == nil && org.IsZero() {
		err = pg.ErrNoAppState
	}
	return session, org, err
}

// readWorld reads an account, and the organization that it belongs to, in one round trip.
// The organization is zero for an account that is not there.
func (tx appTx) readWorld(ctx context.Context, head pg.Statement, want persist.Want) (s persist.Session, org ids.ID, err error) {
	batch := &pgx.Batch{}
	batch.Queue(head.SQL, tx.Args(nil)...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&org, &s.Head, &s.Legacy); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if len(want.Keys) > 0 {
		batch.Queue(loadObjects.SQL, tx.Args([]any{want.Keys})...).Query(readObjects(&s.Rows))
	}
	if want.Timers != "" {
		batch.Queue(earliestObjects.SQL, tx.Args([]any{want.Timers, int64(firstDue), int64(0), want.Limit})...).Query(readObjects(&s.Timers))
	}
	s.Source = objects{ctx, tx}
	if err := tx.Conn.SendBatch(ctx, batch).Close(); err != nil {
		return persist.Session{}, org, fmt.Errorf("store: %s: %w", head.Name, err)
	}
	return s, org, nil
}

// storeWorld writes a change in one round trip, and reports whether the clock moved.
func (tx appTx) storeWorld(ctx context.Context, c persist.Change) (moved bool, err error) {
	batch := &pgx.Batch{}
	if c.Replace {
		batch.Queue(deleteObjects.SQL, tx.Args(nil)...)
	}
	if len(c.Rows) > 0 {
		batch.Queue(upsertObjects.SQL, tx.Args(objectColumns(c.Rows))...)
	}
	if len(c.Deleted) > 0 {
		batch.Queue(dropObjects.SQL, tx.Args([]any{c.Deleted})...)
	}
	for _, p := range c.Prune {
		batch.Queue(pruneObjects.SQL, tx.Args([]any{p.Kind, p.Before, p.Keep, p.Unless})...)
	}
	batch.Queue(updateWorld.SQL, tx.Args([]any{c.Head})...)
	clock := batch.Queue(setClock.SQL, tx.Args([]any{c.ClockOffset, pg.VersionStep()})...)
	batch.Queue(queue.SetHint.SQL, tx.Args([]any{queue.SandboxWake, tx.Scope.OrgID, pg.OrNull(c.WakeAt)})...)
	results := tx.Conn.SendBatch(ctx, batch)
	for _, queued := range batch.QueuedQueries {
		tag, err := results.Exec()
		if err != nil {
			return false, errors.Join(fmt.Errorf("store: store world: %w", err), results.Close())
		}
		if queued == clock {
			moved = tag.RowsAffected() > 0
		}
	}
	return moved, results.Close()
}

// View reads an account as it is at one moment.
func (w SandboxAccounts) View(ctx context.Context, app ids.ID, want persist.Want, look func(persist.Session) error) error {
	leave, err := w.occupy(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return w.app(app).snapshot(ctx, func(ctx context.Context, tx appTx) error {
		session, _, err := tx.readWorld(ctx, selectWorld, want)
		if err != nil {
			return err
		}
		return look(session)
	})
}

// Find is the key of the object of a kind with the id, or with the alias, in one round
// trip. An account that was never stored as rows may have it: then the key is empty.
func (w SandboxAccounts) Find(ctx context.Context, app ids.ID, kind, name string, byAlias bool) (key string, found bool, err error) {
	leave, err := w.occupy(ctx)
	if err != nil {
		return "", false, err
	}
	defer leave()
	pooled, err := w.handles.db.Acquire(ctx)
	if err != nil {
		return "", false, fmt.Errorf("store: no connection: %w", err)
	}
	defer pg.Release(pooled)
	p := wire.NewPipe(ctx, pooled.Conn())
	p.Text(pg.BeginReadOnly.SQL)
	p.Text(pg.SetApplication(app))
	read := func(r *wire.Row) { key, found = r.Text(), true }
	if byAlias {
		p.SendText(objectByAlias, read, app[:], []byte(kind), []byte(name))
	} else {
		p.SendText(objectByKey, read, app[:], []byte(persist.Key(kind, name)))
	}
	p.Text(pg.CommitTx.SQL)
	return key, found, p.Run()
}

// Due lists applications whose accounts have something to do by now, the longest
// waiting first, at most limit.
func (w SandboxAccounts) Due(ctx context.Context, at int64, limit int) ([]ids.ID, error) {
	scopes, err := w.handles.queues.Due(ctx, queue.SandboxWake, at, limit)
	if err != nil {
		return nil, err
	}
	apps := make([]ids.ID, len(scopes))
	for i, scope := range scopes {
		apps[i] = scope.AppID
	}
	return apps, nil
}

// app is a handle of an application whose organization does not matter: the
// statements above take it from the application's own row.
func (w SandboxAccounts) app(id ids.ID) App {
	return w.handles.App(tenancy.Scope{AppID: id})
}
