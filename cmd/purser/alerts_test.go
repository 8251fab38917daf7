package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"purser/docs"
)

// alertRule is a rule of deploy/prometheus.
type alertRule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func readRules(t *testing.T) []alertRule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "purser.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) < 10 {
		t.Fatalf("the rules are %+v, %v", file, err)
	}
	return file.Groups[0].Rules
}

// readPanels gives the queries of the dashboard by their panel.
func readPanels(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "purser.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries, ids := map[string][]string{}, map[int]bool{}
	for _, panel := range board.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the id %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("the panel %q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			queries[panel.Title] = append(queries[panel.Title], target.Expr)
		}
	}
	for _, variable := range board.Templating.List {
		if variable.Type == "query" {
			queries["$"+variable.Name] = []string{variable.Query}
		}
	}
	return queries
}

// A run that takes longer than its limit is repeated after its interval, by any node.
func TestVerificationsThatNeverFinishRaiseAnAlert(t *testing.T) {
	t.Parallel()
	c, err := readConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	rules := readRules(t)
	rule := rules[slices.IndexFunc(rules, func(r alertRule) bool { return r.Alert == "PurserVerificationFails" })]
	failures := regexp.MustCompile(`sum by \(kind\) \(increase\(purser_verify_runs_total\{(?:kind=~"([^"]*)", )?result="failed"\}\[(\w+)\](?: offset 25h)?\)\) > ([\d.]+)`)
	for kind, every := range c.verifyIntervals() {
		raised := false
		for _, m := range failures.FindAllStringSubmatch(rule.Expr, -1) {
			window, err := time.ParseDuration(m[2])
			if err != nil {
				t.Fatal(err)
			}
			most, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				t.Fatal(err)
			}
			found := float64(window / (every + 2*verifyTick))
			raised = raised || found > most && (m[1] == "" || slices.Contains(strings.Split(m[1], "|"), string(kind)))
		}
		if !raised {
			t.Errorf("verifications of the kind %q that fail every %s raise no alert by %s", kind, every, rule.Expr)
		}
	}
}

// Every query is held to a scrape of a server: its metrics, their labels, and the values
// of labels that are fixed.
func checkQueries(t *testing.T, scraped string) {
	t.Helper()
	known := readScrape(scraped)
	used := map[string]bool{}
	check := func(where, query string) {
		t.Helper()
		read := readQuery(query)
		for _, problem := range read.problems(known) {
			t.Errorf("%s: %s in %s", where, problem, query)
		}
		for _, m := range read.metrics {
			used[seriesSuffix.ReplaceAllString(m.name, "")] = true
		}
	}
	for _, rule := range readRules(t) {
		check(rule.Alert, rule.Expr)
	}
	for panel, queries := range readPanels(t) {
		for _, query := range queries {
			check(panel, query)
		}
	}
	// The dashboard shows everything that we measure, and the guide names it.
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range known {
		base := seriesSuffix.ReplaceAllString(name, "")
		if !strings.HasPrefix(base, "purser_") {
			continue
		}
		if !used[base] {
			t.Errorf("no panel and no rule has %s", base)
		}
		if !strings.Contains(string(guide), "`"+base+"`") {
			t.Errorf("the guide does not name %s", base)
		}
	}
	for wrong, want := range map[string]string{
		`rate(purser_no_such_total[5m])`:                                 "metric purser_no_such_total",
		`sum by (tenant) (purser_ready)`:                                 "label tenant",
		`purser_ready{app="x"}`:                                          "label app",
		`purser_jobs_failing{queue="made up"}`:                           `value "made up"`,
		`rate(purser_request_seconds_count{route="/v1/nowhere"}[5m])`:    `value "/v1/nowhere"`,
		`summ(purser_ready)`:                                             "function summ",
		`sum(purser_ready`:                                               "parentheses",
		`sum by (queue) (purser_ready) > on (kind) purser_usage_waiting`: "label queue",
	} {
		if problems := strings.Join(readQuery(wrong).problems(known), "; "); !strings.Contains(problems, want) {
			t.Errorf("%s: found %q, want %s", wrong, problems, want)
		}
	}
}

// scrape has the labels of each series name, and their values.
type scrape map[string]map[string]map[string]bool

var (
	seriesLine   = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	seriesLabel  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
	seriesSuffix = regexp.MustCompile(`_(bucket|count|sum)$`)
)

