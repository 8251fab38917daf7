package storetest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Exec runs a statement as the superuser of the tests' cluster. It may be used in
// cleanups, when the test's context is over.
func Exec(tb testing.TB, address, sql string, args ...any) {
	tb.Helper()
	OnConnection(tb, address, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
		return nil
	})
}

// Session opens a connection as the superuser of the tests' cluster and returns what runs
// statements on it, for transactions that stay open.
func Session(tb testing.TB, address string) (run func(sql string)) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(ctx) })
	return func(sql string) {
		tb.Helper()
		if _, err := conn.Exec(ctx, sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
}

// Value reads the one value of a query as the superuser of the tests' cluster.
func Value[T any](tb failer, address, sql string, args ...any) (value T) {
	tb.Helper()
	OnConnection(tb, address, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, sql, args...).Scan(&value)
	})
	return value
}

// RunProgram runs a client program of Postgres, such as pg_dump, and gives what it
// wrote to its error output. Its exit status is an error, for the caller to judge:
// a restore that lost rights exits with 1.
func RunProgram(tb testing.TB, name string, args ...string) (complaints string, err error) {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("%v: apt-get install postgresql-client", err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), path, args...)
	cmd.Stderr = &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return stderr.String(), err
}
