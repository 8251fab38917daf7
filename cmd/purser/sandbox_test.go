package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"purser/store/storetest"
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

// A wildcard is no address for links. Though they then lead to this machine, other
// machines reach the server: its sandbox must not send webhooks to programs here.
func TestAServerOnEveryNetworkLinksToThisMachine(t *testing.T) {
	t.Parallel()
	environ := []string{"DATABASE_URL=" + storetest.FreshURL(t), "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey)}
	p := startProcess(t, environ, "--addr", ":0")
	if base := addressIn(p.greeting); !strings.HasPrefix(base, "http://127.0.0.1:") || !strings.Contains(p.greeting, base+"/setup/") {
		t.Fatalf("it greets with %q", p.greeting)
	}
	if !strings.Contains(p.log.String(), "PURSER_BASE_URL is not set") {
		t.Errorf("it logs %s", p.log)
	}
	app := product{environ: environ}.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup").AppID
	var out bytes.Buffer
	if err := run(t.Context(), []string{"sandbox", "key", "--json", "--app", app}, append(environ, "PURSER_ADDR=:9000"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var shown struct{ URL, Key string }
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil || shown.URL != "http://127.0.0.1:9000/sandbox/stripe" {
		t.Errorf("sandbox key prints %s", out.String())
	}
	request := formPost(t, p.base+"/sandbox/stripe/v1/webhook_endpoints", "url=http://localhost:4242/webhook&enabled_events[]=*")
	request.Header.Set("Authorization", "Bearer "+shown.Key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "PURSER_BASE_URL") {
		t.Errorf("a webhook to a program on the server's machine is answered %d: %s, %v", answer.StatusCode, text, err)
	}
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
