package storetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestURL(t *testing.T) {
	t.Parallel()

	t.Run("is migrated and the same for the whole process", func(t *testing.T) {
		first := URL(t)
		if tables(t, first) == 0 {
			t.Error("there are no tables")
		}
		if URL(t) != first {
			t.Error("it changes")
		}
	})

	t.Run("serves a store that is durable", func(t *testing.T) {
		s := Open(t)
		if err := s.CheckDurable(t.Context()); err != nil {
			t.Error(err)
		}
		if Open(t) != s {
			t.Error("it opens a second store")
		}
	})
}

func TestFreshURL(t *testing.T) {
	t.Parallel()
	gone := ""
	t.Run("is migrated, and another for each call", func(t *testing.T) {
		gone = FreshURL(t)
		if tables(t, gone) == 0 {
			t.Error("there are no tables")
		}
		if gone == FreshURL(t) || gone == URL(t) {
			t.Error("two tests would share it")
		}
		connect(t, gone) // a session that nobody ends must not keep the database
	})
	if conn, err := pgx.Connect(t.Context(), gone); err == nil {
		_ = conn.Close(t.Context())
		t.Error("it outlives its test")
	}
}

func TestEmptyURL(t *testing.T) {
	t.Parallel()
	if n := tables(t, EmptyURL(t)); n != 0 {
		t.Errorf("there are %d tables", n)
	}
}

func TestDropAbandoned(t *testing.T) {
	t.Parallel()
	c, err := processCluster()
	if err != nil {
		t.Fatal(err)
	}
	mine, err := c.createEmpty(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.drop(context.Background(), mine) })
	abandoned := fmt.Sprintf(databaseName, math.MaxInt32, processStart, 0) // no process has this number
	execute(t, c, "CREATE DATABASE "+abandoned)
	if err := c.dropAbandoned(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(t, c, mine) {
		t.Error("the database of a living process is gone")
	}
	if exists(t, c, abandoned) {
		t.Error("the database of a dead process is still there")
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func tables(t *testing.T, url string) (n int) {
	t.Helper()
	conn := connect(t, url)
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func exists(t *testing.T, c *cluster, name string) (found bool) {
	t.Helper()
	err := c.admin(t.Context(), func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&found)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func execute(t *testing.T, c *cluster, statement string) {
	t.Helper()
	err := c.admin(t.Context(), func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), statement)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
