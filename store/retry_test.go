package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

const lockWallet = `SELECT id FROM wallets WHERE app_id = $1 AND identity = $2 FOR UPDATE`

// contested is an application with two wallets for which transactions compete.
type contested struct {
	tenant
	url string
}

func newContested(t *testing.T) contested {
	t.Helper()
	url := storetest.FreshURL(t)
	// A deadlock is looked for after this long; by default it is a second.
	name := texts(t, connect(t, url), `SELECT current_database()::text`)[0]
	exec(t, connect(t, url), `ALTER DATABASE `+name+` SET deadlock_timeout = '10ms'`)
	c := contested{newTenant(t, openStore(t, url)), url}
	for _, identity := range []string{"ann", "bob"} {
		_, _, err := c.CreateWallet(t.Context(), ids.New(), identity, moment)
		noError(t, err)
	}
	return c
}

// lock takes a wallet's lock, in a transaction that waits but shortly.
func (c contested) lock(ctx context.Context, conn *pgx.Conn, identity string) error {
	_, err := conn.Exec(ctx, `SET LOCAL lock_timeout = '20ms'`)
	if err == nil {
		_, err = conn.Exec(ctx, lockWallet, c.application.ID, identity)
	}
	return err
}

// hold keeps a wallet locked from outside until it is let go.
func (c contested) hold(t *testing.T, identity string) (letGo func()) {
	t.Helper()
	tx, err := connect(t, c.url).Begin(t.Context())
	noError(t, err)
	exec(t, tx, lockWallet, c.application.ID, identity)
	return func() { noError(t, tx.Rollback(context.Background())) }
}

func TestAReadThatFailsLeavesItsConnectionUsable(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 1})
	noError(t, err)
	t.Cleanup(db.Close)
	app := newTenant(t, db)
	if _, err := app.Plan(t.Context(), "no text\x00"); err == nil || fault.Is(err, fault.PlanNotFound) {
		t.Errorf("Postgres accepts a NUL: %v", err)
	}
	if _, err := app.Plan(t.Context(), "none"); !fault.Is(err, fault.PlanNotFound) {
		t.Errorf("the next read returns %v", err)
	}
	if opened := store.PoolOf(db).Stat().NewConnsCount(); opened != 1 {
		t.Errorf("%d connections were opened", opened)
	}
}

func TestTransactionsRunAgain(t *testing.T) {
	t.Parallel()
	c := newContested(t)

	t.Run("after they waited too long for a lock", func(t *testing.T) {
		letGo, attempts := c.hold(t, "ann"), 0
		err := store.Transact(t.Context(), c.App, func(ctx context.Context, conn *pgx.Conn) error {
			if attempts++; attempts == 3 {
				letGo()
			}
			return c.lock(ctx, conn, "ann")
		})
		if err != nil || attempts != 3 {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})

	t.Run("after Postgres chose them to end a deadlock", func(t *testing.T) {
		var attempts atomic.Int64
		both := make(chan struct{})
		var waiting atomic.Int64
		errs := make([]error, 2)
		atOnce(2, func(i int) {
			first := true
			errs[i] = store.Transact(t.Context(), c.App, func(ctx context.Context, conn *pgx.Conn) error {
				attempts.Add(1)
				order := [][]string{{"ann", "bob"}, {"bob", "ann"}}[i]
				if _, err := conn.Exec(ctx, lockWallet, c.application.ID, order[0]); err != nil {
					return err
				}
				if first { // each has one wallet before it asks for the other's
					first = false
					if waiting.Add(1) == 2 {
						close(both)
					}
					<-both
				}
				_, err := conn.Exec(ctx, lockWallet, c.application.ID, order[1])
				return err
			})
		})
		if err := errors.Join(errs...); err != nil || attempts.Load() < 3 { // more where the two meet again
			t.Errorf("%d attempts, %v", attempts.Load(), err)
		}
	})

	t.Run("after another transaction changed what they had read", func(t *testing.T) {
		attempts := 0
		err := store.Transact(t.Context(), c.App, func(ctx context.Context, conn *pgx.Conn) error {
			attempts++
			exec(t, conn, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
			exec(t, conn, `SELECT version FROM wallets WHERE app_id = $1`, c.application.ID)
			if attempts == 1 {
				exec(t, connect(t, c.url), `UPDATE wallets SET version = version + 1 WHERE app_id = $1`, c.application.ID)
			}
			_, err := conn.Exec(ctx, `UPDATE wallets SET version = version + 1 WHERE app_id = $1`, c.application.ID)
			return err
		})
		if err != nil || attempts != 2 {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})
}

func TestTransactionsEnd(t *testing.T) {
	t.Parallel()
	c := newContested(t)
	letGo := c.hold(t, "ann")
	defer letGo()

	t.Run("after so many attempts, with the reason", func(t *testing.T) {
		attempts := 0
		err := store.Transact(t.Context(), c.App, func(ctx context.Context, conn *pgx.Conn) error {
			attempts++
			return c.lock(ctx, conn, "ann")
		})
		if attempts != store.MaxAttempts || err == nil || !strings.Contains(err.Error(), "lock timeout") {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})

	t.Run("when the caller's time is over", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := 0
		err := store.Transact(ctx, c.App, func(_ context.Context, conn *pgx.Conn) error {
			attempts++
			defer cancel()
			return c.lock(t.Context(), conn, "ann")
		})
		if attempts != 1 || err == nil {
			t.Errorf("%d attempts, %v", attempts, err)
		}
	})

	t.Run("at once for what another attempt would not change", func(t *testing.T) {
		for name, sql := range map[string]string{
			"a taken key":    `INSERT INTO wallets (app_id, id, org_id, identity, created_at) VALUES ($1, gen_random_uuid(), $1, 'bob', 0)`,
			"a broken rule":  `UPDATE wallets SET version = -1 WHERE app_id = $1`,
			"a bad number":   `SELECT 1 / (epoch - epoch) FROM app_state WHERE app_id = $1`,
			"a missing name": `SELECT nothing FROM app_state WHERE app_id = $1`,
		} {
			attempts := 0
			err := store.Transact(t.Context(), c.App, func(ctx context.Context, conn *pgx.Conn) error {
				attempts++
				_, err := conn.Exec(ctx, sql, c.application.ID)
				return err
			})
			if attempts != 1 || err == nil {
				t.Errorf("%s: %d attempts, %v", name, attempts, err)
			}
		}
	})

	t.Run("without a trace when a statement failed unnoticed", func(t *testing.T) {
		err := store.Transact(t.Context(), c.App, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `UPDATE wallets SET charged = true WHERE app_id = $1 AND identity = 'bob'`, c.application.ID)
			_, _ = conn.Exec(ctx, `SELECT 1/0`)
			return err
		})
		if err == nil {
			t.Error("it says that it has committed")
		}
		if w, err := c.Wallet(t.Context(), "bob"); err != nil || w.Charged {
			t.Errorf("the wallet is %+v, %v", w, err)
		}
	})
}
