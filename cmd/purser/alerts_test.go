package main

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"purser/docs"
)

// alertRule is a rule of deploy/prometheus.
type alertRule struct {
	Alert       string
	Expr        string
	For         string
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

// scrapeWatch is what 'purser verify --watch' exports.
func scrapeWatch() string {
	registry := prometheus.NewRegistry()
	newWatchMetrics(registry, time.Minute)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}

// Every query is held to a scrape of a server and of a watch: its metrics, their types and labels,
// and the values of labels that are fixed.
func checkQueries(t *testing.T, scraped string) {
	t.Helper()
	known := readScrape(scraped + scrapeWatch())
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
		for _, problem := range rule.problems(known) {
			t.Errorf("%s: %s", rule.Alert, problem)
		}
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
	for name := range known.labels {
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
		`purser_verify_differences_total > 0`:                            "is a counter",
		`max_over_time(purser_usage_splits_total[5m]) > 0`:               "is a counter",
		`sum(purser_request_seconds_count)`:                              "is a counter",
		`rate(purser_usage_splits_total) > 0`:                            "no range",
		`increase(purser_ready[5m]) < 0`:                                 "is a gauge",
		`purser_ready[5m] == 0`:                                          "range",
		`max(time() - purser_jobs_failing_since_seconds) > 600`:          "0 for none",
		`time() - max(purser_pack_finished_timestamp_seconds) > 0`:       "0 for none",
		`up{job="server"} == 0`:                                          `job "server"`,
		`increase(purser_verify_runs_total{kind=~"all|made_up"}[1h])`:    `value "made_up"`,
		`sum by (queue) (purser_ready) > on (kind) purser_usage_waiting`: "label queue",
	} {
		if problems := strings.Join(readQuery(wrong).problems(known), "; "); !strings.Contains(problems, want) {
			t.Errorf("%s: found %q, want %s", wrong, problems, want)
		}
	}
}

// summaryLabel is a label that the sentence of an alert shows.
var summaryLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// problems are those of a rule apart from what its query names: one bad sample must not raise an
// alert, and its sentence must not show a label that the query has aggregated away.
func (r alertRule) problems(known scrape) (found []string) {
	if wait, err := time.ParseDuration(strings.Replace(r.For, "1d", "24h", 1)); (r.For != "" || !strings.Contains(r.Expr, "[")) && (err != nil || wait < time.Minute) {
		found = append(found, "it waits for "+strconv.Quote(r.For))
	}
	read := readQuery(r.Expr)
	for _, label := range summaryLabel.FindAllStringSubmatch(r.Annotations["summary"], -1) {
		aggregated := slices.ContainsFunc(read.functions, func(f string) bool { return slices.Contains([]string{"sum", "max", "min", "count", "absent"}, f) })
		if aggregated && slices.Contains(read.grouping, label[1]) {
			continue
		}
		if at := read.metrics[0]; aggregated || !slices.Contains(targetLabels, label[1]) && known.labels[at.name][label[1]] == nil {
			found = append(found, "its summary shows the label "+label[1])
		}
	}
	return found
}

func TestAlertsThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	known := readScrape("# TYPE purser_ready gauge\npurser_ready 1\n# TYPE purser_jobs_failing gauge\npurser_jobs_failing{queue=\"billing\"} 0\n")
	for want, rule := range map[string]alertRule{
		"waits for":               {Expr: "purser_ready == 0"},
		`waits for "soon"`:        {Expr: "purser_ready == 0", For: "soon"},
		"shows the label node":    {Expr: "purser_ready == 0", For: "5m", Annotations: map[string]string{"summary": "{{ $labels.node }}"}},
		"shows the label queue":   {Expr: "max(purser_jobs_failing) > 0", For: "5m", Annotations: map[string]string{"summary": "{{ $labels.queue }}"}},
		"shows the label another": {Expr: "max by (queue) (purser_jobs_failing) > 0", For: "5m", Annotations: map[string]string{"summary": "{{ $labels.queue }} {{ $labels.another }}"}},
	} {
		if problems := rule.problems(known); len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("%+v: found %q, want %s", rule, problems, want)
		}
	}
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
