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
