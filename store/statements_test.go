package store_test

import (
	"slices"
	"strings"
	"testing"

	"purser/store"
	"purser/store/storetest"
)

func TestStatementsKeepTheRules(t *testing.T) {
	t.Parallel()
	tables := tablesOfTenants(t, connect(t, storetest.URL(t)))
	list := store.Statements()
	if len(list) < 40 {
		t.Fatalf("the list has only %d statements", len(list))
	}
	names := make(map[string]bool)
	for _, s := range list {
		for _, problem := range statementProblems(s, tables) {
			t.Error(problem)
		}
		if names[s.Name] {
			t.Errorf("two statements are called %q", s.Name)
		}
		names[s.Name] = true
	}
}

func TestStatementsAreUnderstoodByPostgres(t *testing.T) {
	t.Parallel()
	conn := connect(t, asApp(storetest.URL(t)))
	for _, s := range store.Statements() {
		described, err := conn.Prepare(t.Context(), s.Name, s.SQL)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if len(described.ParamOIDs) == 0 {
			t.Errorf("%s: it does not take the application's id", s.Name)
		}
	}
}

func TestStatementRulesFind(t *testing.T) {
	t.Parallel()
	tables := []string{"app_state", "wallets", "balances", "journal"}
	for name, c := range map[string]struct{ sql, want string }{
		"a control table beside a tenant table":  {`UPDATE work_hints SET due_at = (SELECT min(w.id) FROM wallets w WHERE w.app_id = $1) WHERE app_id = $1`, "work_hints and wallets lie on different nodes"},
		"a control table filled from another":    {`INSERT INTO work_hints (app_id, kind) SELECT s.app_id, $2 FROM app_state s WHERE s.app_id = $1`, "work_hints and app_state lie on different nodes"},
		"a table without the application":        {`SELECT id FROM wallets WHERE id = $2`, "wallets is not tied to $1"},
		"one of two tables without it":           {`SELECT w.id FROM wallets w JOIN balances b ON b.wallet_id = w.id WHERE w.app_id = $1`, "balances is not tied to $1"},
		"a tie that could be either table's":     {`SELECT w.id FROM wallets w JOIN balances b ON b.wallet_id = w.id WHERE app_id = $1`, "wallets is not tied to $1"},
		"a tie to another table":                 {`SELECT w.id FROM wallets w JOIN balances b ON b.app_id = w.app_id WHERE w.app_id = $1`, "balances is not tied to $1"},
		"a tie to another parameter":             {`SELECT id FROM wallets WHERE app_id = $2`, "app_id is compared with $2"},
		"a tie to a list":                        {`SELECT id FROM wallets WHERE app_id = ANY ($1)`, "wallets is not tied to $1"},
		"a tie that OR undoes":                   {`SELECT id FROM wallets WHERE app_id = $1 OR id = $2`, "wallets is not tied to $1"},
		"a tie that NOT turns round":             {`SELECT id FROM wallets WHERE NOT app_id = $1`, "wallets is not tied to $1"},
		"a tie that is only shown":               {`SELECT app_id = $1 FROM wallets`, "wallets is not tied to $1"},
		"a sub-select without its own":           {`SELECT id FROM wallets WHERE app_id = $1 AND id IN (SELECT wallet_id FROM balances)`, "balances is not tied to $1"},
		"a lateral one without its own":          {`SELECT w.id FROM wallets w CROSS JOIN LATERAL (SELECT credit_id FROM balances b WHERE b.wallet_id = w.id) b WHERE w.app_id = $1`, "balances is not tied to $1"},
		"the other half of a union":              {`SELECT id FROM wallets WHERE app_id = $1 UNION ALL SELECT wallet_id FROM balances`, "balances is not tied to $1"},
		"a common table without its own":         {`WITH w AS (SELECT id FROM wallets) SELECT id FROM w`, "wallets is not tied to $1"},
		"a table behind a comma":                 {`SELECT w.id FROM wallets w, balances b WHERE w.app_id = $1`, "balances is not tied to $1"},
		"a quoted table":                         {`SELECT id FROM "wallets"`, "wallets is not tied to $1"},
		"a table of the schema":                  {`SELECT id FROM public.wallets`, "wallets is not tied to $1"},
		"an update without it":                   {`UPDATE wallets SET charged = true WHERE id = $2`, "wallets is not tied to $1"},
		"an update of it":                        {`UPDATE wallets SET app_id = $2 WHERE app_id = $1`, "app_id is compared with $2"},
		"a delete without it":                    {`DELETE FROM wallets WHERE id = $2`, "wallets is not tied to $1"},
		"values with it in another place":        {`INSERT INTO wallets (id, app_id) VALUES ($1, $2)`, "app_id is not the first column"},
		"values with another parameter":          {`INSERT INTO wallets (app_id, id) VALUES ($2, $1)`, "app_id is not given as $1"},
		"a second row of values":                 {`INSERT INTO wallets (app_id, id) VALUES ($1, $2), ($3, $4)`, "app_id is not given as $1"},
		"an insert without columns":              {`INSERT INTO wallets VALUES ($1, $2)`, "does not name the columns"},
		"a bare unnest":                          {`INSERT INTO wallets (app_id, id) SELECT t.a, t.i FROM unnest($1::uuid[], $2::uuid[]) AS t (a, i)`, "come from no app_state"},
		"a bare unnest with the parameter":       {`INSERT INTO wallets (app_id, id) SELECT $1, t.i FROM unnest($2::uuid[]) AS t (i)`, "come from no app_state"},
		"app_state without the application":      {`INSERT INTO wallets (app_id, id) SELECT s.app_id, t.i FROM app_state s CROSS JOIN unnest($1::uuid[]) AS t (i)`, "app_state is not tied to $1"},
		"app_state beside another app_id":        {`INSERT INTO wallets (app_id, id) SELECT t.a, t.i FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[]) AS t (a, i) WHERE s.app_id = $1`, "app_id is not taken from app_state"},
		"a conflict over all applications":       {`INSERT INTO wallets (app_id, id) VALUES ($1, $2) ON CONFLICT (identity) DO NOTHING`, "the conflict is not looked for by app_id first"},
		"all columns":                            {`SELECT * FROM wallets WHERE app_id = $1`, "all columns"},
		"all columns of a table":                 {`SELECT w.* FROM wallets w WHERE w.app_id = $1`, "all columns"},
		"all columns back":                       {`UPDATE wallets SET charged = true WHERE app_id = $1 RETURNING *`, "all columns"},
		"a copy":                                 {`COPY wallets FROM STDIN`, "copy skips the policies"},
		"the clock":                              {`UPDATE wallets SET created_at = now() WHERE app_id = $1`, "now is Postgres's clock"},
		"the clock under another name":           {`UPDATE wallets SET created_at = CURRENT_TIMESTAMP WHERE app_id = $1`, "current_timestamp is Postgres's clock"},
		"chance":                                 {`SELECT id FROM wallets WHERE app_id = $1 ORDER BY random()`, "random differs"},
		"a merge":                                {`MERGE INTO wallets w USING balances b ON b.app_id = $1 AND w.app_id = $1 WHEN MATCHED THEN DO NOTHING`, "merge is refused"},
		"a savepoint":                            {`SAVEPOINT one`, "savepoint costs"},
		"a statement that changes inside of one": {`WITH gone AS (DELETE FROM wallets WHERE app_id = $1 RETURNING id) SELECT id FROM gone`, "delete is inside"},
		"an update inside of one":                {`WITH x AS (UPDATE wallets SET charged = true WHERE app_id = $1 RETURNING id) SELECT id FROM x`, "update is inside"},
		"a setting":                              {`SELECT set_config('purser.app_id', $1, true)`, "set_config is not forwarded"},
		"an advisory lock":                       {`SELECT pg_advisory_xact_lock($2) FROM wallets WHERE app_id = $1`, "is a lock that no row has"},
		"two statements":                         {`SELECT id FROM wallets WHERE app_id = $1; SELECT 1`, "two statements"},
		"another lock of wallets":                {`SELECT id FROM wallets WHERE app_id = $1 FOR UPDATE`, `locks wallets beside "lock wallets"`},
		"a weaker lock of wallets":               {`SELECT id FROM wallets WHERE app_id = $1 FOR NO KEY UPDATE`, `locks wallets beside "lock wallets"`},
		"a shared lock of wallets":               {`SELECT id FROM wallets WHERE app_id = $1 FOR KEY SHARE`, `locks wallets beside "lock wallets"`},
		"the id as something else":               {`SELECT id FROM wallets WHERE app_id = $1 AND identity = $1`, "$1 is not used as the application's id"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := statementProblems(store.Statement{Name: "bad", SQL: c.sql}, tables)
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("they find %q in %s", problems, c.sql)
			}
		})
	}
}
