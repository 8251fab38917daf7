package engine

import "regexp"

// clause is one condition of a search query: email:'x' or metadata['k']:"x".
var clause = regexp.MustCompile(`^(?:(email|name)|metadata\[(?:'([^']*)'|"([^"]*)")\]):(?:'([^']*)'|"([^"]*)")`)

var conjunction = regexp.MustCompile(`^\s+(?i:and)\s+`)

// SearchCustomers finds customers by exact values joined with AND, newest first: the
// part of Stripe's query language that lookups by metadata need.
func (a *Account) SearchCustomers(query string, limit int) (found []*Customer, more bool, err error) {
	var conditions []func(*Customer) bool
	for rest := query; ; {
		match := clause.FindStringSubmatch(rest)
		if match == nil {
			return nil, false, invalid("query", "We were unable to parse your search query: %s", query)
		}
		field, key, value := match[1], match[2]+match[3], match[4]+match[5]
		conditions = append(conditions, func(c *Customer) bool {
			switch field {
			case "email":
				return c.Email == value
			case "name":
				return c.Name == value
			default:
				return c.Metadata[key] == value && value != ""
			}
		})
		rest = rest[len(match[0]):]
		if rest == "" {
			break
		}
		and := conjunction.FindString(rest)
		if and == "" {
			return nil, false, invalid("query", "We were unable to parse your search query: %s", query)
		}
		rest = rest[len(and):]
	}
	return List(a.Customers, Page{Limit: limit}, Filter[Customer]{Keep: func(c *Customer) bool {
		for _, holds := range conditions {
			if c.Deleted || !holds(c) {
				return false
			}
		}
		return true
	}})
}
