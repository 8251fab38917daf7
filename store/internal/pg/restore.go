package pg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// restoreMarker is a table that exists from the beginning of a restore until its rows
	// are verified. While it exists, Prepare refuses the database, and so does each new
	// connection of a server that was running before.
	restoreMarker = "restore_unfinished"
	restoreLock   = migrationLock + 1 // an advisory lock, held while a restore runs

	// connectionsEnd is how long Postgres may take to close the connections of a program
	// that has ended. On a busy machine it can be seconds.
	connectionsEnd = 10 * time.Second
)

// CheckBackup refuses a database that pg_dump could not dump completely with this login,
// and returns the major version of the server. It changes nothing: a backup before an
// upgrade is one of the old schema.
func CheckBackup(ctx context.Context, address string, log *slog.Logger) (major int, err error) {
	conn, s, err := connectAndExamine(ctx, address, log)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	switch {
	case s.Owner == "":
		return 0, errors.New("store: the database has no tables of Purser: there is nothing to back up")
	case s.Restoring:
		return 0, errors.New("store: a restore into this database was not finished: there is nothing to back up")
	case !s.PassesWalls:
		return 0, fmt.Errorf("store: row-level security hides rows from the login %s, so its backup would not be complete: use a superuser, or create a login with CREATE ROLE purser_backup LOGIN BYPASSRLS PASSWORD '…'; GRANT pg_read_all_data TO purser_backup", s.Login)
	case s.Citus:
		return 0, errors.New("store: the tables are distributed over a Citus cluster: back up every node of it with physical backups")
	}
	return s.Version, nil
}

// Restore is a restore in progress. Only one runs on a database at a time.
type Restore struct {
	// Major is the major version of the server.
	Major int
	// Loaded reports that an earlier attempt with the same archive loaded all rows and
	// ended before they were verified.
	Loaded bool

	conn    *pgx.Conn
	address string
}

// BeginRestore marks an empty database as one that a restore of an archive fills, so that no
// server uses it before Finish. Sum identifies the archive: with the same one, a restore that
// was interrupted can be continued.
func BeginRestore(ctx context.Context, address string, sum []byte, log *slog.Logger) (_ *Restore, err error) {
	conn, s, err := connectAndExamine(ctx, address, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close(context.WithoutCancel(ctx))
		}
	}()
	if err := s.usable(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := beAlone(ctx, conn); err != nil {
		return nil, err
	}
	r := &Restore{Major: s.Version, conn: conn, address: address}
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return r.mark(ctx, tx, sum) }); err != nil {
		return nil, err
	}
	return r, r.disconnectServers(ctx)
}

// disconnectServers ends the connections of servers that were running before, as after the
// tables were dropped and the database was not. New ones are refused now.
func (r *Restore) disconnectServers(ctx context.Context) error {
	_, err := r.conn.Exec(ctx, `
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid() AND pg_has_role(usesysid, 'USAGE')`, serverName)
	if err != nil {
		return fmt.Errorf("store: ending the connections of running servers: %w", err)
	}
	return nil
}

