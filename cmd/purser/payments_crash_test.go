package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/store/storetest"
)

// paymentCrashes is how often the server is killed while all kinds of payment
// operations are under way.
const paymentCrashes = 2

// TestKillsInTheMiddleOfPaymentsHaveOneEffect kills the server while it talks to
// the provider about several identities. After a start each caller repeats what
// it asked for, under the same key, and each thing has happened once.
func TestKillsInTheMiddleOfPaymentsHaveOneEffect(t *testing.T) {
	t.Parallel()
	p := install(t)
	p.start(t)
	s := seller{T: t, program: p, secret: p.createKey(t)}
	s.mustPost("/v1/credits", `{"key": "tokens", "name": "Tokens", "unit": "token"}`)
	for plan, cents := range map[string]int{"basic": 1000, "pro": 2900} {
		s.mustPost("/v1/plans", fmt.Sprintf(`{"key": %q, "name": %q, "amountCents": %d, "currency": "usd", "interval": "month",
			"featureLimits": [], "creditGrants": [{"creditKey": "tokens", "amountNanocredits": "%d"}]}`, plan, plan, cents, cents))
		await(t, "a plan that can be sold", func() bool {
			_, answer := s.ask(http.MethodGet, "/v1/plans/"+plan, "")
			return answer["syncStatus"] == "synced"
		})
	}
	random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
	for round := range paymentCrashes {
		s.round(round, time.Duration(random.Int64N(int64(80*time.Millisecond))))
	}
	p.stop(t)
}

// round has five callers ask for something at once, kills the server in the
// middle, after a delay, and sees what comes of it.
func (s seller) round(n int, delay time.Duration) {
	s.Helper()
	named := func(name string) string { return fmt.Sprintf("%s-%d", name, n) }
	s.subscribe(named("climber"), "basic")
	s.subscribe(named("diver"), "pro")
	s.subscribe(named("leaver"), "pro")
	asked := []*asking{
		{path: "/v1/subscriptions/" + named("climber") + "/change", body: `{"planKey": "pro", "idempotencyKey": "` + named("up") + `"}`},
		{path: "/v1/subscriptions/" + named("diver") + "/change", body: `{"planKey": "basic", "idempotencyKey": "` + named("down") + `"}`},
		{path: "/v1/subscriptions/" + named("leaver") + "/cancel", body: `{"cancelAtPeriodEnd": true, "idempotencyKey": "` + named("end") + `"}`},
		{path: "/v1/subscription-checkout", body: checkoutBody(named("starter"), "basic", named("start"))},
		{path: "/v1/topup-checkout", body: topUpBody(named("saver"), named("save"))},
	}
	s.Logf("round %d: the server is killed after %s", n, delay)
	var sending sync.WaitGroup
	for _, a := range asked {
		sending.Go(func() { s.try(a) })
	}
	<-time.After(delay)
	s.program.kill(s.T)
	sending.Wait()
	s.program.start(s.T)
	for _, a := range asked {
		first := a.answer
		sending.Go(func() {
			s.repeat(a)
			if again := a.answer; first != nil && first["id"] != again["id"] {
				s.Errorf("%s was %v, and is now %v", a.path, first, again)
			}
		})
	}
	sending.Wait()
	s.pay(asked[3].answer)
	s.pay(asked[4].answer)

	for identity, want := range map[string]struct {
		plan    string
		balance int64
	}{
		named("climber"): {"pro", 1000 + 2900}, named("diver"): {"pro", 2900}, named("leaver"): {"pro", 2900},
		named("starter"): {"basic", 1000}, named("saver"): {"", 500},
	} {
		await(s.T, identity+" to have all that was paid for", func() bool { return s.balance(identity) >= want.balance })
		if got := s.balance(identity); got != want.balance {
			s.Errorf("%s holds %d, want %d", identity, got, want.balance)
		}
		_, subscription := s.ask(http.MethodGet, "/v1/subscriptions/"+identity, "")
		if want.plan != "" && subscription["planKey"] != want.plan {
			s.Errorf("%s has %v", identity, subscription)
		}
	}
	if _, diver := s.ask(http.MethodGet, "/v1/subscriptions/"+named("diver"), ""); diver["scheduledChange"] == nil {
		s.Errorf("the downgrade is lost: %v", diver)
	}
	if _, leaver := s.ask(http.MethodGet, "/v1/subscriptions/"+named("leaver"), ""); leaver["cancelAtPeriodEnd"] != true {
		s.Errorf("the cancellation is lost: %v", leaver)
	}
}

