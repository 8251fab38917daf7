package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Exec runs a statement as the superuser of the tests' cluster. It may be used in
// cleanups, when the test's context is over.
func Exec(tb testing.TB, address, sql string, args ...any) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := onSession(ctx, address, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
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

// Login makes a role that may log in, with options of CREATE ROLE. It returns its
// name and the address with which it reaches the same database. The role goes with
// the test.
func Login(tb testing.TB, address, options string) (role, as string) {
	tb.Helper()
	role = "login_" + strings.ToLower(rand.Text())
	Exec(tb, address, `CREATE ROLE `+role+` LOGIN `+options)
	tb.Cleanup(func() { Exec(tb, URL(tb), `DROP ROLE `+role) })
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	u.User = url.User(role)
	return role, u.String()
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
