package store_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/store/storetest"
)

var update = flag.Bool("update", false, "write migrations/testdata/schema.sql")

const schemaGolden = "../migrations/testdata/schema.sql"

// schemaQuery describes the schema from the catalog, one statement a row. It asks
// Postgres for definitions and prints no names that Postgres chose or versions
// print differently, unlike pg_dump.
const schemaQuery = `
	WITH ours AS (
		SELECT c.oid, c.relname, c.relkind, c.relrowsecurity, c.relforcerowsecurity, c.relacl, c.reloptions
		FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
	), lines AS (
		SELECT relname, 1 AS part, ''::text AS name,
			'CREATE TABLE ' || relname || E' (\n' || (
				SELECT string_agg('  ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
					|| CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE "' || l.collname || '"' ELSE '' END
					|| CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
					|| CASE WHEN a.attidentity <> '' THEN ' GENERATED AS IDENTITY'
						WHEN a.attgenerated <> '' THEN ' GENERATED ALWAYS AS ' || pg_get_expr(d.adbin, d.adrelid) || ' STORED'
						WHEN d.adbin IS NOT NULL THEN ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) ELSE '' END, E',\n' ORDER BY a.attnum)
				FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
				LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
				LEFT JOIN pg_collation l ON l.oid = a.attcollation
				WHERE a.attrelid = ours.oid AND a.attnum > 0 AND NOT a.attisdropped
			) || E'\n)' || coalesce(' PARTITION BY ' || pg_get_partkeydef(oid), '')
			|| coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') AS line
		FROM ours WHERE relkind <> 'v'
		UNION ALL
		SELECT relname, 1, '', 'CREATE VIEW ' || relname || E' AS\n' || rtrim(pg_get_viewdef(oid), ';') FROM ours WHERE relkind = 'v'
		UNION ALL
		SELECT relname, 2, k.conname, 'ALTER TABLE ' || relname || ' ADD CONSTRAINT ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
		FROM ours JOIN pg_constraint k ON k.conrelid = ours.oid AND k.contype IN ('c', 'f', 'p', 'u', 'x')
		UNION ALL
		SELECT relname, 3, i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
		FROM ours JOIN pg_index i ON i.indrelid = ours.oid
		WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
		UNION ALL
		SELECT relname, 4, '', 'ALTER TABLE ' || relname || ' ENABLE ROW LEVEL SECURITY' FROM ours WHERE relrowsecurity
		UNION ALL
		SELECT relname, 4, 'force', 'ALTER TABLE ' || relname || ' FORCE ROW LEVEL SECURITY' FROM ours WHERE relforcerowsecurity
		UNION ALL
		SELECT relname, 5, p.polname, 'CREATE POLICY ' || p.polname || ' ON ' || relname || ' FOR '
			|| CASE p.polcmd WHEN '*' THEN 'ALL' WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' ELSE 'DELETE' END
			|| coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
			|| coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')
		FROM ours JOIN pg_policy p ON p.polrelid = ours.oid
		UNION ALL
		SELECT relname, 6, '', 'GRANT ' || string_agg(g.privilege_type, ', ' ORDER BY g.privilege_type) || ' ON ' || relname || ' TO purser_app'
		FROM ours CROSS JOIN LATERAL aclexplode(relacl) g JOIN pg_roles r ON r.oid = g.grantee AND r.rolname = 'purser_app' GROUP BY relname
		UNION ALL
		SELECT relname, 7, a.attname, 'GRANT ' || string_agg(g.privilege_type, ', ' ORDER BY g.privilege_type) || ' (' || a.attname || ') ON ' || relname || ' TO purser_app'
		FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid AND NOT a.attisdropped
		CROSS JOIN LATERAL aclexplode(a.attacl) g JOIN pg_roles r ON r.oid = g.grantee AND r.rolname = 'purser_app' GROUP BY relname, a.attname
		UNION ALL
		SELECT '~ functions', 8, p.proname, pg_get_functiondef(p.oid)
		FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
	)
	SELECT line FROM lines ORDER BY relname COLLATE "C", part, name COLLATE "C", line COLLATE "C"`

// The schema after all migrations stands in one file, so that a review shows what a
// migration changes and a reader need not add the files up.
func TestTheSchemaIsAsRecorded(t *testing.T) {
	t.Parallel()
	rows, err := connect(t, storetest.FreshURL(t)).Query(t.Context(), schemaQuery)
	noError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	noError(t, err)
	schema := "-- The schema after all migrations, from Postgres's catalog. Written by\n" +
		"-- go test ./store -run TestTheSchemaIsAsRecorded -update\n\n" + strings.Join(lines, ";\n") + ";\n"
	if *update {
		noError(t, os.MkdirAll("../migrations/testdata", 0o755))
		noError(t, os.WriteFile(schemaGolden, []byte(schema), 0o644))
	}
	recorded, err := os.ReadFile(schemaGolden)
	noError(t, err)
	have, want := strings.Split(schema, "\n"), strings.Split(string(recorded), "\n")
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			t.Fatalf("line %d is\n%s\nand not\n%s\nWhen a migration is meant to change it, run this test with -update.", i+1, have[i], want[i])
		}
	}
	if len(have) != len(want) {
		t.Fatalf("there are %d lines and not %d: when a migration is meant to change it, run this test with -update", len(have), len(want))
	}
}
