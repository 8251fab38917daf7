package cashier_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
)

// signed is a webhook as the account would send it.
func signed(body []byte, at time.Time, secrets ...string) string {
	header := fmt.Sprint("t=", at.Unix())
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}

// webhookSecret is what the application's webhooks are signed with, and where
// they go.
func (r *harness) webhookSecret() (connection, secret string) {
	r.Helper()
	shown := must[cashier.Connected](r)(r.cashier.Connection(r.Context(), r.scope))
	sandbox := must[sandbox.Connection](r)(r.sandbox.Connect(r.Context(), r.app.ID, shown.WebhookURL, cashier.EventTypes()))
	return shown.WebhookURL[strings.LastIndex(shown.WebhookURL, "/")+1:], sandbox.WebhookSecret
}

// alterWebhooks sets a field of the webhooks that come from now on, which are signed again.
func (r *harness) alterWebhooks(field string, value any) {
	r.Helper()
	_, secret := r.webhookSecret()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alter = func(body []byte) (string, []byte) {
		var event map[string]any
		r.check(json.Unmarshal(body, &event))
		event[field] = value
		altered := must[[]byte](r)(json.Marshal(event))
		return signed(altered, r.clock(), secret), altered
	}
}

func TestScenario56_OnlyWhatTheAccountSignedIsTaken(t *testing.T) {
	r := shop(t)
	connection, secret := r.webhookSecret()
	now := r.freeze()
	body := []byte(`{"id":"evt_1","type":"customer.subscription.updated","livemode":false,"data":{"object":{"id":"sub_nobody","object":"subscription"}}}`)
	large := slices.Concat(body[:len(body)-1], []byte(`,"pad":"`), bytes.Repeat([]byte("x"), 900<<10), []byte(`"}`))
	for name, c := range map[string]struct {
		body   []byte
		header string
		want   error
	}{
		"a good one":              {body, signed(body, now, secret), nil},
		"a large one":             {large, signed(large, now, secret), nil},
		"one without data":        {[]byte(`{"id":"evt_2","type":"v2.core.event","data":null}`), signed([]byte(`{"id":"evt_2","type":"v2.core.event","data":null}`), now, secret), nil},
		"no signature":            {body, "", cashier.ErrBadSignature},
		"another secret":          {body, signed(body, now, "whsec_other"), cashier.ErrBadSignature},
		"an old one":              {body, signed(body, now.Add(-6*time.Minute), secret), cashier.ErrBadSignature},
		"one from the future":     {body, signed(body, now.Add(6*time.Minute), secret), cashier.ErrBadSignature},
		"two times":               {body, fmt.Sprint("t=", now.Unix(), ",", signed(body, now.Add(-time.Hour), secret)), cashier.ErrBadSignature},
		"a changed body":          {append(slices.Clone(body), ' '), signed(body, now, secret), cashier.ErrBadSignature},
		"a signature of old kind": {body, strings.Replace(signed(body, now, secret), "v1=", "v0=", 1), cashier.ErrBadSignature},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.cashier.ReceiveWebhook(t.Context(), connection, c.header, c.body); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	wantFault(t, r.cashier.ReceiveWebhook(t.Context(), ids.New().Format("con"), signed(body, now, secret), body), fault.PathNotFound)
	wantFault(t, r.cashier.ReceiveWebhook(t.Context(), "nonsense", signed(body, now, secret), body), fault.PathNotFound)
	r.settle()
}

func TestScenario57_ASecretCanBeReplaced(t *testing.T) {
	a := twoAccounts(t)
	var connection string
	replace := func(secret string) {
		account := cashier.Account{APIKey: firstKey, WebhookSecret: secret}
		shown := must[cashier.Connected](a.harness)(a.cashier.Connect(t.Context(), a.scope, account))
		connection = shown.WebhookURL[strings.LastIndex(shown.WebhookURL, "/")+1:]
	}
	const old, fresh = "whsec_old", "whsec_fresh"
	replace(old)
	replace(fresh)
	body := []byte(`{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_nobody","object":"invoice"}}}`)
	for _, secrets := range [][]string{{old}, {fresh}, {fresh, old}} {
		a.check(a.cashier.ReceiveWebhook(t.Context(), connection, signed(body, a.clock(), secrets...), body))
	}
	a.clockOffset.Store(int64(25 * time.Hour))
	if err := a.cashier.ReceiveWebhook(t.Context(), connection, signed(body, a.clock(), old), body); !errors.Is(err, cashier.ErrBadSignature) {
		t.Errorf("the old secret is still good: %v", err)
	}
	a.check(a.cashier.ReceiveWebhook(t.Context(), connection, signed(body, a.clock(), fresh), body))
}

func TestScenario58_TheVersionDoesNotMatterAndTheModeDoes(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	r.alterWebhooks("livemode", true)
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTokens(0, 0)
	other := openShop(t)
	page = other.topUp(3000)
	other.alterWebhooks("api_version", "2025-03-31.basil")
	other.pay(page.URL, cardPays)
	other.settle()
	other.wantTokens(30*million, 0)
}

func TestScenario59_AWebhookThatWasNotTakenComesAgain(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	r.setRefusal(errRouteDown)
	r.pay(page.URL, cardPays)
	r.wantTokens(0, 0)
	r.setRefusal(nil)
	r.settle()
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
}

func (r *harness) setRefusal(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}
