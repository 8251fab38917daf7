package pg

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/migrate"

	"purser/migrations"
)

const (
	migrationsTable = "schema_migrations"
	migrationLock   = 7_081_727_312_018 // an advisory lock that no other program on the database uses
	// repairLockTimeout is how long a repair of policies waits for a table.
	repairLockTimeout = 10 * time.Second
	// repairsNamed is how many repairs the log line names.
	repairsNamed = 10
)

// Prepare makes a database ready to serve: the serving role, the migrations, and
// the role's grants and policies. Several processes may call it at once: one works,
// the others wait for it and find nothing left to do.
//
// A login that does not own the tables changes nothing: Prepare then checks that
// everything is as the owner's Prepare would leave it, and refuses otherwise.
func Prepare(ctx context.Context, address string, log *slog.Logger) error {
	return prepare(ctx, address, log, false)
}

// prepare is Prepare; restoring is for the restore itself, which alone may use a database
// that it has not finished.
func prepare(ctx context.Context, address string, log *slog.Logger, restoring bool) error {
	conn, s, err := connectAndExamine(ctx, address, log)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := s.usable(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if s.Restoring && !restoring {
		return fmt.Errorf("store: %w", errRestoring)
	}
	if s.Owner != "" && !s.Owns {
		if err := checkServing(ctx, conn, s); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		return nil
	}
	// The lock ends with the connection, so a killed migration never blocks the next.
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("store: waiting for other migrations: %w", err)
	}
	// Once more: a restore may have begun while we waited.
	if marked, err := isMarked(ctx, conn); err != nil {
		return err
	} else if marked && !restoring {
		return fmt.Errorf("store: %w", errRestoring)
	}
	if err := ensureRole(ctx, conn, s); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := applyMigrations(ctx, conn.Config()); err != nil {
		return err
	}
	// A table that a migration has just made joins the distributed ones before it is
	// used.
	local, err := leftLocal(ctx, conn)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(local) > 0 {
		if err := distribute(ctx, conn); err != nil {
			return err
		}
		log.Info("tables distributed", "tables", strings.Join(local, ", "))
	}
	return repairAndLog(ctx, conn, log)
}

func repairAndLog(ctx context.Context, conn *pgx.Conn, log *slog.Logger) error {
	applied, err := recordedMigrations(ctx, conn)
	if err != nil {
		return fmt.Errorf("store: reading migrations: %w", err)
	}
	newer, err := unknownMigrations(applied)
	if err != nil {
		return err
	}
	repaired, err := repairRights(ctx, conn, newer)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(repaired) > 0 {
		log.Warn("database rights repaired", "role", AppRole, "changes", len(repaired),
			"first", strings.Join(repaired[:min(repairsNamed, len(repaired))], ", "))
	}
	return nil
}

// applyMigrations applies what is missing. Each file is a transaction, so an attempt that
// waited too long for a table continues with the same file.
func applyMigrations(ctx context.Context, config *pgx.ConnConfig) error {
	config.RuntimeParams["lock_timeout"] = Milliseconds(LockWait)
	db := stdlib.OpenDB(*config)
	defer db.Close()
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
	err = RetryLocked(ctx, SchemaPatience, func() error {
		if err := migrator.Init(ctx); err != nil {
			return err
		}
		_, err := migrator.Migrate(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("store: migrating: %w", err)
	}
	return nil
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

// unknownMigrations reports whether a newer binary has migrated the database.
func unknownMigrations(applied []string) (bool, error) {
	all, err := discoverMigrations()
	if err != nil {
		return false, err
	}
	known := map[string]bool{}
	for _, m := range all.Sorted() {
		known[m.Name] = true
	}
	return slices.ContainsFunc(applied, func(name string) bool { return !known[name] }), nil
}

func recordedMigrations(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, _ := conn.Query(ctx, `SELECT name FROM `+migrationsTable) // CollectRows returns its error
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
