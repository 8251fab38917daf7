package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/migrate"

	"purser/migrations"
)

const (
	migrationsTable = "schema_migrations"
	migrationLock   = 7_081_727_312_018 // any number that nobody else on the database uses
)

// Migrate brings the schema up to date. Several processes may call it at once:
// one works, the others wait for it and find nothing left to do.
func Migrate(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("store: the database address cannot be read: %w", withoutPassword(err))
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("store: the database cannot be reached: %w", err)
	}
	release, err := lockMigrations(ctx, db)
	if err != nil {
		return fmt.Errorf("store: waiting for other migrations: %w", err)
	}
	defer release()

	all, err := discoverMigrations()
	if err != nil {
		return err
	}
	migrator := migrate.NewMigrator(bun.NewDB(db, pgdialect.New()), all,
		migrate.WithTableName(migrationsTable),
		migrate.WithLocksTableName(migrationsTable+"_locks"),
		migrate.WithMarkAppliedOnSuccess(true),
		migrate.WithUpsert(true),
		migrate.AfterMigration(recordInTransaction),
	)
	if err := migrator.Init(ctx); err != nil {
		return fmt.Errorf("store: preparing migrations: %w", err)
	}
	if _, err := migrator.Migrate(ctx); err != nil {
		return fmt.Errorf("store: migrating: %w", err)
	}
	return migrateJobs(ctx, url)
}

// recordInTransaction notes a migration in the transaction that makes it. The
// migrator notes it once more afterwards; a crash between the two leaves no
// migration that is made and not noted.
func recordInTransaction(ctx context.Context, tx bun.IConn, m *migrate.Migration) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO schema_migrations (name, group_id) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`,
		m.Name, m.GroupID)
	return err
}

// lockMigrations waits for a lock that Postgres frees when its holder dies, so a
// killed migration never blocks the next.
func lockMigrations(ctx context.Context, db *sql.DB) (release func(), err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() { _ = conn.Close() }, nil // the lock ends with db, right after
}

func discoverMigrations() (*migrate.Migrations, error) {
	all := migrate.NewMigrations()
	if err := all.Discover(migrations.FS); err != nil {
		return nil, fmt.Errorf("store: reading migrations: %w", err)
	}
	return all, nil
}

// missingMigrations lists what this binary needs and the database lacks. What
// the database has beyond it is a newer binary's and does no harm.
func missingMigrations(applied []string) ([]string, error) {
	all, err := discoverMigrations()
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, m := range all.Sorted() {
		if !slices.Contains(applied, m.Name) {
			missing = append(missing, m.Name)
		}
	}
	return missing, nil
}
