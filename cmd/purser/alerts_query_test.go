package main

import (
	"regexp"
	"slices"
	"strings"
)

// scrape has the types of metrics, and the labels of each series name with their values.
type scrape struct {
	types  map[string]string
	zeroes map[string]bool // times whose 0 stands for none
	labels map[string]map[string]map[string]bool
}

var (
	zeroLine     = regexp.MustCompile(`^# HELP (\w+) .* as Unix time; 0 for none\.$`)
	typeLine     = regexp.MustCompile(`^# TYPE (\w+) (\w+)$`)
	seriesLine   = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	seriesLabel  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
	seriesSuffix = regexp.MustCompile(`_(bucket|count|sum)$`)
)

func readScrape(text string) scrape {
	known := scrape{map[string]string{}, map[string]bool{}, map[string]map[string]map[string]bool{"up": {}}} // of Prometheus itself
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := typeLine.FindStringSubmatch(line); found != nil {
			known.types[found[1]] = found[2]
		}
		if found := zeroLine.FindStringSubmatch(line); found != nil {
			known.zeroes[found[1]] = true
		}
		found := seriesLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		labels := known.labels[found[1]]
		if labels == nil {
			labels = map[string]map[string]bool{}
			known.labels[found[1]] = labels
		}
		for _, label := range seriesLabel.FindAllStringSubmatch(found[2], -1) {
			if labels[label[1]] == nil {
				labels[label[1]] = map[string]bool{}
			}
			labels[label[1]][label[2]] = true
		}
	}
	return known
}

// counts reports whether a series only grows, as do those of histograms.
func (s scrape) counts(name string) bool {
	return s.types[name] == "counter" || s.types[seriesSuffix.ReplaceAllString(name, "")] == "histogram"
}

// query is what a PromQL expression names.
type query struct {
	metrics   []queryMetric
	functions []string
	grouping  []string
	depth     int
	ages      []string // what is subtracted from the time
}

type queryMetric struct {
	name     string
	matchers [][3]string // label, operator, value
	function string      // the innermost one around it
	ranged   bool
}

var (
	queryToken = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]|offset [0-9]+[smhdw]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9.]+|=~|!~|!=|[<>=]=?|[(){},+*/-]`)
	functions  = []string{"sum", "max", "min", "count", "rate", "increase", "abs", "time", "histogram_quantile", "min_over_time", "absent", "label_values"}
	groups     = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators  = []string{"and", "or", "unless", "bool"}
)

// readQuery is a tokenizer of the part of PromQL that the rules and the dashboard use.
func readQuery(text string) (q query) {
	q.ages = strings.Split(text, "time() - ")[1:]
	tokens := queryToken.FindAllString(text, -1)
	at := func(i int) string {
		if i < len(tokens) {
			return tokens[i]
		}
		return ""
	}
	var called string   // the function whose parenthesis comes next
	var around []string // the functions of open parentheses
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		switch {
		case token == "(":
			q.depth++
			around, called = append(around, called), ""
		case token == ")":
			q.depth--
			around = around[:max(0, len(around)-1)]
		case slices.Contains(groups, token):
			for i += 2; at(i) != ")" && i < len(tokens); i++ {
				if at(i) != "," {
					q.grouping = append(q.grouping, at(i))
				}
			}
		case slices.Contains(operators, token), strings.HasPrefix(token, "offset "):
		case !regexp.MustCompile(`^[a-zA-Z_:]`).MatchString(token):
		case at(i+1) == "(" || slices.Contains(groups, at(i+1)):
			q.functions, called = append(q.functions, token), token
			if token == "label_values" { // of Grafana: a metric and a label
				called = ""
				q.metrics, q.grouping = append(q.metrics, queryMetric{name: at(i + 2)}), append(q.grouping, at(i+4))
				i += 4
				q.depth++
			}
		default:
			m := queryMetric{name: token}
			if len(around) > 0 {
				m.function = around[len(around)-1]
			}
			if at(i+1) == "{" {
				for i += 2; at(i) != "}" && i < len(tokens); i++ {
					if at(i) != "," {
						m.matchers = append(m.matchers, [3]string{at(i), at(i + 1), strings.Trim(at(i+2), `"`)})
						i += 2
					}
				}
			}
			m.ranged = strings.HasPrefix(at(i+1), "[")
			q.metrics = append(q.metrics, m)
		}
	}
	return q
}

var (
	firstMetric = regexp.MustCompile(`purser_\w+`)
	sinceSome   = regexp.MustCompile(`^\((?:[^()]|\([^()]*\))*> 0\)`)
)

// targetLabels are added to every series by Prometheus.
var targetLabels = []string{"instance", "job"}

// valuesNotSeen are values that no test server has: only Stripe itself is that provider, and its
// calls fail in these ways.
var valuesNotSeen = []string{"stripe", "401", "429", "5xx", "error"}

func (q query) problems(known scrape) (found []string) {
	if q.depth != 0 {
		found = append(found, "parentheses differ")
	}
	if len(q.metrics) == 0 {
		found = append(found, "no metric")
	}
	for _, function := range q.functions {
		if !slices.Contains(functions, function) {
			found = append(found, "unknown function "+function)
		}
	}
	for _, m := range q.metrics {
		labels, exists := known.labels[m.name]
		if !exists {
			found = append(found, "unknown metric "+m.name)
			continue
		}
		rates := m.function == "rate" || m.function == "increase"
		switch overTime := rates || strings.HasSuffix(m.function, "_over_time"); {
		case rates && !known.counts(m.name):
			found = append(found, m.name+" is a gauge")
		case !rates && known.counts(m.name):
			found = append(found, m.name+" is a counter, and asked for without rate or increase")
		case overTime && !m.ranged:
			found = append(found, m.name+" has no range")
		case m.ranged && !overTime:
			found = append(found, m.name+" has a range")
		}
		for _, matcher := range m.matchers {
			label, operator, values := matcher[0], matcher[1], matcher[2:]
			if operator == "=~" && regexp.MustCompile(`^[\w/|]+$`).MatchString(values[0]) {
				operator, values = "=", strings.Split(values[0], "|")
			}
			switch {
			case label == "job":
				if values[0] != "purser" {
					found = append(found, `job "`+values[0]+`"`)
				}
				continue
			case slices.Contains(targetLabels, label):
				continue
			case labels[label] == nil:
				found = append(found, "unknown label "+label)
				continue
			}
			for _, value := range values {
				if operator == "=" && !labels[label][value] && !slices.Contains(valuesNotSeen, value) {
					found = append(found, `unknown value "`+value+`"`)
				}
			}
		}
	}
	for _, age := range q.ages {
		if name := firstMetric.FindString(age); known.zeroes[name] && !sinceSome.MatchString(age) {
			found = append(found, name+" is 0 for none, which is not left out")
		}
	}
	for _, label := range q.grouping {
		for _, m := range q.metrics {
			if known.labels[m.name] != nil && known.labels[m.name][label] == nil && !slices.Contains(targetLabels, label) {
				found = append(found, "unknown label "+label)
			}
		}
	}
	return found
}
