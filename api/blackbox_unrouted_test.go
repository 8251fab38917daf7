package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// unknownPaths lead nowhere, some of them by very little.
var unknownPaths = []string{
	"/v1", "/v1/", "/v1/nothing", "/v2/credits", "/v1/credits/", "/v1/credits/gold/", "/v1/credits/gold/x", "/v1/credits/a/b", "/v1/credits//", "/v1/credits//gold",
	"/V1/credits", "/v1/Credits", "/v1/credit", "/v1//credits", "//v1/credits", "/v1/./credits", "/v1/../v1/credits",
	"/v1/%63redits", "/v1%2Fcredits", "/v1/credits%2Fgold/x/y",
	"/v1/features/", "/v1/features/a/b", "/v1/wallets/", "/v1/wallets/a/", "/v1/wallets/a/b", "/v1/wallets/a/b/c",
	"/v1/wallets//billing-period", "/v1/wallets/a/billing-period/", "/v1/wallets/a/billing-period/x",
	"/v1/wallets/a/billing-Period", "/v1/deposits/", "/v1/deposits/dep_x", "/v1/events/", "/v1/events/x", "/v1/check/",
	"/v1/application/", "/v1/application/x", "/v1/openapi", "/v1/openapi.yaml", "/v1/openapi.json/",
	"/v1/metrics", "/v1/debug/pprof/", "/v1/healthz", "/v1/%00", "/v1/%FF",
}

// knownPaths with the methods that they take.
var knownPaths = map[string]string{
	"/v1/application": "GET", "/v1/openapi.json": "GET", "/v1/credits": "GET, POST", "/v1/credits/gold": "GET, PATCH", "/v1/credits/none": "GET, PATCH",
	"/v1/features": "GET, POST", "/v1/features/chat": "GET, PATCH", "/v1/plans": "GET, POST", "/v1/plans/pro": "GET, PATCH",
	"/v1/subscriptions/a": "GET", "/v1/subscriptions/a/change": "POST", "/v1/subscriptions/a/cancel": "POST",
	"/v1/subscription-checkout": "POST", "/v1/topup-checkout": "POST", "/v1/billing-portal": "POST",
	"/v1/wallets": "GET, POST", "/v1/wallets/a": "GET", "/v1/wallets/a%2Fb": "GET",
	"/v1/wallets/a/billing-period": "PATCH", "/v1/deposits": "GET, POST", "/v1/check": "POST", "/v1/events": "POST",
}

func TestUnroutedPaths(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	anybody := tn.with("")
	t.Run("an unknown path is a 404 for everybody, by whatever method", func(t *testing.T) {
		for _, target := range unknownPaths {
			for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"} {
				for _, c := range []client{tn.in(t), anybody.in(t)} {
					c.send(request{method: method, target: target}).refused("not_found")
				}
			}
		}
	})
	t.Run("a path that is known takes its methods and names them", func(t *testing.T) {
		for target, allowed := range knownPaths {
			for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "BREW"} {
				got := anybody.in(t).send(request{method: method, target: target})
				if strings.Contains(allowed, method) {
					if got.status == 405 || got.status == 404 {
						t.Errorf("%s: %d", got, got.status)
					}
					continue
				}
				got.refused("method_not_allowed")
				if header := got.header.Get("Allow"); header != allowed {
					t.Errorf("%s: allowed are %q, want %q", got, header, allowed)
				}
			}
		}
	})
	t.Run("a HEAD is a method like others", func(t *testing.T) {
		got := tn.in(t).send(request{method: http.MethodHead, target: "/v1/credits"}).is(405)
		if header := got.header.Get("Allow"); header != "GET, POST" {
			t.Errorf("allowed are %q", header)
		}
	})
}
