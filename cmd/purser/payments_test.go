package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// caller is a backend that uses a running server.
type caller struct {
	*testing.T
	base, key string
}

// call sends a request and gives its answer, which must have the status.
func (c caller) call(method, path, body string, want int) map[string]any {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.Fatal(err)
	}
	if answer.StatusCode != want {
		c.Fatalf("%s %s answers %d, want %d: %s", method, path, answer.StatusCode, want, text)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil && !strings.HasPrefix(string(text), "<") {
		c.Fatalf("%s %s answers %s", method, path, text)
	}
	return object
}

func (c caller) post(path, body string) map[string]any {
	c.Helper()
	return c.call(http.MethodPost, path, body, http.StatusOK)
}

// TestPaymentsBehindAProxy is a server whose public address belongs to a proxy,
// under a path and out of its own reach: it must find itself without it.
func TestPaymentsBehindAProxy(t *testing.T) {
	t.Parallel()
	const public = "https://billing.invalid/purser"
	base, environ := startServer(t, "PURSER_BASE_URL="+public)
	c := caller{t, base, makeKey(t, environ, "Chat", "setup")}
	c.call(http.MethodPost, "/v1/credits", `{"key": "tokens", "name": "Tokens", "unit": "token"}`, http.StatusCreated)
	page := c.post("/v1/topup-checkout", `{"identity": "ann", "creditKey": "tokens", "amountNanocredits": "1000", "amountCents": 500, "currency": "usd",
		"successUrl": "https://shop.test/thanks", "cancelUrl": "https://shop.test/wallet", "idempotencyKey": "one"}`)
	address, ours := strings.CutPrefix(page["url"].(string), public)
	if !ours {
		t.Fatalf("the page is at %s", page["url"])
	}
	paid, err := http.DefaultTransport.RoundTrip(formPost(t, base+address, "card=4242424242424242"))
	if err != nil {
		t.Fatal(err)
	}
	paid.Body.Close()
	if paid.StatusCode != http.StatusSeeOther || paid.Header.Get("Location") != "https://shop.test/thanks" {
		t.Errorf("paying answers %d to %s", paid.StatusCode, paid.Header.Get("Location"))
	}
	balances := c.call(http.MethodGet, "/v1/wallets/ann", "", http.StatusOK)["balances"].([]any)
	if len(balances) != 1 || balances[0].(map[string]any)["amountNanocredits"] != "1000" {
		t.Errorf("the wallet holds %v", balances)
	}
}

func formPost(t *testing.T, address, form string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return request
}

func TestSandboxAccess(t *testing.T) {
	t.Parallel()
	base, environ := startServer(t)
	made := func(args ...string) madeKey {
		t.Helper()
		var out, diagnostics safeBuffer
		if err := run(t.Context(), append([]string{"keys", "create", "--json", "--org", "Acme"}, args...), environ, &out, &diagnostics); err != nil {
			t.Fatalf("%v\n%s", err, diagnostics.String())
		}
		var key madeKey
		if err := json.Unmarshal([]byte(out.String()), &key); err != nil {
			t.Fatal(err)
		}
		return key
	}
	own, reader := made("--app", "Chat", "--preset", "setup"), made("--app", "Chat", "--preset", "read-only")
	live, other := made("--app", "Shop", "--live", "--preset", "setup"), made("--app", "Docs", "--preset", "setup")
	clock := func(app string) string { return "/sandbox/apps/" + app + "/clock" }

	t.Run("is for a key of the application that may write subscriptions", func(t *testing.T) {
		caller{t, base, own.Secret}.call(http.MethodGet, clock(own.AppID), "", http.StatusOK)
		caller{t, base, reader.Secret}.call(http.MethodGet, clock(own.AppID), "", http.StatusForbidden)
		caller{t, base, other.Secret}.call(http.MethodGet, clock(own.AppID), "", http.StatusNotFound)
		caller{t, base, ""}.call(http.MethodGet, clock(own.AppID), "", http.StatusUnauthorized)
	})
	t.Run("is never for a live application", func(t *testing.T) {
		caller{t, base, live.Secret}.call(http.MethodGet, clock(live.AppID), "", http.StatusNotFound)
	})
	t.Run("moves one clock and no other", func(t *testing.T) {
		const day = 24 * 60 * 60 * 1000
		before := caller{t, base, own.Secret}.call(http.MethodGet, clock(own.AppID), "", http.StatusOK)["now"].(float64)
		to, err := json.Marshal(map[string]int64{"advanceTo": int64(before) + 40*day})
		if err != nil {
			t.Fatal(err)
		}
		caller{t, base, own.Secret}.post(clock(own.AppID), string(to))
		if got := (caller{t, base, other.Secret}).call(http.MethodGet, clock(other.AppID), "", http.StatusOK)["now"].(float64); got > before+day {
			t.Errorf("another application's clock shows %f", got)
		}
	})
	t.Run("does not refuse what the API would find too large", func(t *testing.T) {
		form := "description=" + strings.Repeat("a", 40<<10)
		answer, err := http.DefaultTransport.RoundTrip(formPost(t, base+"/sandbox/stripe/v1/customers", form))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized { // and not 413
			t.Errorf("without a key it answers %d", answer.StatusCode)
		}
	})
}
