package storetest

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TablesWith names every table of the database that holds the text in some row,
// whatever the column: for tests that look for what nothing may keep. Bytes show
// as hexadecimal, so those of the text are looked for as well.
func TablesWith(tb testing.TB, url, text string) []string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	found, err := tablesWith(ctx, url, text)
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func tablesWith(ctx context.Context, url, text string) (found []string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, `
		SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`) // CollectRows returns its error
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		var holds bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+table+` r WHERE strpos(r::text, $1) > 0 OR strpos(r::text, $2) > 0)`,
			text, hex.EncodeToString([]byte(text))).Scan(&holds)
		if err != nil {
			return nil, err
		}
		if holds {
			found = append(found, table)
		}
	}
	return found, nil
}
