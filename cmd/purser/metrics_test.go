package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/store"
)

// metricsAddress is where the log says that metrics are served.
var metricsAddress = regexp.MustCompile(`"metrics listening","address":"([^"]+)"`)

func (p product) metricsURL(t *testing.T) string {
	t.Helper()
	var found []string
	eventually(t, "the log says where the metrics are", func() bool {
		found = metricsAddress.FindStringSubmatch(p.log.String())
		return found != nil
	})
	return "http://" + found[1]
}

func TestMetricsDescribeTheWholeServer(t *testing.T) {
	t.Parallel()
	p := startProduct(t, "PURSER_METRICS_ADDR=127.0.0.1:0")
	private := p.metricsURL(t)
	secret := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup").Secret
	call := func(method, path, body string, want int) {
		t.Helper()
		if status, answer := fetch(t, method, p.base+path, secret, body); status != want {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
	}
	call("POST", "/v1/credits", `{"key":"tokens","name":"Tokens","unit":"token"}`, 201)
	call("POST", "/v1/features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"1"}`, 201)
	call("POST", "/v1/deposits", `{"identity":"ann@example.com","creditKey":"tokens","amountNanocredits":"9","idempotencyKey":"one"}`, 201)
	call("POST", "/v1/events", `{"id":"e1","identity":"ann@example.com","feature":"chat"}`, 201)
	call("POST", "/v1/check", `{"identity":"ann@example.com","feature":"chat"}`, 200)
	call("POST", "/v1/events", `{"id":"e2","identity":"poor@example.com","feature":"chat"}`, 409)
	// A plan is synced to the sandbox by a job.
	call("POST", "/v1/plans", `{"key":"pro","name":"Pro","amountCents":100,"currency":"usd","interval":"month","featureLimits":[],"creditGrants":[{"creditKey":"tokens","amountNanocredits":"5"}]}`, 201)

	var text string
	scrape := func() string {
		_, text = fetch(t, "GET", private+"/metrics", "", "")
		return text
	}
	eventually(t, "the plan is synced", func() bool { // a job may run more than once
		return strings.Contains(scrape(), `purser_job_seconds_count{kind="plan",result="done"} `)
	})
	_, answer := fetch(t, "POST", p.base+"/v1/subscription-checkout", secret, `{"identity":"ann@example.com","planKey":"pro","idempotencyKey":"buy",
		"successUrl":"https://chat.example/yes","cancelUrl":"https://chat.example/no"}`)
	var checkout struct{ URL string }
	if err := json.Unmarshal([]byte(answer), &checkout); err != nil || checkout.URL == "" {
		t.Fatal(answer)
	}
	payer := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	paid, err := payer.PostForm(checkout.URL, url.Values{"card": {"4242424242424242"}})
	if err != nil {
		t.Fatal(err)
	}
	paid.Body.Close()
	eventually(t, "webhooks and their jobs are counted", func() bool {
		return strings.Contains(scrape(), `purser_job_lag_seconds_count{kind="subscription"}`) && strings.Contains(text, `purser_webhooks_total{outcome="queued"}`)
	})
	lines := []string{
		`purser_request_seconds_count{method="POST",route="/v1/events",status="201"} 1`,
		`purser_request_seconds_count{method="POST",route="/v1/events",status="409"} 1`,
		`purser_request_seconds_count{method="POST",route="/v1/deposits",status="201"} 1`,
		`purser_usage_batch_size_count{kind="events"} 2`,
		`purser_usage_batch_size_sum{kind="checks"} 1`,
		`purser_usage_batch_seconds_count{kind="events"} 2`,
		`purser_usage_waiting{kind="events"} 0`,
		`purser_usage_waiting{kind="checks"} 0`,
		`purser_webhook_lag_seconds_bucket{le="86400"}`,
		`purser_provider_request_seconds_count{provider="sandbox",resource="products",status="2xx"}`,
		`purser_jobs_failing{queue="billing"} 0`,
		`purser_jobs_failing_since_seconds{queue="billing"} 0`,
		`purser_jobs_overdue_seconds{queue="billing"}`,
		`purser_verify_oldest_timestamp_seconds{kind="new"}`,
		`purser_verify_interval_seconds{kind="all"} 86400`,
		`purser_verify_runs_total{kind="all",result="differs"} 0`,
		`purser_verify_differences_total 0`,
		`purser_packed_events 0`,
		`purser_packed_bytes `,
		`purser_pack_skipped_wallets 0`,
		`purser_pack_finished_timestamp_seconds 0`,
		`purser_db_connections_max{pool="general"} 16`,
		`purser_db_connections{pool="events",state="idle"}`,
		`purser_db_waits_total{pool="checks"}`,
		`purser_build_info{version="dev"} 1`,
		"purser_ready 1",
		"purser_usage_retries_total 0",
		"go_goroutines ",
	}
	lacking := func() []string {
		return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(text, line) })
	}
	defer func() {
		for _, line := range lacking() {
			t.Errorf("the metrics lack %s in\n%s", line, text)
		}
	}()
	// A scrape lacks what the database or its probe of readiness didn't answer in time.
	eventually(t, "the metrics are complete", func() bool { scrape(); return len(lacking()) == 0 })
	for _, private := range []string{"example.com", "app_", "org_", "wal_", "key_"} {
		if strings.Contains(text, private) {
			t.Errorf("the metrics have %s", private)
		}
	}

	t.Run("alert rules and the dashboard query these metrics", func(t *testing.T) { checkQueries(t, text) })

	t.Run("profiles are at the private address only", func(t *testing.T) {
		for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile: total"} {
			if status, answer := fetch(t, "GET", private+path, "", ""); status != 200 || !strings.Contains(answer, want) {
				t.Errorf("%s: %d %.200s", path, status, answer)
			}
			for _, path := range []string{path, "/metrics"} {
				if status, _ := fetch(t, "GET", p.base+path, "", ""); status != 404 {
					t.Errorf("%s is public: %d", path, status)
				}
			}
		}
	})
}

