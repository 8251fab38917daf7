package cashier_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/billing/cashier"
	"purser/billing/sandbox"
	"purser/fault"
	"purser/ids"
	"purser/metering"
)

// history is a life of a subscription. Between its steps a test may do to the
// webhooks what it likes.
func history(r *rig, between func()) {
	r.Helper()
	r.pay(r.checkout("basic").URL, cardPays)
	between()
	r.drainAll()
	topUp := r.topUp(3000)
	r.pay(topUp.URL, cardPays)
	between()
	r.changed("pro")
	between()
	r.changed("basic")
	between()
	r.advance(month)
	between()
	r.refund(topUp, 1000)
	between()
	r.refund(topUp, 500)
	between()
	r.dispute(topUp, "open")
	between()
	r.dispute(topUp, "won")
	between()
	_, err := r.cancel(true)
	r.check(err)
	between()
	r.advance(month)
	r.release()
}

// drainAll does what is due, and delivers nothing.
func (r *rig) drainAll() {
	r.Helper()
	r.release()
	r.steer("webhooks", `{"hold": true}`)
}

// release delivers what was held back, and has it applied.
func (r *rig) release() {
	r.Helper()
	r.steer("webhooks", `{"hold": false}`)
	r.settle()
}

// ledger is all that a history leaves, without ids and times that differ from
// one run to the next.
func (r *rig) ledger() string {
	r.Helper()
	var text strings.Builder
	s, err := r.store.App(r.scope).Subscription(r.Context(), "ada")
	fmt.Fprintln(&text, s.Terms.PlanKey, s.Status, s.CancelAtPeriodEnd, err)
	if s.Scheduled != nil {
		fmt.Fprintln(&text, "scheduled", s.Scheduled.Target.PlanKey)
	}
	if s.Pending != nil {
		fmt.Fprintln(&text, "pending", s.Pending.Target.PlanKey)
	}
	amount, debt := r.balance("tokens")
	fmt.Fprintln(&text, amount, debt)
	var given []string
	for _, d := range r.deposits() {
		given = append(given, d.CreditKey+" "+d.Amount.String())
	}
	slices.Sort(given)
	fmt.Fprintln(&text, given)
	return text.String()
}

func TestScenario54_AnyOrderAndNumberOfWebhooksEndsTheSame(t *testing.T) {
	ordered := shop(t)
	history(ordered, ordered.settle)
	want := ordered.ledger()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := shop(t)
			luck := rand.New(rand.NewPCG(seed, 54))
			r.steer("webhooks", `{"hold": true}`)
			history(r, func() {
				switch luck.IntN(3) {
				case 0: // nothing arrives yet
				case 1:
					r.steer("webhooks", fmt.Sprintf(`{"replay": %d, "shuffle": %d}`, 1+luck.IntN(30), luck.Uint64()))
				case 2:
					r.steer("webhooks", fmt.Sprintf(`{"replay": 40, "shuffle": %d, "hold": false}`, luck.Uint64()))
					r.steer("webhooks", `{"hold": true}`)
				}
			})
			if got := r.ledger(); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

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
func (r *rig) webhookSecret() (connection, secret string) {
	r.Helper()
	shown := must[cashier.Connected](r)(r.cashier.Connection(r.Context(), r.scope))
	world := must[sandbox.Connection](r)(r.sandbox.Connect(r.Context(), r.app.ID, shown.WebhookURL, cashier.EventTypes()))
	return shown.WebhookURL[strings.LastIndex(shown.WebhookURL, "/")+1:], world.WebhookSecrets[0]
}

func TestScenario56_OnlyWhatTheAccountSignedIsTaken(t *testing.T) {
	r := shop(t)
	connection, secret := r.webhookSecret()
	now := time.Now()
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
	r := shop(t)
	connection, old := r.webhookSecret()
	shown, err := r.cashier.Connection(t.Context(), r.scope)
	r.check(err)
	r.check(r.sandbox.RollSecret(t.Context(), r.app.ID, shown.WebhookURL, time.Hour))
	_, fresh := r.webhookSecret()
	if fresh == old {
		t.Fatal("the secret is the same")
	}
	body := []byte(`{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_nobody","object":"invoice"}}}`)
	for _, secrets := range [][]string{{old}, {fresh}, {fresh, old}} {
		r.check(r.cashier.ReceiveWebhook(t.Context(), connection, signed(body, time.Now(), secrets...), body))
	}
	r.advance(2 * time.Hour)
	if err := r.cashier.ReceiveWebhook(t.Context(), connection, signed(body, time.Now(), old), body); !errors.Is(err, cashier.ErrBadSignature) {
		t.Errorf("the old secret is still good: %v", err)
	}
}

func TestScenario58_TheVersionDoesNotMatterAndTheModeDoes(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	r.inject(sandbox.Fault{Mischief: sandbox.LiveWebhook, Times: 100})
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTokens(0, 0)
	other := openShop(t)
	page = other.topUp(3000)
	other.inject(sandbox.Fault{Mischief: sandbox.OtherWebhook, Times: 100})
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

func (r *rig) setRefusal(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}

func TestScenario61_AStaleReadDoesNoHarm(t *testing.T) {
	r := shop(t)
	r.pay(r.checkout("basic").URL, cardPays)
	r.settle()
	s := r.subscription()
	r.inject(sandbox.Fault{Mischief: sandbox.StaleRead, Times: 2, Only: "subscriptions/" + s.ProviderID})
	r.changed("pro")
	r.settle()
	r.advance(time.Hour)
	r.wantOn("pro", metering.StatusActive)
	r.wantTokens(110*million, 0)
}
