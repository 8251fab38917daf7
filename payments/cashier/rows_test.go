package cashier_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// rowsLimit is for the rows of one application. Past it something hangs, however busy the
// machine is.
const rowsLimit = 5 * time.Minute

// keepRows remembers every row of an application and gives a function that puts the
// application back to them. A test that tries one thing in a hundred ways from the
// same beginning sets that up once.
//
// It goes around the store: whatever a store has cached about the application
// stays cached, and nothing may write to the application meanwhile.
func keepRows(tb testing.TB, url, app string) (restore func()) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), rowsLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	kept, err := readApplication(ctx, conn, app)
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		tb.Helper()
		ctx, cancel := context.WithTimeout(tb.Context(), rowsLimit)
		defer cancel()
		if err := writeApplication(ctx, conn, app, kept); err != nil {
			tb.Fatal(err)
		}
	}
}

// readApplication gives the application's rows of each table, as JSON.
func readApplication(ctx context.Context, conn *pgx.Conn, app string) (map[string]string, error) {
	rows, _ := conn.Query(ctx, `
		SELECT c.oid::regclass::text
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'app_id' AND NOT a.attisdropped
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace`) // CollectRows returns its error
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	kept := make(map[string]string, len(tables))
	for _, table := range tables {
		var text string
		err := conn.QueryRow(ctx, `SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text FROM `+table+` t WHERE t.app_id = $1`, app).Scan(&text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", table, err)
		}
		kept[table] = text
	}
	return kept, nil
}

// writeApplication looks at no references: they are right at the end, and not on the way.
// The first setting has Citus forward the second to its workers.
func writeApplication(ctx context.Context, conn *pgx.Conn, app string, kept map[string]string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, setting := range []string{"SET LOCAL citus.propagate_set_commands = 'local'", "SET LOCAL session_replication_role = replica"} {
			if _, err := tx.Exec(ctx, setting); err != nil {
				return err
			}
		}
		var all pgx.Batch
		for table, rows := range kept {
			all.Queue(`DELETE FROM `+table+` WHERE app_id = $1`, app)
			if rows != "[]" {
				all.Queue(`INSERT INTO `+table+` SELECT * FROM jsonb_populate_recordset(NULL::`+table+`, $1::jsonb)`, rows)
			}
		}
		return tx.SendBatch(ctx, &all).Close()
	})
}

// cloneRows reads every row of an application and returns a function that writes
// them to another one: a test that needs thousands of equal applications sets one
// up and copies it. Each old and new pair of replace is applied to all values,
// for ids that are unique beyond their application.
//
// The target has to exist and must not have been used. Both applications belong
// to the same organization.
func cloneRows(tb testing.TB, url, app string) (copyTo func(ctx context.Context, app string, replace ...string) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), rowsLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
		tb.Fatal(err)
	}
	kept, err := readApplication(ctx, conn, app)
	if err != nil {
		tb.Fatal(err)
	}
	var mu sync.Mutex
	return func(ctx context.Context, to string, replace ...string) error {
		mu.Lock()
		defer mu.Unlock()
		replacer := strings.NewReplacer(append(replace, app, to)...)
		rows := make(map[string]string, len(kept))
		for table, text := range kept {
			if text != "[]" {
				rows[table] = replacer.Replace(text)
			}
		}
		return writeApplication(ctx, conn, to, rows)
	}
}