// Prometheus sees no increase in a series that begins with its first rejection.
func TestRejectedKeysAreCountedFromZero(t *testing.T) {
	t.Parallel()
	families, err := newMetrics().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == "purser_provider_request_seconds" && labels["provider"] == stripeProvider && labels["status"] == "401" && metric.GetHistogram().GetSampleCount() == 0 {
				seen[labels["resource"]] = true
			}
		}
	}
	for _, resource := range append(slices.Clone(providerResources), "other") {
		if !seen[resource] {
			t.Errorf("a fresh scrape has no rejections of %s", resource)
		}
	}
}

func TestLabelsOfProviderCallsAreBounded(t *testing.T) {
	t.Parallel()
	status := 200
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(provider.Close)
	m := newMetrics()
	client := &http.Client{Transport: m.measureProvider(stripeProvider, http.DefaultTransport)}
	paths := []string{"/v1/customers/cus_1", "/sandbox/app_1/v1/prices", "/v1/made_up", "/", "/v1/"}
	for _, status = range []int{200, 201, 302, 401, 402, 429, 500, 599, 999} {
		for _, path := range paths {
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			response, err := client.Get(provider.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}
	provider.Close()
	if _, err := client.Get(provider.URL); err == nil {
		t.Fatal("a closed server answers")
	}
	seen := map[string]bool{}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "purser_provider_request_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetHistogram().GetSampleCount() == 0 {
				continue // there from the start
			}
			for _, label := range metric.GetLabel() {
				seen[label.GetName()+"="+label.GetValue()] = true
			}
		}
	}
	want := []string{"provider=stripe", "resource=customers", "resource=prices", "resource=other",
		"status=2xx", "status=3xx", "status=4xx", "status=401", "status=429", "status=5xx", "status=other", "status=error"}
	if len(seen) != len(want) {
		t.Errorf("the labels are %v", seen)
	}
	for _, label := range want {
		if !seen[label] {
			t.Errorf("no call has the label %s", label)
		}
	}
}

// An event costs two observations of a batch and one of a request; none may allocate more
// than the text of a status.
func TestObservingUsageAllocatesNothingWorthMeasuring(t *testing.T) {
	m := newMetrics()
	if n := testing.AllocsPerRun(1000, func() {
		m.observe("POST", "/v1/events", 201, time.Millisecond)
		m.observeBatch(store.Batch{Kind: store.EventBatch, Size: 64, Took: time.Millisecond})
	}); n > 1 {
		t.Errorf("an event with its own batch allocates %v times", n)
	}
}

func TestAnUnknownMethodSharesALabel(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	for i := range 100 {
		m.observe(fmt.Sprintf("METHOD%d", i), "", 405, time.Millisecond)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "purser_request_seconds" && len(family.GetMetric()) != 1 {
			t.Errorf("%d series for unknown methods", len(family.GetMetric()))
		}
	}
}
