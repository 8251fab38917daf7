package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

// The third wall by itself: whatever the store forgets, and whatever else the
// role were granted, a session sees the application that it names and no other.
func TestRowLevelSecurity(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db := openStore(t, url)
	usage := openUsage(t, db)
	ours, theirs := newFixture(t, db, usage), newFixture(t, db, usage)
	owner := connect(t, url)
	// Without this it would be the missing grants that refuse.
	exec(t, owner, `GRANT ALL ON ALL TABLES IN SCHEMA public TO purser_app`)
	session := appSession{connect(t, asApp(url))}

	for _, table := range tablesOfTenants(t, owner) {
		row := func(app ids.ID) string {
			rows := texts(t, owner, `SELECT to_jsonb(r)::text FROM `+table+` r WHERE app_id = $1`, app)
			if len(rows) == 0 {
				t.Fatalf("the fixture has nothing in %s, so nothing is shown", table)
			}
			return rows[0]
		}
		ourRow, theirRow := row(ours.application.ID), row(theirs.application.ID)

		for name, setting := range map[string]string{
			"without a setting":     "",
			"with an empty setting": "SET LOCAL purser.app_id = ''",
			"with another id":       "SET LOCAL purser.app_id = '00000000-0000-0000-0000-000000000000'",
		} {
			t.Run(table+" "+name+" has no rows and takes none", func(t *testing.T) {
				for _, statement := range []string{
					`SELECT FROM ` + table, `SELECT FROM ` + table + ` FOR UPDATE`, `SELECT FROM ` + table + ` FOR SHARE`,
					`UPDATE ` + table + ` SET org_id = org_id`, `DELETE FROM ` + table,
				} {
					session.touchesNothing(t, setting, statement)
				}
				session.isRefused(t, setting, insertRow(table), ourRow)
				session.isRefused(t, setting, insertRow(table)+` ON CONFLICT DO NOTHING`, ourRow)
			})
		}

		t.Run(table+" is the named application's alone", func(t *testing.T) {
			setting := "SET LOCAL purser.app_id = '" + ours.application.ID.String() + "'"
			foreign := ` WHERE app_id <> '` + ours.application.ID.String() + `'`
			for _, statement := range []string{
				`SELECT FROM ` + table + foreign, `SELECT FROM ` + table + foreign + ` FOR UPDATE`, `SELECT FROM ` + table + foreign + ` FOR NO KEY UPDATE`,
				`UPDATE ` + table + ` SET org_id = org_id` + foreign, `DELETE FROM ` + table + foreign,
			} {
				session.touchesNothing(t, setting, statement)
			}
			session.isRefused(t, setting, insertRow(table), theirRow)
			session.isRefused(t, setting, insertRow(table)+` ON CONFLICT DO NOTHING`, theirRow)
			session.isRefused(t, setting, `UPDATE `+table+` SET app_id = $1::text::uuid`, theirs.application.ID.String())

			// The same words on one's own rows work, so it was the policy that stood there.
			if n, err := session.run(t, setting, `SELECT FROM `+table+` FOR UPDATE`); err != nil || n == 0 {
				t.Errorf("its own rows: %d, %v", n, err)
			}
			if _, err := session.run(t, setting, insertRow(table)+` ON CONFLICT DO NOTHING`, ourRow); err != nil {
				t.Errorf("its own row: %v", err)
			}
		})
	}
}

// insertRow takes a whole row as JSON.
func insertRow(table string) string {
	return `INSERT INTO ` + table + ` SELECT * FROM jsonb_populate_record(NULL::` + table + `, $1::text::jsonb)`
}

// appSession is a session of the role that serves requests.
type appSession struct{ conn *pgx.Conn }

// run runs one statement in a transaction of its own, which is rolled back.
func (s appSession) run(t *testing.T, setting, statement string, args ...any) (int64, error) {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	noError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	if setting != "" {
		exec(t, tx, setting)
	}
	tag, err := tx.Exec(t.Context(), statement, args...)
	return tag.RowsAffected(), err
}

func (s appSession) touchesNothing(t *testing.T, setting, statement string) {
	t.Helper()
	if n, err := s.run(t, setting, statement); err != nil || n != 0 {
		t.Errorf("%s; %s: %d rows, %v", setting, statement, n, err)
	}
}

