package pg

import (
	"strconv"
	"strings"
)

// Statement is the text of one query on the rows of an application. $1 is always
// the application's id, and every table in it is tied to $1: then it touches one
// application even without the policies, and one shard when the tables are
// distributed. A test reads the list and holds the rules.
type Statement struct {
	number int
	Name   string
	SQL    string
}

// Statements lists every statement of all packages.
var Statements []Statement

// Declare adds a statement to the list.
func Declare(name, sql string) Statement {
	s := Statement{number: len(Statements), Name: name, SQL: sql}
	Statements = append(Statements, s)
	return s
}

// Prefixed puts the alias before each column of a list that is written without one.
func Prefixed(alias, columns string) string {
	list := strings.Split(columns, ",")
	for i, column := range list {
		list[i] = alias + "." + strings.TrimSpace(column)
	}
	return strings.Join(list, ", ")
}

// PreparedName is the statement's name on a connection of the hot path.
func (s Statement) PreparedName() string { return "purser_" + strconv.Itoa(s.number) }
