package pg

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Statement is the text of one query on the rows of an application. $1 is always
// the application's id, and every table in it is tied to $1: then it touches one
// application even without the policies, and one shard when the tables are
// distributed. A test reads the list and holds the rules.
//
// A statement with more than a few parameters names them, as in @wallet_id, and takes its
// arguments as Named.
type Statement struct {
	number     int
	parameters []string // those that are named; the first is $2
	Name       string
	SQL        string
}

// Named are the arguments of a statement that names its parameters.
type Named map[string]any

var parameter = regexp.MustCompile(`@[a-z_]+`)

// Statements lists every statement of all packages.
var Statements []Statement

// Declare adds a statement to the list.
func Declare(name, sql string) Statement {
	s := Statement{number: len(Statements), Name: name}
	s.SQL = parameter.ReplaceAllStringFunc(sql, func(text string) string {
		at := slices.Index(s.parameters, text[1:])
		if at < 0 {
			at, s.parameters = len(s.parameters), append(s.parameters, text[1:])
		}
		return "$" + strconv.Itoa(at+2)
	})
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

// Insert is the text that inserts a row of an application. Each column is a parameter.
func Insert(table, columns string) string {
	list := strings.Split(columns, ",")
	for i, column := range list {
		list[i] = "@" + strings.TrimSpace(column)
	}
	return "INSERT INTO " + table + " (app_id, " + columns + ") VALUES ($1, " + strings.Join(list, ", ") + ")"
}

// PreparedName is the statement's name on a connection of the hot path.
func (s Statement) PreparedName() string { return "purser_" + strconv.Itoa(s.number) }

// in puts named arguments in the order of the statement's parameters.
func (n Named) in(s Statement) ([]any, error) {
	list := make([]any, len(s.parameters))
	for i, name := range s.parameters {
		value, given := n[name]
		if !given {
			return nil, fmt.Errorf("store: %s: %s is missing", s.Name, name)
		}
		list[i] = value
	}
	if len(n) != len(list) {
		return nil, fmt.Errorf("store: %s has %d arguments for %d parameters", s.Name, len(n), len(list))
	}
	return list, nil
}
