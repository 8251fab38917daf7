package migrations

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mixedBefore are migrations of the first release, which a database has before it is
// distributed: each adds columns and constraints in one statement.
var mixedBefore = []string{"20261115000007_billing.tx.up.sql", "20261115000013_accounts.tx.up.sql"}

var sqlComment = regexp.MustCompile(`--[^\n]*`)

// A distributed Postgres runs one statement a message, and ADD CONSTRAINT only alone.
func TestMigrationsRunAfterDistribution(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(FS, "*.up.sql")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d migrations, %v", len(names), err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(FS, name)
		if err != nil {
			t.Fatal(err)
		}
		mixed := problems(string(text))
		if known := slices.Contains(mixedBefore, name); (len(mixed) > 0) != known {
			t.Errorf("%s: %v", name, mixed)
		}
	}
	for text, want := range map[string]int{
		"ALTER TABLE a ADD COLUMN b bigint;\n\n--bun:split\n\nALTER TABLE a ADD CONSTRAINT c CHECK (b > 0);": 0,
		"ALTER TABLE a ADD COLUMN b bigint, ADD CONSTRAINT c CHECK (b > 0);":                                 1,
		"ALTER TABLE a ADD CONSTRAINT b CHECK (c > 0), ADD CONSTRAINT d CHECK (e > 0)":                       1,
		"ALTER TABLE a ADD COLUMN b bigint; ALTER TABLE a ADD COLUMN c bigint;":                              1,
		"-- a comment; with a semicolon\nCREATE TABLE a (b bigint CONSTRAINT c CHECK (b > 0));":              0,
	} {
		if found := problems(text); len(found) != want {
			t.Errorf("%s: %v", text, found)
		}
	}
}

// lastReleased is the last migration of the newest release. Its tables may be large by now,
// except smallTables.
const lastReleased = "20261119000230"

var (
	smallTables = []string{"members"}
	// paymentTables have a row for each payment or failed request, not for each event: an index
	// is built in the seconds that their writers may wait.
	paymentTables = []string{"provider_payments", "provider_ops", "topups", "subscriptions", "subscription_changes", "request_failures"}

	createdTable = regexp.MustCompile(`CREATE TABLE (\w+)`)
	alteredTable = regexp.MustCompile(`ALTER TABLE (\w+)`)
	newRule      = regexp.MustCompile(`\b(CHECK|FOREIGN KEY|REFERENCES)\b`)
	createdIndex = regexp.MustCompile(`CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?\w+ ON (\w+)`)
)

// A rule that is checked when it is added reads the whole table, which nothing else can read
// or write meanwhile. VALIDATE CONSTRAINT does not block them, unless its transaction has
// locked the table before. Nothing writes to a table while an index is built, unless it is
// built CONCURRENTLY.
func TestMigrationsDoNotBlockReleasedTables(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	released := map[string]bool{}
	for _, name := range names {
		text, err := fs.ReadFile(FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if name > lastReleased+"~" {
			for _, problem := range blockingRules(string(text), released) {
				t.Errorf("%s: %s", name, problem)
			}
			continue
		}
		for _, found := range createdTable.FindAllStringSubmatch(string(text), -1) {
			released[found[1]] = !slices.Contains(smallTables, found[1])
		}
	}
	if !released["journal"] || !released["usage_events"] {
		t.Errorf("released tables: %v", released)
	}
	for text, want := range map[string]int{
		"ALTER TABLE journal ADD CONSTRAINT c CHECK (b > 0);":                                            1,
		"ALTER TABLE journal ADD COLUMN b bigint REFERENCES other;":                                      1,
		"ALTER TABLE journal ADD CONSTRAINT c CHECK (b > 0) NOT VALID;":                                  0,
		"ALTER TABLE members ADD CONSTRAINT c CHECK (b > 0);":                                            0,
		"ALTER TABLE created_since ADD CONSTRAINT c CHECK (b > 0);":                                      0,
		"ALTER TABLE journal VALIDATE CONSTRAINT c;":                                                     0,
		"ALTER TABLE journal ADD COLUMN b int;\n--bun:split\nALTER TABLE journal VALIDATE CONSTRAINT c;": 1,
		"CREATE INDEX a ON journal (b);":                                                                 1,
		"CREATE UNIQUE INDEX a ON usage_events (b);":                                                     1,
		"CREATE INDEX CONCURRENTLY a ON journal (b);":                                                    0,
		"CREATE INDEX a ON provider_payments (b);":                                                       0,
		"CREATE INDEX a ON created_since (b);":                                                           0,
	} {
		if found := blockingRules(text, released); len(found) != want {
			t.Errorf("%s: %v", text, found)
		}
	}
}

func blockingRules(text string, released map[string]bool) (found []string) {
	chunks := strings.Split(text, "--bun:split")
	for _, chunk := range chunks {
		chunk = sqlComment.ReplaceAllString(chunk, "")
		if index := createdIndex.FindStringSubmatch(chunk); index != nil && released[index[1]] && !slices.Contains(paymentTables, index[1]) {
			found = append(found, "an index on "+index[1]+" without CONCURRENTLY")
		}
		table := alteredTable.FindStringSubmatch(chunk)
		if table == nil || !released[table[1]] {
			continue
		}
		if newRule.MatchString(chunk) && !strings.Contains(chunk, "NOT VALID") {
			found = append(found, "a rule of "+table[1]+" without NOT VALID")
		}
		if strings.Contains(chunk, "VALIDATE CONSTRAINT") && len(chunks) > 1 {
			found = append(found, "VALIDATE CONSTRAINT is not alone in its file")
		}
	}
	return found
}

func problems(text string) (found []string) {
	for chunk := range strings.SplitSeq(text, "--bun:split") {
		chunk = strings.TrimSpace(sqlComment.ReplaceAllString(chunk, ""))
		if strings.HasPrefix(chunk, "DO ") {
			continue
		}
		if statements := strings.Count(strings.TrimSuffix(chunk, ";"), ";"); statements > 0 {
			found = append(found, "several statements without --bun:split between them")
		}
		actions := regexp.MustCompile(`\b(ADD|DROP|ALTER) (COLUMN|CONSTRAINT)\b`).FindAllString(chunk, -1)
		if len(actions) > 1 && slices.Contains(actions, "ADD CONSTRAINT") {
			found = append(found, "ADD CONSTRAINT is not alone in its statement")
		}
	}
	return found
}
