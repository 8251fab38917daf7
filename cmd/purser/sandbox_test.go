package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestTheSandboxHasAnAddressAndAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	p := startProduct(t, "PURSER_SANDBOX_ADDR=127.0.0.1:0")
	test := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	live := p.newKey(t, "--org", "Acme", "--app", "Shop", "--live", "--preset", "setup")
	printed := func(args ...string) (string, error) {
		var out, diagnostics bytes.Buffer
		err := run(t.Context(), append([]string{"sandbox", "key"}, args...), slices.Clone(p.environ), &out, &diagnostics)
		return out.String(), err
	}
	text, err := printed("--json", "--app", test.AppID)
	if err != nil {
		t.Fatal(err)
	}
	var shown struct{ URL, Key, Version string }
	if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Version != "2024-06-20" || !strings.HasPrefix(shown.URL, "http://127.0.0.1:") {
		t.Fatalf("it prints %s", text)
	}
	if text, err := printed("--app", test.AppID); err != nil || !strings.Contains(text, "Secret key   "+shown.Key+"\n") {
		t.Errorf("for people it prints %s, %v", text, err)
	}
	for name, args := range map[string][]string{"a live application": {"--app", live.AppID}, "none": nil, "an unknown one": {"--app", "app_00000000000000000000000000"}} {
		if text, err := printed(args...); err == nil || strings.Contains(text, "sk_test") {
			t.Errorf("for %s it prints %q, %v", name, text, err)
		}
	}

	var root string
	eventually(t, "the log names the address", func() bool {
		for _, address := range listening.FindAllString(p.log.String(), -1) {
			if root = "http://" + address; root != p.base {
				return true
			}
		}
		return false
	})
	caller{t, root, shown.Key}.call(http.MethodGet, "/v1/account", "", http.StatusOK)
	caller{t, p.base, shown.Key}.call(http.MethodGet, "/sandbox/stripe/v1/account", "", http.StatusOK)
	caller{t, root, "sk_test_other"}.call(http.MethodGet, "/v1/account", "", http.StatusUnauthorized)
}

func TestASandboxThatIsOffIsNotThere(t *testing.T) {
	t.Parallel()
	p := startProduct(t, "PURSER_SANDBOX=off", "PURSER_SANDBOX_ADDR=127.0.0.1:0")
	key := p.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	c := caller{t, p.base, key.Secret}
	for _, path := range []string{"/sandbox/stripe/v1/account", "/sandbox/apps/" + key.AppID + "/clock", "/sandbox/apps/" + key.AppID + "/checkout/cs_test_x"} {
		response, err := http.Get(p.base + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %d", path, response.StatusCode)
		}
	}
	c.call(http.MethodPost, "/v1/credits", `{"key": "tokens", "name": "Tokens", "unit": "token"}`, http.StatusCreated)
	refused := c.call(http.MethodPost, "/v1/topup-checkout", `{"identity": "ada", "creditKey": "tokens", "amountNanocredits": "1000000000", "amountCents": 1000,
		"currency": "usd", "idempotencyKey": "k", "successUrl": "http://shop.test/", "cancelUrl": "http://shop.test/"}`, http.StatusUnprocessableEntity)
	if !strings.Contains(refused["message"].(string), "sandbox is turned off") {
		t.Errorf("a test application is told %v", refused)
	}
	if err := run(t.Context(), []string{"sandbox", "key", "--app", key.AppID}, slices.Clone(p.environ), new(bytes.Buffer), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "turned off") {
		t.Errorf("its key: %v", err)
	}
}
