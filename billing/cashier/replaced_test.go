package cashier_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/billing/cashier"
	"purser/billing/sandbox"
	"purser/ids"
	"purser/store"
)

// accounts leads what is meant for Stripe to the world of the key's account, or
// nowhere when the key is not good any more.
type accounts struct {
	*rig
	mu     sync.Mutex
	worlds map[string]ids.ID // by key
	calls  map[string]int    // with each key
}

func (a *accounts) RoundTrip(req *http.Request) (*http.Response, error) {
	key := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	world, good := a.worlds[key]
	a.calls[key]++
	a.mu.Unlock()
	led := req.Clone(req.Context())
	to := must[*url.URL](a.rig)(url.Parse(a.sandbox.StripeURL() + req.URL.Path))
	to.RawQuery = req.URL.RawQuery
	led.URL, led.Host = to, to.Host
	if good {
		led.Header.Set("Authorization", "Bearer "+a.sandbox.Key(world))
	}
	return http.DefaultTransport.RoundTrip(led)
}

func (a *accounts) callsWith(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[key]
}

// revoke has the provider refuse a key from now on.
func (a *accounts) revoke(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.worlds, key)
}

func (a *accounts) connect(key string) {
	a.Helper()
	must[cashier.Connected](a.rig)(a.cashier.Connect(a.Context(), a.scope, cashier.Account{APIKey: key}))
}

const firstKey, secondKey, thirdKey = "sk_test_first", "sk_test_second", "sk_test_third"

// moved is an application that has sold a top-up of thirty million tokens for 30.00
// at one account, and then went to another.
func moved(t *testing.T) (*accounts, cashier.Page) {
	t.Helper()
	t.Parallel()
	r := start(t)
	a := &accounts{rig: r, worlds: map[string]ids.ID{}, calls: map[string]int{}}
	r.second()
	a.worlds[firstKey], a.worlds[secondKey], a.worlds[thirdKey] = r.app.ID, r.elsewhere, r.app.ID
	r.cashier = r.newCashier(func(o *cashier.Options) { o.StripeTransport = a })
	a.connect(firstKey)
	r.credit("tokens")
	page := r.topUp(3000)
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTokens(30*million, 0)
	a.connect(secondKey)
	if connected := must[cashier.Connected](r)(r.cashier.Connection(t.Context(), r.scope)); connected.KeyLastFour != "cond" {
		t.Fatalf("connected is %+v", connected)
	}
	return a, page
}

func TestWhatWasPaidAtAReplacedAccountIsAskedOfThatAccount(t *testing.T) {
	t.Run("when its webhook tells of a refund or a dispute", func(t *testing.T) {
		a, page := moved(t)
		a.refund(page, 1000)
		a.wantTokens(20*million, 0)
		a.dispute(page, "lost")
		a.wantTokens(0, 0)
	})
	t.Run("when no webhook comes, and its list of events has it", func(t *testing.T) {
		a, page := moved(t)
		a.inject(sandbox.Fault{Mischief: sandbox.LoseWebhook, Times: 1000})
		a.refund(page, 1000)
		a.wantTokens(30*million, 0)
		a.advance(6 * time.Minute)
		a.wantTokens(20*million, 0)
	})
	t.Run("when neither has it, and everything is compared", func(t *testing.T) {
		a, page := moved(t)
		a.inject(sandbox.Fault{Mischief: sandbox.LoseWebhook, Times: 1000})
		a.inject(sandbox.Fault{Mischief: sandbox.Limit, Only: "GET /v1/events", Times: 1 << 30})
		a.refund(page, 1000)
		a.advance(25 * time.Hour)
		a.wantTokens(20*million, 0)
	})
	t.Run("when the work is from before it named its account", func(t *testing.T) {
		a, page := moved(t)
		a.inject(sandbox.Fault{Mischief: sandbox.LoseWebhook, Times: 1000})
		a.refund(page, 1000)
		paid := must[[]billing.Payment](a.rig)(a.store.App(a.scope).Payments(t.Context(), "ada", 1))
		a.check(a.store.App(a.scope).Enqueue(t.Context(), store.Work{Kind: store.WorkCharge, Object: paid[0].ChargeID}))
		a.check(a.cashier.Settle(t.Context(), a.app.ID))
		a.wantTokens(20*million, 0)
	})
	t.Run("and is let go of when nothing can be given back any more", func(t *testing.T) {
		a, _ := moved(t)
		a.advance(201 * 24 * time.Hour)
		asked := a.callsWith(firstKey)
		a.advance(2 * 24 * time.Hour)
		if now := a.callsWith(firstKey); now != asked {
			t.Errorf("the account of before was asked %d times more", now-asked)
		}
	})
}

func TestAKeyThatIsRefusedIsForAPersonToSee(t *testing.T) {
	// lockedOut is after a refund that nobody could ask about.
	lockedOut := func(t *testing.T) *accounts {
		a, page := moved(t)
		a.revoke(firstKey)
		a.refund(page, 1000)
		a.wantTokens(30*million, 0)
		return a
	}
	t.Run("by the account and the key", func(t *testing.T) {
		a := lockedOut(t)
		alerts, _, err := a.store.App(a.scope).Alerts(t.Context(), store.Page{Limit: 10}, false)
		a.check(err)
		if len(alerts) != 1 || alerts[0].Kind != billing.KeyRefused || !strings.HasPrefix(alerts[0].ObjectID, "acct_") || !strings.HasSuffix(alerts[0].ObjectID, "irst") {
			t.Errorf("alerts: %+v", alerts)
		}
	})
	t.Run("and is not tried over and over", func(t *testing.T) {
		a := lockedOut(t)
		asked := a.callsWith(firstKey)
		a.advance(5 * time.Hour)
		// The round that reads events begins in this time, and nothing more.
		if more := a.callsWith(firstKey) - asked; more > 1 {
			t.Errorf("it was tried %d times", more)
		}
	})
	t.Run("and all is made up for once the account is connected with another", func(t *testing.T) {
		a := lockedOut(t)
		a.connect(thirdKey)
		a.check(a.cashier.Settle(t.Context(), a.app.ID))
		a.wantTokens(20*million, 0)
	})
}
