package api_test

import (
	"net/http"
	"strings"
	"testing"

	"purser/httpd"
)

// unknownPaths lead nowhere, some of them by very little.
var unknownPaths = []string{
	"/v1", "/v1/", "/v1/nothing", "/v2/credits", "/v1/credits/", "/v1/credits/gold/", "/v1/credits/gold/x", "/v1/credits/a/b", "/v1/credits//", "/v1/credits//gold",
	"/V1/credits", "/v1/Credits", "/v1/credit", "/v1//credits", "//v1/credits", "/v1/./credits", "/v1/../v1/credits",
	"/v1/%63redits", "/v1%2Fcredits", "/v1/credits%2Fgold/x/y",
	"/v1/features/", "/v1/features/a/b", "/v1/wallets/", "/v1/wallets/a/", "/v1/wallets/a/b", "/v1/wallets/a/b/c",
	"/v1/wallets//billing-period", "/v1/wallets/a/billing-period/", "/v1/wallets/a/billing-period/x",
	"/v1/wallets/a/billing-Period", "/v1/deposits/", "/v1/usage/", "/v1/usage/a", "/v1/transfers/", "/v1/wallets/a/rename/", "/v1/wallets//rename", "/v1/transfers/txn_x", "/v1/deposits/dep_x", "/v1/events/", "/v1/events/x/y", "/v1/events/x/reverse/", "/v1/events//reverse", "/v1/notifications/", "/v1/webhook-endpoints/", "/v1/webhook-endpoints/a/b", "/v1/wallets/a/journal/", "/v1/wallets/a/export/", "/v1/check/",
	"/v1/application/", "/v1/application/x", "/v1/openapi", "/v1/openapi.yaml", "/v1/openapi.json/",
	"/v1/metrics", "/v1/debug/pprof/", "/v1/healthz", "/v1/%00", "/v1/%FF",
}

// knownPaths with the methods that they take.
var knownPaths = map[string]string{
	"/v1/application": "GET", "/v1/openapi.json": "GET", "/v1/credits": "GET, POST", "/v1/credits/gold": "GET, PATCH", "/v1/credits/none": "GET, PATCH",
	"/v1/features": "GET, POST", "/v1/features/chat": "GET, PATCH", "/v1/plans": "GET, POST", "/v1/plans/pro": "GET, PATCH",
	"/v1/subscriptions/a": "GET", "/v1/subscriptions/a/change": "POST", "/v1/subscriptions/a/cancel": "POST", "/v1/subscriptions/a/preview-change": "POST",
	"/v1/subscription-checkout": "POST", "/v1/topup-checkout": "POST", "/v1/billing-portal": "POST",
	"/v1/wallets": "GET, POST", "/v1/wallets/a": "GET", "/v1/wallets/a%2Fb": "GET",
	"/v1/wallets/a/billing-period": "PATCH", "/v1/deposits": "GET, POST", "/v1/transfers": "POST", "/v1/wallets/a/rename": "POST", "/v1/wallets/a/erase": "POST", "/v1/check": "POST", "/v1/events": "GET, POST", "/v1/usage": "GET", "/v1/events/x": "GET", "/v1/events/batch": "GET, POST", "/v1/events/group": "GET, POST", "/v1/events/x/reverse": "POST", "/v1/explain": "POST",
	"/v1/wallets/a/balances": "GET", "/v1/wallets/a/journal": "GET", "/v1/wallets/a/export": "GET",
	"/v1/notifications": "GET", "/v1/notifications/a": "GET", "/v1/notifications/a/attempts": "GET", "/v1/notifications/a/redeliver": "POST",
	"/v1/webhook-endpoints": "GET, POST", "/v1/webhook-endpoints/a": "DELETE, GET, PATCH", "/v1/webhook-endpoints/a/rotate-secret": "POST",
	"/v1/webhook-endpoints/a/test": "POST", "/v1/webhook-endpoints/a/replay": "POST",
}

func TestUnroutedPaths(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	anonymous := tn.with("")
	t.Run("an unknown path is a 404 for everybody, by whatever method", func(t *testing.T) {
		for _, target := range unknownPaths {
			for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"} {
				for _, c := range []client{tn.in(t), anonymous.in(t)} {
					c.send(request{method: method, target: target}).refused("not_found")
				}
			}
		}
	})
	t.Run("a path that is known takes its methods and names them", func(t *testing.T) {
		for target, allowed := range knownPaths {
			for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "BREW"} {
				got := anonymous.in(t).send(request{method: method, target: target})
				if strings.Contains(allowed, method) {
					if got.status == 405 || got.status == 404 {
						t.Errorf("%s: %d", got, got.status)
					}
					continue
				}
				got.refused("method_not_allowed")
				if header := got.header.Get("Allow"); header != strings.Replace(allowed, "GET", "GET, HEAD", 1) {
					t.Errorf("%s: allowed are %q, want %q and HEAD with GET", got, header, allowed)
				}
			}
		}
	})
	t.Run("HEAD works where GET does, without a body", func(t *testing.T) {
		for target, status := range map[string]int{
			"/v1/credits": 200, "/v1/openapi.json": 200, "/healthz": 200, "/readyz": 200, "/v1/events": 200, "/v1/explain": 405, "/v1/nothing": 404,
		} {
			got := must(tn.node.exchange(request{method: http.MethodHead, target: target, key: tn.key}))
			if got.status != status || len(got.body) != 0 {
				t.Errorf("HEAD %s answers %d with %d bytes, want %d with none", target, got.status, len(got.body), status)
			}
		}
	})
	t.Run("every reply carries the security headers", func(t *testing.T) {
		n := &node{}
		n.serve(shellOf(tn.node.server, httpd.Options{HTTPS: true, Log: newLog()}), t.Cleanup)
		for _, target := range []string{"/v1/credits", "/v1/openapi.json", "/v1/nothing", "/healthz", "/readyz"} {
			got := must(n.exchange(request{method: "GET", target: target, key: tn.key}))
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
				"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			} {
				if value := got.header.Get(name); value != want {
					t.Errorf("%s of %s is %q", name, target, value)
				}
			}
		}
		if got := must(tn.node.exchange(reads("/healthz"))); got.header.Get("Strict-Transport-Security") != "" {
			t.Error("a server without TLS sends Strict-Transport-Security")
		}
	})
}
