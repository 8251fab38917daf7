package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMigrationsExpandWhatIsReleased holds migrations to the order of expand, then contract:
// the previous release keeps serving on the new schema. A contraction is for the release
// after the one that stopped using what it removes.
func TestMigrationsExpandWhatIsReleased(t *testing.T) {
	t.Parallel()
	all := releases(t)
	last := all[len(all)-1]
	needsCommit(t, last)
	released := map[string]bool{}
	for name := range strings.Lines(outputOf(t, "git", "ls-tree", "--name-only", last.commit, "migrations/")) {
		if name = strings.TrimSpace(name); strings.HasSuffix(name, ".sql") {
			released[filepath.Base(name)] = true
		}
	}
	tables := tablesIn(outputOf(t, "git", "show", last.commit+":migrations/testdata/schema.sql"))
	if len(released) < 20 || !slices.Contains(tables, "usage_events") {
		t.Fatalf("%d migrations and the tables %v are released: the check does not see them", len(released), tables)
	}
	paths, err := filepath.Glob(filepath.Join(moduleRoot, "migrations", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	present := map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(path)
		present[name] = true
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if released[name] {
			if outputOf(t, "git", "show", last.commit+":migrations/"+name) != string(text) {
				t.Errorf("%s is released and was changed: add a migration instead", name)
			}
			continue
		}
		for _, complaint := range contractions(string(text), tables) {
			t.Errorf("%s: %s, which release %s uses", name, complaint, last.version)
		}
	}
	for name := range released {
		if !present[name] {
			t.Errorf("%s is released and was removed", name)
		}
	}
}

var createdTable = regexp.MustCompile(`(?im)^CREATE TABLE (?:IF NOT EXISTS )?(?:public\.)?(\w+)`)

func tablesIn(schema string) (names []string) {
	for _, match := range createdTable.FindAllStringSubmatch(schema, -1) {
		names = append(names, match[1])
	}
	return names
}

var (
	sqlComment   = regexp.MustCompile(`(?m)--.*$|(?s:/\*.*?\*/)`)
	alteredTable = regexp.MustCompile(`(?i)^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?(?:public\.)?(\w+) (.*)$`)
	dropped      = regexp.MustCompile(`(?i)^DROP (TABLE|VIEW|MATERIALIZED VIEW|SCHEMA|TYPE|FUNCTION|SEQUENCE|ROLE) (?:IF EXISTS )?(?:public\.)?(\w+)`)
	deleted      = regexp.MustCompile(`(?i)^(?:TRUNCATE(?: TABLE)?|DELETE FROM) (?:public\.)?(\w+)`)
	addedColumn  = regexp.MustCompile(`(?i)\bADD (?:COLUMN )?(?:IF NOT EXISTS )?(\w+) `)
)

// narrowing are the changes of a table that a release which does not know them trips over.
// Constraints are not among them: a wider list of values drops one to add another.
var narrowing = map[string]*regexp.Regexp{
	"drops a column":                regexp.MustCompile(`(?i)^DROP (?:COLUMN|(?:IF EXISTS )?\w+(?: CASCADE| RESTRICT)?$)`),
	"renames":                       regexp.MustCompile(`(?i)\bRENAME\b`),
	"changes the type of a column":  regexp.MustCompile(`(?i)\bALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE\b`),
	"demands a value of a column":   regexp.MustCompile(`(?i)\bALTER (?:COLUMN )?\w+ SET NOT NULL\b`),
	"drops the default of a column": regexp.MustCompile(`(?i)\bALTER (?:COLUMN )?\w+ DROP DEFAULT\b`),
	"moves a table":                 regexp.MustCompile(`(?i)\bSET SCHEMA\b`),
}

// contractions lists what a migration takes from released tables.
func contractions(migration string, tables []string) (found []string) {
	known := func(table string) bool { return slices.Contains(tables, strings.ToLower(table)) }
	for statement := range strings.SplitSeq(sqlComment.ReplaceAllString(migration, ""), ";") {
		statement = strings.Join(strings.Fields(statement), " ")
		if match := dropped.FindStringSubmatch(statement); match != nil && (known(match[2]) || !strings.EqualFold(match[1], "TABLE")) {
			found = append(found, fmt.Sprintf("drops %s", match[2]))
		}
		if match := deleted.FindStringSubmatch(statement); match != nil && known(match[1]) {
			found = append(found, fmt.Sprintf("deletes rows of %s", match[1]))
		}
		match := alteredTable.FindStringSubmatch(statement)
		if match == nil || !known(match[1]) {
			continue
		}
		for _, action := range actions(match[2]) {
			if strings.HasPrefix(strings.ToUpper(action), "DROP CONSTRAINT") {
				continue
			}
			for what, pattern := range narrowing {
				if pattern.MatchString(action) {
					found = append(found, fmt.Sprintf("%s (%s)", what, match[1]))
				}
			}
			upper := strings.ToUpper(action)
			if addedColumn.MatchString(action) && !strings.HasPrefix(upper, "ADD CONSTRAINT") && strings.Contains(upper, "NOT NULL") &&
				!strings.Contains(upper, "DEFAULT") && !strings.Contains(upper, "GENERATED") {
				found = append(found, fmt.Sprintf("adds a column without a default that must have a value (%s)", match[1]))
			}
		}
	}
	return found
}

// actions splits what an ALTER TABLE does at the commas outside of brackets.
func actions(text string) (list []string) {
	depth, start := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			list = append(list, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(list, strings.TrimSpace(text[start:]))
}

func TestContractionsAreFound(t *testing.T) {
	t.Parallel()
	tables := []string{"wallets"}
	for _, migration := range []string{
		"DROP TABLE wallets;",
		"drop table if exists public.wallets cascade;",
		"DROP FUNCTION f;",
		"TRUNCATE wallets;",
		"DELETE FROM wallets WHERE true;",
		"ALTER TABLE wallets DROP COLUMN x;",
		"ALTER TABLE wallets DROP x;",
		"ALTER TABLE ONLY public.wallets ADD COLUMN y int, DROP COLUMN IF EXISTS x CASCADE;",
		"ALTER TABLE wallets RENAME COLUMN x TO y;",
		"ALTER TABLE wallets\n  RENAME TO purses;",
		"ALTER TABLE wallets ALTER COLUMN x TYPE bigint;",
		"ALTER TABLE wallets ALTER x SET DATA TYPE bigint;",
		"ALTER TABLE wallets ALTER COLUMN x SET NOT NULL;",
		"ALTER TABLE wallets ALTER x DROP DEFAULT;",
		"ALTER TABLE wallets ADD COLUMN x int NOT NULL;",
		"CREATE TABLE new (x int); ALTER TABLE wallets ADD x int NOT NULL;",
		"ALTER TABLE wallets SET SCHEMA other;",
	} {
		if found := contractions(migration, tables); len(found) != 1 {
			t.Errorf("%s: found %v", migration, found)
		}
	}
	for _, migration := range []string{
		"ALTER TABLE wallets ADD COLUMN x int;",
		"ALTER TABLE wallets ADD COLUMN x int NOT NULL DEFAULT 0, ADD COLUMN y numeric(19,0) NOT NULL DEFAULT 0;",
		"ALTER TABLE wallets DROP CONSTRAINT kind_is_known, ADD CONSTRAINT kind_is_known CHECK (kind IS NOT NULL);",
		"ALTER TABLE wallets ENABLE ROW LEVEL SECURITY;",
		"-- DROP TABLE wallets;\nCREATE TABLE new (id int NOT NULL);",
		"ALTER TABLE new RENAME TO newer; DROP TABLE new; DELETE FROM new;",
		"CREATE INDEX wallets_by_x ON wallets (x); DROP INDEX wallets_by_y;",
		"CREATE POLICY walls ON wallets USING (true); DROP POLICY walls ON wallets;",
	} {
		if found := contractions(migration, tables); len(found) != 0 {
			t.Errorf("%s: found %v", migration, found)
		}
	}
}
