package store

import "strings"

// statement is the text of one query on the rows of an application. $1 is always
// the application's id, and every table in it is tied to $1: then it touches one
// application even without the policies, and one shard when the tables are
// distributed. A test reads the list and holds the rules.
type statement struct {
	number int
	name   string
	sql    string
}

// statements lists every statement of the package.
var statements []statement

func declare(name, sql string) statement {
	s := statement{number: len(statements), name: name, sql: sql}
	statements = append(statements, s)
	return s
}

// prefixed puts the alias before each column of a list that is written without one.
func prefixed(alias, columns string) string {
	list := strings.Split(columns, ",")
	for i, column := range list {
		list[i] = alias + "." + strings.TrimSpace(column)
	}
	return strings.Join(list, ", ")
}
