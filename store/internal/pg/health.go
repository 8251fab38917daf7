package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// querier is a pool, or one connection of it.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// CheckSchema reports why the schema does not fit this binary, or nil: the database must
// answer and know every migration that this binary was built with.
func CheckSchema(ctx context.Context, on querier) error {
	applied, restoring, err := appliedMigrations(ctx, on)
	if err != nil {
		return &NotReady{Sentence: "the database does not answer", Cause: err}
	}
	if restoring {
		return errUnrestored
	}
	missing, err := missingMigrations(applied)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &NotReady{Sentence: fmt.Sprintf("the schema lacks the migrations %s: run 'purser migrate'", strings.Join(missing, ", "))}
	}
	return nil
}

// appliedMigrations is empty where nothing was migrated yet: then there is no
// table of them, or none that we may read. A restore is one that has not finished.
func appliedMigrations(ctx context.Context, on querier) (applied []string, restoring bool, err error) {
	rows, _ := on.Query(ctx, `SELECT name, to_regclass('public.`+restoreMarker+`') IS NOT NULL FROM schema_migrations`) // ForEachRow returns its error
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name, &restoring}, func() error {
		applied = append(applied, name)
		return nil
	})
	switch SQLState(err) {
	case UndefinedTable, InsufficientPrivilege:
		return nil, false, nil
	}
	return applied, restoring, err
}

// NotReady says in one sentence why a node cannot serve. The cause is for the log.
type NotReady struct {
	Sentence string
	Cause    error
}

func (n *NotReady) Error() string { return "store: " + n.Sentence }
func (n *NotReady) Unwrap() error { return n.Cause }

// Reason is the sentence for the caller, without the text of the database's error.
func Reason(err error) string {
	if n, ok := errors.AsType[*NotReady](err); ok {
		return n.Sentence
	}
	return "the database does not answer"
}

// Unready adds to a sentence what the state of an error means.
func Unready(sentence string, cause error) error {
	if refused := refusedSession(cause); refused != nil {
		return refused
	}
	switch SQLState(cause) {
	case "25006":
		sentence += ": it is read-only"
	case "53100":
		sentence += ": its disk is full"
	case TooManyConnections:
		sentence += ": all of the database's connections are in use"
	case InsufficientPrivilege:
		sentence += ": the serving role lacks the right"
	case "":
	default:
		sentence += fmt.Sprintf(" (SQLSTATE %s)", SQLState(cause))
	}
	return &NotReady{Sentence: sentence, Cause: cause}
}