func (s appSession) isRefused(t *testing.T, setting, statement string, args ...any) {
	t.Helper()
	n, err := s.run(t, setting, statement, args...)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != "42501" || !strings.Contains(refusal.Message, "row-level security") {
		t.Errorf("%s; %s: %d rows, %v", setting, statement, n, err)
	}
}

func TestNoSettingOutlivesItsTransaction(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 3})
	noError(t, err)
	t.Cleanup(db.Close)
	usage := openUsage(t, db)
	home := newFixture(t, db, usage)

	for name, end := range map[string]func(context.CancelFunc, *pgx.Conn) error{
		"a commit":  func(context.CancelFunc, *pgx.Conn) error { return nil },
		"a refusal": func(context.CancelFunc, *pgx.Conn) error { return errors.New("refused") },
		"a failed statement": func(_ context.CancelFunc, c *pgx.Conn) error {
			_, err := c.Exec(context.Background(), "SELECT 1/0")
			return err
		},
		"an error that nobody looked at": func(_ context.CancelFunc, c *pgx.Conn) error {
			_, _ = c.Exec(context.Background(), "SELECT 1/0")
			return nil
		},
		"a caller that goes away": func(cancel context.CancelFunc, _ *pgx.Conn) error { cancel(); return context.Canceled },
		"a connection that dies":  func(_ context.CancelFunc, c *pgx.Conn) error { return c.PgConn().Conn().Close() },
		"a panic":                 func(context.CancelFunc, *pgx.Conn) error { panic("at the worst moment") },
	} {
		t.Run(name, func(t *testing.T) {
			func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_ = store.Transact(ctx, home.App, func(ctx context.Context, c *pgx.Conn) error {
					if seen := walletsSeen(t, c); seen == 0 {
						t.Error("the transaction does not see its own wallet")
					}
					return end(cancel, c)
				})
			}()
			everyConnectionIsBlank(t, store.PoolOf(db))
		})
	}

	t.Run("a caller that goes away while Postgres works", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		backend, ended := make(chan uint32, 1), make(chan error, 1)
		go func() {
			ended <- store.Transact(ctx, home.App, func(ctx context.Context, c *pgx.Conn) error {
				backend <- c.PgConn().PID()
				_, err := c.Exec(ctx, "SELECT pg_sleep(600)")
				return err
			})
		}()
		watcher, pid := connect(t, storetest.URL(t)), <-backend
		soon(t, "Postgres sleeps", func() bool {
			return len(texts(t, watcher, `SELECT query FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'`, pid)) == 1
		})
		cancel()
		err := <-ended
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		everyConnectionIsBlank(t, store.PoolOf(db))
	})

	t.Run("a new application", func(t *testing.T) {
		newTenant(t, db)
		everyConnectionIsBlank(t, store.PoolOf(db))
	})

	t.Run("a batch, accepted or refused", func(t *testing.T) {
		refused := home.useOf("messages", "too much")
		refused.Quantity = 1_000_000
		for _, use := range []store.Usage{home.useOf("messages", "fine"), refused, {Scope: home.application.Scope()}} {
			_, _ = usage.Track(use)
			_, _ = usage.Check(use)
		}
		everyConnectionIsBlank(t, store.UsageWritesOf(usage))
		everyConnectionIsBlank(t, store.UsageReadsOf(usage))
	})
}

// everyConnectionIsBlank takes every connection that a pool may have, at once, and
// looks at what it remembers.
func everyConnectionIsBlank(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for i := range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		noError(t, err)
		defer conn.Release()
		setting := texts(t, conn, `SELECT coalesce(current_setting('purser.app_id', true), '')`)
		if seen := walletsSeen(t, conn.Conn()); setting[0] != "" || seen != 0 {
			t.Errorf("connection %d still names %q and sees %d wallets", i, setting[0], seen)
		}
	}
}

func walletsSeen(t *testing.T, on execer) (n int) {
	t.Helper()
	_, err := fmt.Sscan(texts(t, on, `SELECT count(*)::text FROM wallets`)[0], &n)
	noError(t, err)
	return n
}
