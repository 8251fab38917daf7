package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/migrations"
	"purser/store"
	"purser/store/embedded/flock"
)

// templateLock is held while a migrated template database is created.
const templateLock = "template.lock"

// The name of a test's database has the number of its process, by which others
// see that it is gone; its time, since numbers come back; and a count.
const databaseName = "test_%d_%d_%d"

var (
	processStart = time.Now().UnixNano()
	databases    atomic.Int64
)

// createEmpty makes a database and returns its name.
func (c *cluster) createEmpty(ctx context.Context) (string, error) {
	return c.create(ctx, "template1")
}

// createMigrated copies the migrated database and returns the copy's name.
func (c *cluster) createMigrated(ctx context.Context) (string, error) {
	template, err := c.template(ctx)
	if err != nil {
		return "", fmt.Errorf("storetest: making a migrated database: %w", err)
	}
	name, err := c.create(ctx, template)
	if err != nil || c.server == nil {
		return name, err
	}
	// Tests open many sessions, in each of which Postgres would plan every statement five
	// times before it keeps a plan. Plans of Citus depend on the values.
	return name, c.everywhere(ctx, "ALTER DATABASE "+name+" SET plan_cache_mode = force_generic_plan")
}

func (c *cluster) create(ctx context.Context, template string) (string, error) {
	name := fmt.Sprintf(databaseName, os.Getpid(), processStart, databases.Add(1))
	if err := c.everywhere(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return "", fmt.Errorf("storetest: making a database: %w", err)
	}
	return name, nil
}

// drop also ends the sessions that a test has left open.
func (c *cluster) drop(ctx context.Context, name string) error {
	if err := c.everywhere(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("storetest: removing a database: %w", err)
	}
	return nil
}

// dropAbandoned removes the databases of processes that are gone, which would
// otherwise fill the disk of someone who runs tests all day.
func (c *cluster) dropAbandoned(ctx context.Context) error {
	var names []string
	err := c.admin(ctx, func(conn *pgx.Conn) (err error) {
		rows, _ := conn.Query(ctx, "SELECT datname::text FROM pg_database") // CollectRows returns its error
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		var pid, started, number int64
		if _, err := fmt.Sscanf(name, databaseName, &pid, &started, &number); err != nil {
			continue
		}
		if errors.Is(syscall.Kill(int(pid), 0), syscall.ESRCH) {
			if err := c.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// template is the name of the database with all migrations of this binary. It
// gets that name when it is whole, and takes no connections, so that it can be
// copied at any time.
func (c *cluster) template(ctx context.Context) (string, error) {
	sum, err := migrationsSum()
	if err != nil {
		return "", err
	}
	name := "migrated_" + sum
	lock, err := flock.Acquire(ctx, filepath.Join(c.dir, templateLock), flock.Exclusive)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	return name, c.admin(ctx, func(conn *pgx.Conn) error {
		var exists bool
		err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists)
		if err != nil || exists {
			return err
		}
		draft := "draft_" + sum
		err = c.everywhere(ctx,
			// The cluster may lie in memory. Autovacuum would change plans, the pages of rows and what
			// VACUUM can remove at any moment of a test.
			"ALTER SYSTEM SET max_wal_size = '512MB'", "ALTER SYSTEM SET min_wal_size = '128MB'",
			"ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()",
			"DROP DATABASE IF EXISTS "+draft+" WITH (FORCE)", "CREATE DATABASE "+draft)
		if err != nil {
			return err
		}
		if err := c.enlist(ctx, draft); err != nil {
			return err
		}
		if err := Migrate(ctx, c.url(draft)); err != nil {
			return err
		}
		if err := c.distribute(ctx, draft); err != nil {
			return err
		}
		return c.everywhere(ctx, "ALTER DATABASE "+draft+" ALLOW_CONNECTIONS false", "ALTER DATABASE "+draft+" RENAME TO "+name)
	})
}

// migrationsSum is the same for the same files, names included.
func migrationsSum() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(migrations.FS, path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), err
}

// admin runs statements on a connection that belongs to no test.
func (c *cluster) admin(ctx context.Context, work func(*pgx.Conn) error) error {
	return c.nodes[0].admin(ctx, work)
}

// everywhere runs statements on each node, the one that tests use first.
func (c *cluster) everywhere(ctx context.Context, statements ...string) error {
	for _, n := range c.nodes {
		err := n.admin(ctx, func(conn *pgx.Conn) error {
			for _, sql := range statements {
				if _, err := conn.Exec(ctx, sql); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n node) admin(ctx context.Context, work func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, n("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(work(conn), conn.Close(ctx))
}

// Migrate prepares a database without a log.
func Migrate(ctx context.Context, address string) error {
	return store.Prepare(ctx, address, slog.New(slog.DiscardHandler))
}
