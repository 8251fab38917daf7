package pg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// oldestPostgres is the first version with everything that the schema uses.
const oldestPostgres = 15

// situation is what the catalog says about the server and the login, before
// anything is changed.
type situation struct {
	Version     int
	VersionText string
	Replica     bool
	ReadOnly    bool
	Login       string
	Database    string
	Owner       string // of the migrations' table; empty before the first migration
	Owns        bool   // the login has the owner's rights
	CanCreate   bool   // tables in public, and the schema river, in which earlier releases keep jobs
	RoleExists  bool
	RoleIsPower bool // the serving role passes row-level security
	CanServe    bool // the login may become the serving role
	PassesWalls bool // row-level security does not apply to the login
	MakesRoles  bool // the login may create roles
	Restoring   bool // a restore has begun and not finished
	Citus       bool // tables are distributed
}

// From version 16 on, a member of a role may only become it with the option SET.
const readSituation = `
	SELECT current_setting('server_version_num')::int / 10000, current_setting('server_version'),
		pg_is_in_recovery(), current_setting('transaction_read_only')::bool, current_user::text, current_database()::text,
		coalesce((SELECT relowner::regrole::text FROM pg_class WHERE oid = to_regclass('public.` + migrationsTable + `')), ''),
		coalesce((SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('public.` + migrationsTable + `')), false),
		has_schema_privilege('public', 'CREATE') AND (to_regnamespace('river') IS NOT NULL OR has_database_privilege(current_database(), 'CREATE')),
		to_regrole($1) IS NOT NULL,
		coalesce((SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = $1), false),
		coalesce((SELECT pg_has_role(current_user, oid,
			CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) FROM pg_roles WHERE rolname = $1), false),
		(SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user),
		(SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user),
		to_regclass('public.` + restoreMarker + `') IS NOT NULL, to_regclass('pg_dist_partition') IS NOT NULL`

func examine(ctx context.Context, conn *pgx.Conn) (s situation, err error) {
	rows, _ := conn.Query(ctx, readSituation, AppRole) // CollectExactlyOneRow returns its error
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[situation])
}

// usable refuses servers and logins with which nothing can work.
func (s situation) usable() error {
	switch {
	case s.Version < oldestPostgres:
		return fmt.Errorf("the database server is Postgres %s, and Purser needs %d or later: upgrade it", s.VersionText, oldestPostgres)
	case s.Replica:
		return errors.New("the database server is a read-only replica: set DATABASE_URL to the primary")
	case s.ReadOnly:
		return errors.New("the database is read-only (default_transaction_read_only is on): turn it off for this database and login")
	case s.RoleIsPower:
		return fmt.Errorf("the role %s is a superuser or bypasses row-level security, so tenants would not be separated: run ALTER ROLE %s NOSUPERUSER NOBYPASSRLS", AppRole, AppRole)
	case s.Owner == "" && !s.CanCreate:
		return fmt.Errorf("the login %s may not create the schema: run GRANT CREATE ON DATABASE %s TO %s; GRANT CREATE ON SCHEMA public TO %s; as the owner of the database",
			s.Login, quoted(s.Database), quoted(s.Login), quoted(s.Login))
	}
	return nil
}

// ensureRole makes the serving role and lets the login become it. Roles belong to
// the whole server, so a restored database may lack it; and another database's
// process may make it at the same moment.
func ensureRole(ctx context.Context, conn *pgx.Conn, s situation) error {
	if s.Owner == "" && !s.MakesRoles {
		return fmt.Errorf("the login %s may not create roles, as the first migration does: run ALTER ROLE %s CREATEROLE; as a superuser, and ALTER ROLE %s NOCREATEROLE; after it",
			s.Login, quoted(s.Login), quoted(s.Login))
	}
	if !s.RoleExists {
		_, err := conn.Exec(ctx, `DO $$ BEGIN CREATE ROLE `+AppRole+` NOLOGIN NOINHERIT;
			EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
		if SQLState(err) == InsufficientPrivilege {
			return fmt.Errorf("the login %s may not create the role %s: run CREATE ROLE %s NOLOGIN NOINHERIT; GRANT %s TO %s; as a superuser",
				s.Login, AppRole, AppRole, AppRole, quoted(s.Login))
		}
		if err != nil {
			return fmt.Errorf("creating the role %s: %w", AppRole, err)
		}
		if s, err = examine(ctx, conn); err != nil {
			return err
		}
	}
	if s.CanServe {
		return nil
	}
	_, err := conn.Exec(ctx, `GRANT `+AppRole+` TO `+quoted(s.Login))
	if SQLState(err) == InsufficientPrivilege {
		return fmt.Errorf("the login %s may not become the role %s: run GRANT %s TO %s; as a superuser", s.Login, AppRole, AppRole, quoted(s.Login))
	}
	if err != nil {
		return fmt.Errorf("granting the role %s: %w", AppRole, err)
	}
	return nil
}

// migrateAsOwner is what to do about all that only the owner can change.
func (s situation) migrateAsOwner() string {
	return fmt.Sprintf("run 'purser migrate' with a login that has the rights of %s, which owns the tables", s.Owner)
}

// checkServing refuses a database that a login without the owner's rights cannot
// serve from as it is.
func checkServing(ctx context.Context, conn *pgx.Conn, s situation) error {
	if !s.RoleExists {
		return fmt.Errorf("the role %s is missing, as after a restore: %s", AppRole, s.migrateAsOwner())
	}
	if !s.CanServe {
		return fmt.Errorf("the login %s neither owns the tables nor may become the role %s: run GRANT %s TO %s; as a superuser, or use the login %s",
			s.Login, AppRole, AppRole, quoted(s.Login), s.Owner)
	}
	if _, err := conn.Exec(ctx, "SET ROLE "+AppRole); err != nil {
		return err
	}
	applied, err := recordedMigrations(ctx, conn)
	if SQLState(err) == InsufficientPrivilege {
		return fmt.Errorf("the rights of the role %s are missing, as after a restore: %s", AppRole, s.migrateAsOwner())
	}
	if err != nil {
		return err
	}
	missing, err := missingMigrations(applied)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("the schema lacks %d migrations, and the login %s may not apply them: %s", len(missing), s.Login, s.migrateAsOwner())
	}
	newer, err := unknownMigrations(applied)
	if err != nil {
		return err
	}
	repairs, err := RightsRepairs(ctx, conn, newer)
	if err != nil {
		return err
	}
	if len(repairs) > 0 {
		return errors.New(Differ(repairs) + ": " + s.migrateAsOwner())
	}
	local, err := leftLocal(ctx, conn)
	if err != nil {
		return err
	}
	if len(local) > 0 {
		return fmt.Errorf("the tables %s are not distributed, although others are: %s", strings.Join(local, ", "), s.migrateAsOwner())
	}
	return nil
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// quoted writes a name as SQL, and plain names as people do.
func quoted(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return strings.ReplaceAll(pgx.Identifier{name}.Sanitize(), "\n", "")
}