func readScrape(text string) scrape {
	known := scrape{"up": {}} // Prometheus's own
	for line := range strings.Lines(text) {
		found := seriesLine.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		labels := known[found[1]]
		if labels == nil {
			labels = map[string]map[string]bool{}
			known[found[1]] = labels
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

// query is what a PromQL expression names.
type query struct {
	metrics   []queryMetric
	functions []string
	grouping  []string
	depth     int
}

type queryMetric struct {
	name     string
	matchers [][3]string // label, operator, value
}

var (
	queryToken = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]|offset [0-9]+[smhdw]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9.]+|=~|!~|!=|[<>=]=?|[(){},+*/-]`)
	functions  = []string{"sum", "max", "min", "count", "rate", "increase", "abs", "time", "histogram_quantile", "min_over_time", "label_values"}
	groups     = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators  = []string{"and", "or", "unless", "bool"}
)

// readQuery is a tokenizer of the part of PromQL that the rules and the dashboard use.
func readQuery(text string) (q query) {
	tokens := queryToken.FindAllString(text, -1)
	at := func(i int) string {
		if i < len(tokens) {
			return tokens[i]
		}
		return ""
	}
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		switch {
		case token == "(":
			q.depth++
		case token == ")":
			q.depth--
		case slices.Contains(groups, token):
			for i += 2; at(i) != ")" && i < len(tokens); i++ {
				if at(i) != "," {
					q.grouping = append(q.grouping, at(i))
				}
			}
		case slices.Contains(operators, token), strings.HasPrefix(token, "offset "):
		case !regexp.MustCompile(`^[a-zA-Z_:]`).MatchString(token):
		case at(i+1) == "(" || slices.Contains(groups, at(i+1)):
			q.functions = append(q.functions, token)
			if token == "label_values" { // of Grafana: a metric and a label
				q.metrics, q.grouping = append(q.metrics, queryMetric{name: at(i + 2)}), append(q.grouping, at(i+4))
				i += 4
				q.depth++
			}
		default:
			m := queryMetric{name: token}
			if at(i+1) == "{" {
				for i += 2; at(i) != "}" && i < len(tokens); i++ {
					if at(i) != "," {
						m.matchers = append(m.matchers, [3]string{at(i), at(i + 1), strings.Trim(at(i+2), `"`)})
						i += 2
					}
				}
			}
			q.metrics = append(q.metrics, m)
		}
	}
	return q
}

// targetLabels are added to every series by Prometheus.
var targetLabels = []string{"instance", "job"}

// valuesNotSeen are values that no test server has: only Stripe itself is that provider.
var valuesNotSeen = []string{"stripe", "401"}

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
		labels, exists := known[m.name]
		if !exists {
			found = append(found, "unknown metric "+m.name)
			continue
		}
		for _, matcher := range m.matchers {
			label, operator, value := matcher[0], matcher[1], matcher[2]
			switch {
			case slices.Contains(targetLabels, label):
			case labels[label] == nil:
				found = append(found, "unknown label "+label)
			case operator == "=" && !labels[label][value] && !slices.Contains(valuesNotSeen, value):
				found = append(found, `unknown value "`+value+`"`)
			}
		}
	}
	for _, label := range q.grouping {
		for _, m := range q.metrics {
			if known[m.name] != nil && known[m.name][label] == nil && !slices.Contains(targetLabels, label) {
				found = append(found, "unknown label "+label)
			}
		}
	}
	return found
}

func TestEveryAlertHasARunbook(t *testing.T) {
	t.Parallel()
	guides, err := docs.Guides()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(guides, func(g docs.Guide) bool { return g.Slug == "monitoring" })
	if at < 0 {
		t.Fatal("there is no guide to monitoring")
	}
	var page strings.Builder
	for _, block := range guides[at].Body {
		page.WriteString(block.HTML)
	}
	sections := map[string]bool{}
	for _, found := range regexp.MustCompile(`<h3 id="([^"]+)"`).FindAllStringSubmatch(page.String(), -1) {
		sections[found[1]] = false
	}
	names := map[string]bool{}
	for _, rule := range readRules(t) {
		if names[rule.Alert] || !strings.HasPrefix(rule.Alert, "Purser") {
			t.Errorf("the name %q is not a name of its own", rule.Alert)
		}
		names[rule.Alert] = true
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		section, leads := strings.CutPrefix(rule.Annotations["runbook"], "/docs/monitoring#")
		if _, exists := sections[section]; !leads || !exists || rule.Annotations["summary"] == "" {
			t.Errorf("%s leads to %q, which is none of %v", rule.Alert, rule.Annotations["runbook"], slices.Sorted(maps.Keys(sections)))
			continue
		}
		sections[section] = true
	}
	for section, linked := range sections {
		if !linked {
			t.Errorf("no alert leads to the section %s", section)
		}
	}
}
