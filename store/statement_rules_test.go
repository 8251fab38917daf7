package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"purser/store"
)

// The rules of the statement list, held over its text. They make a statement
// touch one application without the policies, and one shard with distributed
// tables; and they keep out what a distributed Postgres refuses or does by halves.

// statementProblems lists where a statement breaks the rules.
func statementProblems(s store.Statement, tenantTables []string) []string {
	c := statementCheck{statement: s, tenant: tenantTables}
	c.words(sqlTokens(s.SQL))
	c.oneNode(parseSQL(s.SQL))
	c.query(parseSQL(s.SQL))
	return c.problems
}

type statementCheck struct {
	statement store.Statement
	tenant    []string
	problems  []string
}

func (c *statementCheck) report(format string, args ...any) {
	c.problems = append(c.problems, c.statement.Name+": "+fmt.Sprintf(format, args...))
}

// forbidden are words that have no place in a statement, and why.
var forbidden = map[string]string{
	"copy": "skips the policies on a local shard", "merge": "is refused under a policy when distributed",
	"savepoint": "costs trips", "truncate": "knows no policies",
	"now": "is Postgres's clock", "current_timestamp": "is Postgres's clock", "current_date": "is Postgres's clock",
	"current_time": "is Postgres's clock", "localtimestamp": "is Postgres's clock", "clock_timestamp": "is Postgres's clock",
	"statement_timestamp": "is Postgres's clock", "transaction_timestamp": "is Postgres's clock", "timeofday": "is Postgres's clock",
	"random": "differs on every shard", "gen_random_uuid": "is made in Go", "nextval": "is made in Go",
	"set_config": "is not forwarded to shards", "current_setting": "is for policies",
	"dblink": "is another connection",
}

// comparesClocks are the statements that compare the time a batch was decided for with
// Postgres's clock, and store nothing of it.
func comparesClocks(name string) bool {
	return name == "select epoch" || strings.HasPrefix(name, "insert events") || strings.HasPrefix(name, "insert one of events")
}

// words holds the rules that need no understanding of the statement.
func (c *statementCheck) words(list []string) {
	for i, word := range list {
		before, after := at(list, i-1), at(list, i+1)
		if why, bad := forbidden[word]; bad && !(word == "statement_timestamp" && comparesClocks(c.statement.Name)) {
			c.report("%s %s", word, why)
		}
		switch {
		case strings.Contains(word, "advisory"):
			c.report("%s is a lock that no row has", word)
		case word == ";":
			c.report("it is two statements")
		case word == "*" && slices.Contains([]string{"select", "distinct", "all", "returning", ",", "."}, before):
			c.report("it asks for all columns, which change")
		case slices.Contains([]string{"insert", "delete", "update"}, word) && i > 0 && !slices.Contains([]string{"for", "key", "do"}, before):
			c.report("%s is inside of another statement", word)
		case word == "app_id" && after == "=" && at(list, i+2) != "$1":
			c.report("app_id is compared with %s, not with $1", at(list, i+2))
		case word == "$1" && !(before == "=" && at(list, i-2) == "app_id") && !(before == "(" && at(list, i-2) == "values" || before == "(" && at(list, i-2) == ","):
			c.report("$1 is not used as the application's id")
		case slices.Contains([]string{"update", "share"}, word) && slices.Contains([]string{"for", "key"}, before) &&
			slices.Contains(list, "wallets") && c.statement.Name != store.LockWallets.Name:
			c.report("it locks wallets beside %q", store.LockWallets.Name)
		}
	}
}

// tablesOfNoApplication have rows of all applications, on no shard.
var tablesOfNoApplication = append([]string{"applications", "organizations", "verification_claims", "schema_migrations"}, controlTables...)

// oneNode holds the rule that a statement has either control tables or tenant tables:
// on Citus they lie on different nodes.
func (c *statementCheck) oneNode(q []sqlNode) {
	var control, tenant []string
	var walk func([]sqlNode)
	walk = func(q []sqlNode) {
		for _, r := range references(q, tablesOfNoApplication) {
			control = append(control, r.table)
		}
		for _, r := range references(q, c.tenant) {
			tenant = append(tenant, r.table)
		}
		for _, n := range q {
			if n.inner != nil {
				walk(n.inner)
			}
		}
	}
	walk(q)
	if len(control) > 0 && len(tenant) > 0 {
		c.report("%s and %s lie on different nodes", control[0], tenant[0])
	}
}

// query holds the rule that every table is tied to $1, in each query by itself.
func (c *statementCheck) query(q []sqlNode) {
	for _, part := range splitAt(q, "union", "intersect", "except") {
		if first := at(wordsOf(part), 0); first == "insert" {
			part = c.insert(part)
		}
		c.tied(part)
		for _, n := range part {
			if n.inner != nil {
				c.query(n.inner)
			}
		}
	}
}

