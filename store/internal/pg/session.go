package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/limits"
)

// errPooled is what a server says whose connections go through a pooler that ignores their
// startup parameters. Policies may not bind the login that it serves as then.
var errPooled = &NotReady{Sentence: "connections to the database lack the role and settings that Purser asks for when it connects: connect to Postgres itself, not to a pooler such as PgBouncer"}

// checkSession refuses a new connection to a database that a restore has not finished, and one
// that does not act as we asked for.
func checkSession(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, limits.Current().Connect)
	defer cancel()
	var marked, asAsked bool
	err := conn.QueryRow(ctx, `SELECT to_regclass('public.`+restoreMarker+`') IS NOT NULL,
		current_user = '`+AppRole+`' AND coalesce(current_setting('`+PackedSetting+`', true), '') = 'on'`, pgx.QueryExecModeExec).Scan(&marked, &asAsked)
	switch {
	case err != nil:
		return fmt.Errorf("store: examining a connection: %w", err)
	case !asAsked:
		return errPooled
	case marked:
		return errUnrestored
	}
	return nil
}

// refusedSession is why checkSession refused a connection, or nil for another error.
func refusedSession(err error) error {
	for _, refused := range []error{errUnrestored, errPooled} {
		if errors.Is(err, refused) {
			return refused
		}
	}
	return nil
}
