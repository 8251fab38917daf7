package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Clone reads every row of an application and returns a function that writes
// them to another one: a test that needs thousands of equal applications sets one
// up and copies it. Each old and new pair of replace is applied to all values,
// for ids that are unique beyond their application.
//
// The target has to exist and must not have been used. Both applications belong
// to the same organization.
func Clone(tb testing.TB, url, app string) (copyTo func(ctx context.Context, app string, replace ...string) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
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