// insert checks what goes into app_id, and gives what is left to check.
func (c *statementCheck) insert(q []sqlNode) []sqlNode {
	if len(q) < 4 || q[1].word != "into" || q[3].inner == nil {
		c.report("it does not name the columns that it inserts")
		return nil
	}
	if at(wordsOf(q[3].inner), 0) != "app_id" {
		c.report("app_id is not the first column of %s", q[2].word)
	}
	rest := q[4:]
	for i, n := range rest {
		if n.word == "conflict" && at(wordsOf(at(rest, i+1).inner), 0) != "app_id" {
			c.report("the conflict is not looked for by app_id first")
		}
	}
	switch at(rest, 0).word {
	case "values":
		for _, row := range rest[1:] {
			if row.word == "on" || row.word == "returning" {
				break
			}
			if row.inner != nil && at(wordsOf(row.inner), 0) != "$1" {
				c.report("app_id is not given as $1")
			}
		}
		return nil
	case "select":
		words := wordsOf(rest)
		source := slices.IndexFunc(references(rest, c.tenant), func(r reference) bool { return r.table == "app_state" })
		if source < 0 {
			c.report("its rows come from no app_state, so no shard is theirs")
		} else if alias := references(rest, c.tenant)[source].alias; !slices.Equal(words[1:min(4, len(words))], []string{alias, ".", "app_id"}) {
			c.report("app_id is not taken from app_state")
		}
		// What follows is about the row that was there, which the key has found.
		if end := slices.IndexFunc(rest, func(n sqlNode) bool { return n.word == "conflict" }); end > 0 {
			rest = rest[:end-1]
		}
		return rest
	default:
		c.report("it inserts neither values nor a query")
		return nil
	}
}

// tied wants alias.app_id = $1 for each table, where nothing can undo it: in a
// WHERE or an ON that has no OR beside it.
func (c *statementCheck) tied(q []sqlNode) {
	refs := references(q, c.tenant)
	for _, r := range refs {
		if !slices.ContainsFunc(conditions(q), func(condition []string) bool {
			return slices.Equal(condition, []string{r.alias, ".", "app_id", "=", "$1"}) ||
				len(refs) == 1 && slices.Equal(condition, []string{"app_id", "=", "$1"})
		}) {
			c.report("%s is not tied to $1", r.table)
		}
	}
}

// reference is a table in a query, under the name that the query gives it.
type reference struct{ table, alias string }

var afterTable = []string{
	"", ",", "()", "set", "where", "on", "join", "cross", "left", "right", "full", "inner", "natural", "order", "group", "limit",
	"for", "having", "returning", "using", "offset", "default", "values", "select", "union",
}

func references(q []sqlNode, tables []string) (refs []reference) {
	words := wordsOf(q)
	for i, word := range words {
		column := at(words, i-1) == "." && at(words, i-2) != "public"
		if !slices.Contains(tables, word) || column || at(words, i+1) == "." {
			continue
		}
		alias := at(words, i+1)
		if alias == "as" {
			alias = at(words, i+2)
		}
		if slices.Contains(afterTable, alias) {
			alias = word
		}
		refs = append(refs, reference{word, alias})
	}
	return refs
}

// conditions are the terms that all have to hold: those between AND in WHERE and
// ON, of clauses without OR.
func conditions(q []sqlNode) (list [][]string) {
	words := wordsOf(q)
	for i, word := range words {
		if word != "where" && word != "on" {
			continue
		}
		clause := words[i+1:]
		if end := slices.IndexFunc(clause, func(w string) bool {
			return slices.Contains([]string{"where", "on", "join", "cross", "left", "right", "full", "inner", "group", "order", "limit", "for", "having", "returning", "window", "offset"}, w)
		}); end >= 0 {
			clause = clause[:end]
		}
		if slices.Contains(clause, "or") {
			continue
		}
		list = append(list, splitWords(clause, "and")...)
	}
	return list
}

// sqlNode is a word, or what stands between two parentheses.
type sqlNode struct {
	word  string
	inner []sqlNode
}

func parseSQL(sql string) []sqlNode {
	nodes, _ := parseUntilClosed(sqlTokens(sql))
	return nodes
}

func parseUntilClosed(list []string) (nodes []sqlNode, rest []string) {
	nodes = []sqlNode{}
	for len(list) > 0 {
		word := list[0]
		list = list[1:]
		switch word {
		case "(":
			var inner []sqlNode
			inner, list = parseUntilClosed(list)
			nodes = append(nodes, sqlNode{"()", inner})
		case ")":
			return nodes, list
		default:
			nodes = append(nodes, sqlNode{word: word})
		}
	}
	return nodes, nil
}

// A string is one token, as are :: and the other operators of two characters.
var sqlToken = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|"[^"]*"|\$\d+|[A-Za-z_][A-Za-z0-9_]*|\d+|::|<>|<=|>=|\|\||\S`)

func sqlTokens(sql string) (list []string) {
	for _, word := range sqlToken.FindAllString(sql, -1) {
		switch {
		case strings.HasPrefix(word, "--"):
		case word[0] == '"':
			list = append(list, strings.Trim(word, `"`))
		case word[0] == '\'':
			list = append(list, word)
		default:
			list = append(list, strings.ToLower(word))
		}
	}
	return list
}

func wordsOf(q []sqlNode) (list []string) {
	for _, n := range q {
		list = append(list, n.word)
	}
	return list
}

func at[T any](list []T, i int) (none T) {
	if i < 0 || i >= len(list) {
		return none
	}
	return list[i]
}

func splitAt(q []sqlNode, words ...string) (parts [][]sqlNode) {
	start := 0
	for i, n := range q {
		if slices.Contains(words, n.word) {
			parts = append(parts, q[start:i])
			start = i + 1
		}
	}
	return append(parts, q[start:])
}

func splitWords(list []string, separator string) (parts [][]string) {
	for {
		i := slices.Index(list, separator)
		if i < 0 {
			return append(parts, list)
		}
		parts = append(parts, list[:i])
		list = list[i+1:]
	}
}
