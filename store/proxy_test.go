package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/store/storetest"
)

func TestProxyFaults(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	direct := connect(t, url)
	if _, err := direct.Exec(t.Context(), "CREATE TABLE notes (note text NOT NULL)"); err != nil {
		t.Fatal(err)
	}

	for _, way := range []struct {
		name  string
		write func(context.Context, *pgx.Conn, string) error
	}{
		{"of the simple protocol", writeSimply},
		{"of a pipeline", writePipelined},
		{"of a prepared statement", writePrepared},
	} {
		t.Run("hit the commit "+way.name, func(t *testing.T) {
			for _, c := range []struct {
				fault     commitFault
				fails     bool
				committed bool
			}{
				{noFault, false, true},
				{beforeCommit, true, false},
				{afterCommit, true, true},
				{blackHole, true, true},
			} {
				proxy := newProxy(t, url)
				conn := connect(t, proxy.URL())
				proxy.Plan(func(int) commitFault { return c.fault })
				ctx := t.Context()
				if c.fault == blackHole {
					ctx = untilStruck(ctx, proxy, c.fault)
				}
				note := way.name + ", " + c.fault.String()
				err := way.write(ctx, conn, note)
				if (err != nil) != c.fails {
					t.Errorf("%s: the client got %v", c.fault, err)
				}
				if c.fault == blackHole && !errors.Is(err, context.Canceled) {
					t.Errorf("the client did not have to wait: %v", err)
				}
				if got := written(t, direct, note); got != c.committed {
					t.Errorf("%s: committed is %t", c.fault, got)
				}
				if c.fault != noFault && proxy.Struck(c.fault) != 1 {
					t.Errorf("%s struck %d times", c.fault, proxy.Struck(c.fault))
				}
			}
		})
	}

	t.Run("end a connection inside a row", func(t *testing.T) {
		proxy := newProxy(t, url)
		conn := connect(t, proxy.URL())
		proxy.Plan(func(int) commitFault { return midRow })
		if err := writeSimply(t.Context(), conn, "before the row"); err != nil {
			t.Fatal(err)
		}
		var text string
		err := conn.QueryRow(t.Context(), "SELECT repeat('long ', 1000)").Scan(&text)
		if err == nil || text != "" || proxy.Struck(midRow) != 1 {
			t.Errorf("a row of %d bytes arrived, %v", len(text), err)
		}
	})
}

func TestProxyPlanCountsCommitsOverAllConnections(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, storetest.URL(t))
	var asked []int
	proxy.Plan(func(n int) commitFault {
		asked = append(asked, n)
		return noFault
	})
	for range 2 {
		conn := connect(t, proxy.URL())
		for range 2 {
			if _, err := conn.Exec(t.Context(), "BEGIN; COMMIT"); err != nil { // one message of two statements is no COMMIT
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), "commit"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(asked) != 4 || asked[0] != 1 || asked[3] != 4 {
		t.Errorf("the plan was asked for %v", asked)
	}
}

func TestProxyHookRunsOnceBeforeItsStatement(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, storetest.URL(t))
	conn := connect(t, proxy.URL())
	runs := 0
	proxy.Before("pg_sleep", func() { runs++ })
	for _, sql := range []string{"SELECT 1", "SELECT pg_sleep(0)", "SELECT pg_sleep(0)"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if want := min(1, strings.Count(sql, "pg_sleep")); runs != want {
			t.Fatalf("after %s it ran %d times", sql, runs)
		}
	}
}

func newProxy(t *testing.T, url string) *faultProxy {
	t.Helper()
	proxy, err := startProxy(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// untilStruck ends when the fault has happened: a client of a silent peer gives up
// then.
func untilStruck(ctx context.Context, proxy *faultProxy, f commitFault) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for proxy.Struck(f) == 0 && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
	}()
	return ctx
}

const insertNote = "INSERT INTO notes VALUES ($1)"

func writeSimply(ctx context.Context, conn *pgx.Conn, note string) error {
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, insertNote, note); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "COMMIT")
	return err
}

func writePipelined(ctx context.Context, conn *pgx.Conn, note string) error {
	pipeline := conn.PgConn().StartPipeline(ctx)
	pipeline.SendQueryParams("BEGIN", nil, nil, nil, nil)
	pipeline.SendQueryParams(insertNote, [][]byte{[]byte(note)}, nil, nil, nil)
	pipeline.SendQueryParams("COMMIT", nil, nil, nil, nil)
	return errors.Join(pipeline.Sync(), pipeline.Close())
}

func writePrepared(ctx context.Context, conn *pgx.Conn, note string) error {
	if _, err := conn.Prepare(ctx, "the end", "COMMIT"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, insertNote, note); err != nil {
		return err
	}
	return conn.PgConn().ExecPrepared(ctx, "the end", nil, nil, nil).Read().Err
}

func written(t *testing.T, conn *pgx.Conn, note string) (exists bool) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM notes WHERE note = $1)", note).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	return exists
}