// asking is what a caller asks for, and the answer once there is one.
type asking struct {
	path, body string
	answer     map[string]any
}

// seller is a backend that sells through a server that is sometimes down.
type seller struct {
	*testing.T
	program *program
	secret  string
}

// try reports whether there was an answer. While the server is down, or a node
// that died holds the identity's lease, there is none.
func (s seller) try(a *asking) bool {
	status, answer := s.ask(http.MethodPost, a.path, a.body)
	switch {
	case status == http.StatusOK:
		a.answer = answer
		return true
	case status == 0 || status >= http.StatusInternalServerError || answer["error"] == "operation_in_progress":
		return false
	}
	s.Errorf("%s answers %d: %v", a.path, status, answer)
	return true
}

// repeat asks again until there is an answer: at the latest when the dead node's
// lease has run out.
func (s seller) repeat(a *asking) {
	for deadline := time.Now().Add(2 * backWithin); !s.try(a); {
		if time.Now().After(deadline) {
			s.Errorf("%s: no answer for %s", a.path, 2*backWithin)
			return
		}
		<-time.After(50 * time.Millisecond) // it is down: asking faster brings nothing
	}
}

// ask gives the status and the answer; zero when there was none.
func (s seller) ask(method, path, body string) (status int, answer map[string]any) {
	request, err := http.NewRequestWithContext(s.Context(), method, s.program.address()+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return 0, nil
	}
	request.Header.Set("Authorization", "Bearer "+s.secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || json.Unmarshal(bytes.TrimSpace(text), &answer) != nil && response.StatusCode == http.StatusOK {
		return 0, nil
	}
	return response.StatusCode, answer
}

func (s seller) mustPost(path, body string) map[string]any {
	s.Helper()
	status, answer := s.ask(http.MethodPost, path, body)
	if status != http.StatusOK && status != http.StatusCreated {
		s.Fatalf("%s answers %d: %v", path, status, answer)
	}
	return answer
}

func (s seller) subscribe(identity, plan string) {
	s.Helper()
	s.pay(s.mustPost("/v1/subscription-checkout", checkoutBody(identity, plan, "first-"+identity)))
	await(s.T, identity+" to be subscribed", func() bool { return s.balance(identity) > 0 })
}

// pay pays at a page. It lies where the server is now, which may have moved since
// the page was opened.
func (s seller) pay(page map[string]any) {
	s.Helper()
	address, ok := page["url"].(string)
	where, err := url.Parse(address)
	if !ok || err != nil {
		s.Fatalf("there is no page in %v", page)
	}
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.program.address()+where.RequestURI(), strings.NewReader("card=4242424242424242"))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		s.Fatalf("paying answers %d", response.StatusCode)
	}
}

func (s seller) balance(identity string) int64 {
	_, wallet := s.ask(http.MethodGet, "/v1/wallets/"+identity, "")
	balances, _ := wallet["balances"].([]any)
	for _, b := range balances {
		if amount, ok := b.(map[string]any)["amountNanocredits"].(string); ok {
			return parseAmount(amount)
		}
	}
	return 0
}

func checkoutBody(identity, plan, key string) string {
	return fmt.Sprintf(`{"identity": %q, "planKey": %q, "idempotencyKey": %q,
		"successUrl": "https://shop.test/thanks", "cancelUrl": "https://shop.test/back"}`, identity, plan, key)
}

func topUpBody(identity, key string) string {
	return fmt.Sprintf(`{"identity": %q, "creditKey": "tokens", "amountNanocredits": "500", "amountCents": 500, "currency": "usd",
		"idempotencyKey": %q, "successUrl": "https://shop.test/thanks", "cancelUrl": "https://shop.test/back"}`, identity, key)
}
