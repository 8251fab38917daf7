package main

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"purser/jobs"
	"purser/notify/delivery"
	"purser/payments/cashier"
)

func (m *metrics) observeJob(run jobs.Run) {
	m.jobs.WithLabelValues(string(run.Kind), run.Result).Observe(run.Took.Seconds())
	if run.Lag >= 0 {
		m.jobLag.WithLabelValues(string(run.Kind)).Observe(run.Lag.Seconds())
	}
}

func (m *metrics) observeWebhook(receipt cashier.WebhookReceipt) {
	m.webhooks.WithLabelValues(receipt.Outcome).Inc()
	if receipt.Lag >= 0 {
		m.webhookLag.Observe(receipt.Lag.Seconds())
	}
}

func (m *metrics) observeDelivery(attempt delivery.Attempted) {
	m.deliveries.WithLabelValues(attempt.Result).Observe(attempt.Took.Seconds())
}

// Labels of providers.
const (
	stripeProvider  = "stripe"
	sandboxProvider = "sandbox"
)

// newRejections creates the series of rejected keys: PurserProviderKeyRejected sees no
// increase in one that begins with its first rejection.
func (m *metrics) newRejections() {
	for _, resource := range append(slices.Clone(providerResources), "other") {
		m.providerCall.WithLabelValues(stripeProvider, resource, statusClass(http.StatusUnauthorized))
	}
}

// measureProvider measures the calls of a transport, each attempt on its own.
func (m *metrics) measureProvider(provider string, next http.RoundTripper) http.RoundTripper {
	return measured{m, provider, next}
}

type measured struct {
	metrics  *metrics
	provider string
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t measured) RoundTrip(r *http.Request) (*http.Response, error) {
	begun, resource := time.Now(), providerResource(r.URL.Path)
	r, end := t.metrics.traces.startCall(r, t.provider, resource)
	response, err := t.next.RoundTrip(r)
	end(response, err)
	status := "error"
	if err == nil {
		status = statusClass(response.StatusCode)
	}
	t.metrics.providerCall.WithLabelValues(t.provider, resource, status).Observe(time.Since(begun).Seconds())
	return response, err
}

// statusClass is 2xx, 4xx and so on; 401 and 429 stand alone, because each asks for
// another action.
func statusClass(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "401"
	case status == http.StatusTooManyRequests:
		return "429"
	case status < 100 || status > 599:
		return "other"
	}
	return string('0'+rune(status/100)) + "xx"
}

// providerResources are the collections of Stripe's API that Purser calls.
var providerResources = []string{
	"account", "billing_portal", "charges", "checkout", "customers", "disputes", "events", "invoices", "payment_intents", "payment_methods",
	"prices", "products", "refunds", "setup_intents", "subscription_schedules", "subscriptions", "webhook_endpoints",
}

// providerResource is the collection in a path such as /v1/customers/cus_1, or other. The
// sandbox has a prefix before it.
func providerResource(path string) string {
	_, rest, _ := strings.Cut(path, "/v1/")
	name, _, _ := strings.Cut(rest, "/")
	if slices.Contains(providerResources, name) {
		return name
	}
	return "other"
}