// beAlone locks out other restores for as long as the connection is open.
func beAlone(ctx context.Context, conn *pgx.Conn) error {
	locked, err := await(ctx, conn, `SELECT set_config('idle_session_timeout', '0', false) = '0' AND pg_try_advisory_lock($1)`, int64(restoreLock))
	if err != nil {
		return fmt.Errorf("store: locking out other restores: %w", err)
	}
	if !locked {
		return errors.New("store: another restore into this database is running")
	}
	// The pg_restore of a restore that was killed may have read its whole archive and commit
	// later, and its rows would pass for those of this one.
	ended, err := await(ctx, conn, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pg_restore')`)
	if err != nil {
		return fmt.Errorf("store: looking for another pg_restore: %w", err)
	}
	if !ended {
		return errors.New("store: pg_restore of an earlier restore still runs on this database: wait until it has ended, then try again")
	}
	return nil
}

// await repeats a question until the answer is yes, for a few seconds: Postgres closes the
// connections of a program a moment after the program has ended.
func await(ctx context.Context, conn *pgx.Conn, question string, args ...any) (yes bool, err error) {
	for deadline := time.Now().Add(connectionsEnd); ; {
		if err := conn.QueryRow(ctx, question, args...).Scan(&yes); err != nil || yes || time.Now().After(deadline) {
			return yes, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(connectionsEnd / 100):
		}
	}
}

// Extensions may bring tables of their own.
const countTables = `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
		AND c.oid IS DISTINCT FROM to_regclass('public.` + restoreMarker + `')
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`

// mark refuses a database with tables, unless they are of the same archive.
func (r *Restore) mark(ctx context.Context, tx pgx.Tx, sum []byte) error {
	// Prepare looks for the marker under this lock.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("store: waiting for migrations: %w", err)
	}
	var tables int
	if err := tx.QueryRow(ctx, countTables).Scan(&tables); err != nil {
		return fmt.Errorf("store: counting tables: %w", err)
	}
	marked, err := isMarked(ctx, tx)
	if err != nil {
		return err
	}
	if !marked && tables > 0 {
		return fmt.Errorf("store: the database has %d tables: a restore needs an empty database, or a new folder with --data (PURSER_DATA)", tables)
	}
	if marked {
		var before []byte
		if err := tx.QueryRow(ctx, `SELECT archive FROM `+restoreMarker).Scan(&before); err != nil {
			return fmt.Errorf("store: reading which restore was interrupted: %w", err)
		}
		if tables > 0 && !bytes.Equal(before, sum) {
			return errors.New("store: the database has the rows of another file, whose restore was not finished: restore that file again, or use an empty database")
		}
		r.Loaded = tables > 0
		_, err := tx.Exec(ctx, `UPDATE `+restoreMarker+` SET archive = $1`, sum)
		return err
	}
	if _, err := tx.Exec(ctx, `CREATE TABLE public.`+restoreMarker+` (archive bytea NOT NULL)`); err != nil {
		return fmt.Errorf("store: marking the restore: %w", err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO public.`+restoreMarker+` VALUES ($1)`, sum)
	return err
}

func isMarked(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (marked bool, err error) {
	if err := q.QueryRow(ctx, `SELECT to_regclass('public.`+restoreMarker+`') IS NOT NULL`, pgx.QueryExecModeExec).Scan(&marked); err != nil {
		return false, fmt.Errorf("store: looking for an unfinished restore: %w", err)
	}
	return marked, nil
}

var errRestoring = errors.New("a restore into this database was not finished: run 'purser restore' with the same file again, or use another database")

// errUnrestored is what a server says whose database was replaced by a restore.
var errUnrestored = &NotReady{Sentence: "a restore into this database has not finished: wait until it has, or run 'purser restore' with the same file again"}

// Prepare is Prepare for the restored rows. An archive has no statistics of the planner:
// until they are collected, verification reads whole tables for each wallet.
func (r *Restore) Prepare(ctx context.Context, address string, log *slog.Logger) error {
	if err := prepare(ctx, address, log, true); err != nil {
		return err
	}
	if err := r.exec(ctx, `ANALYZE`); err != nil {
		return fmt.Errorf("store: collecting statistics of the restored tables: %w", err)
	}
	return nil
}

// Finish lets servers use the database.
func (r *Restore) Finish(ctx context.Context) error {
	if err := r.exec(ctx, `DROP TABLE public.`+restoreMarker); err != nil {
		return fmt.Errorf("store: finishing the restore: %w", err)
	}
	return nil
}

// exec uses a new connection: that of the lock may have been idle for hours.
func (r *Restore) exec(ctx context.Context, statement string) error {
	config, err := parseAddress(r.address)
	if err != nil {
		return err
	}
	conn, err := connectAtStart(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// Close lets another restore begin. Without Finish, the database stays marked.
func (r *Restore) Close(ctx context.Context) { _ = r.conn.Close(ctx) }

func connectAndExamine(ctx context.Context, address string, log *slog.Logger) (*pgx.Conn, situation, error) {
	config, err := parseAddress(address)
	if err != nil {
		return nil, situation{}, err
	}
	if err := checkEncryption(&config.Config, log); err != nil {
		return nil, situation{}, err
	}
	// Migrations may change events, packed or not.
	config.RuntimeParams[PackedSetting] = "on"
	conn, err := connectAtStart(ctx, config)
	if err != nil {
		return nil, situation{}, err
	}
	s, err := examine(ctx, conn)
	if err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, situation{}, fmt.Errorf("store: examining the database: %w", err)
	}
	return conn, s, nil
}
