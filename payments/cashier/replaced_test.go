package cashier_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

// accounts leads what is meant for Stripe to the account of the key, or
// nowhere when the key is not good any more.
type accounts struct {
	*harness
	mu     sync.Mutex
	byKey  map[string]ids.ID
	calls  map[string]int    // with each key
	before func(path string) // is called before each call; nil for nothing
}

func (a *accounts) RoundTrip(req *http.Request) (*http.Response, error) {
	key := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	sandbox, good := a.byKey[key]
	a.calls[key]++
	before := a.before
	a.mu.Unlock()
	if before != nil {
		before(req.URL.Path)
	}
	led := req.Clone(req.Context())
	to := must[*url.URL](a.harness)(url.Parse(a.sandbox.StripeURL() + req.URL.Path))
	to.RawQuery = req.URL.RawQuery
	led.URL, led.Host = to, to.Host
	if good {
		led.Header.Set("Authorization", "Bearer "+a.sandbox.Key(sandbox))
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
	delete(a.byKey, key)
}

// allow has the provider accept a key of the first account again.
func (a *accounts) allow(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byKey[key] = a.app.ID
}

func (a *accounts) connect(key string) {
	a.Helper()
	must[cashier.Connected](a.harness)(a.cashier.Connect(a.Context(), a.scope, cashier.Account{APIKey: key}))
}

const firstKey, secondKey, thirdKey = "sk_test_first", "sk_test_second", "sk_test_third"

// twoAccounts is an application that is connected to one account and may go to
// another.
func twoAccounts(t *testing.T) *accounts {
	t.Helper()
	t.Parallel()
	r := start(t)
	a := &accounts{harness: r, byKey: map[string]ids.ID{}, calls: map[string]int{}}
	r.second()
	a.byKey[firstKey], a.byKey[secondKey], a.byKey[thirdKey] = r.app.ID, r.secondAccount, r.app.ID
	r.cashier = r.newCashier(func(o *cashier.Options) { o.StripeTransport = a })
	a.connect(firstKey)
	r.credit("tokens")
	return a
}

// moved is an application that has sold a top-up of thirty million tokens for 30.00
// at one account, and then went to another.
func moved(t *testing.T) (*accounts, cashier.Page) {
	t.Helper()
	a := twoAccounts(t)
	page := a.topUp(3000)
	a.pay(page.URL, cardPays)
	a.settle()
	a.wantTokens(30*million, 0)
	a.connect(secondKey)
	a.wantKey("cond")
	return a, page
}

// wantKey is about the account that the application sells at.
func (a *accounts) wantKey(lastFour string) {
	a.Helper()
	if connected := must[cashier.Connected](a.harness)(a.cashier.Connection(a.Context(), a.scope)); connected.KeyLastFour != lastFour {
		a.Fatalf("connected is %+v", connected)
	}
}

// latePayer is an application that went to another account while a page was open at
// the one before, which was taken to be over, and is paid.
func latePayer(t *testing.T) *accounts {
	t.Helper()
	a := twoAccounts(t)
	a.plan("basic", 1000, grants("tokens", 10*million))
	page := a.checkout("basic")
	app := a.store.Payments(a.scope)
	change := must[billing.Change](a.harness)(app.Change(t.Context(), page.ID))
	fence, _, err := a.store.Queue(a.scope).Lease(t.Context(), "test", ids.New(), time.Minute)
	a.check(err)
	over := billing.ProviderSession{ID: change.SessionID, Status: billing.SessionExpired, URL: change.PaymentURL, ExpiresAt: change.ExpiresAt}
	must[billing.Change](a.harness)(app.ApplyCheckout(t.Context(), fence, change.ID, over, a.now(), nil))
	a.connect(secondKey)
	a.wantKey("cond")
	a.pay(page.URL, cardPays)
	a.settle()
	a.wantOn("basic", metering.StatusActive)
	a.wantTokens(10*million, 0)
	return a
}

func TestASaleThatIsUnderWayIsMadeAtTheNewAccount(t *testing.T) {
	a := twoAccounts(t)
	var once sync.Once
	a.before = func(path string) {
		if path == "/v1/customers" { // the account was chosen, and nothing is stored yet
			once.Do(func() { a.connect(secondKey) })
		}
	}
	key := newKey()
	_, err := a.cashier.TopUpCheckout(t.Context(), a.scope, a.topUpRequest(3000), key)
	wantFault(t, err, fault.OperationInProgress)
	page := must[cashier.Page](a.harness)(a.cashier.TopUpCheckout(t.Context(), a.scope, a.topUpRequest(3000), key))
	soldAt := storetest.Value[ids.ID](t, storetest.URL(t), `SELECT connection_id FROM topups WHERE app_id = $1 AND id = $2`, a.scope.AppID, page.ID)
	if current := must[payments.Connection](a.harness)(a.store.PaymentAccounts(a.scope).Connection(t.Context())); soldAt != current.ID {
		t.Error("it was sold at the account that was replaced")
	}
}

// refusing refuses to create checkout sessions, which the account does not see.
type refusing struct{ *accounts }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/checkout/sessions") {
		return refusal(req), nil
	}
	return r.accounts.RoundTrip(req)
}

// A sale that was interrupted, or failed before its first call, is retried after its
// account was replaced.
func TestNothingIsSoldAtAReplacedAccount(t *testing.T) {
	const sessions = "POST /v1/checkout/sessions"
	upgrade := func(a *accounts, key string) error {
		_, err := a.upgradeWith(key)
		return err
	}
	gift := func(a *accounts) string {
		a.plan("gift", 0)
		a.changed("gift")
		return sessions
	}
	for name, c := range map[string]struct {
		before func(*accounts) (call string) // returns the call that sells
		sell   func(a *accounts, key string) error
		want   fault.Code
	}{
		"a checkout": {func(*accounts) string { return sessions }, func(a *accounts, key string) error {
			_, err := a.cashier.SubscriptionCheckout(a.Context(), a.scope, a.checkoutRequest("pro"), key)
			return err
		}, fault.OperationInProgress},
		"a top-up": {func(*accounts) string { return sessions }, func(a *accounts, key string) error {
			_, err := a.cashier.TopUpCheckout(a.Context(), a.scope, a.topUpRequest(3000), key)
			return err
		}, fault.OperationInProgress},
		"a checkout that replaces a free subscription": {gift, upgrade, fault.OperationInProgress},
		"an upgrade": {func(a *accounts) string {
			return "POST /v1/subscriptions/" + a.subscribe("basic", cardPays).ProviderID
		}, upgrade, fault.ProviderRefused},
	} {
		begin := func(t *testing.T) (a *accounts, key, call string) {
			a = twoAccounts(t)
			a.plan("basic", 1000, grants("tokens", 10*million))
			a.plan("pro", 2900, grants("tokens", 100*million))
			return a, newKey(), c.before(a)
		}
		// A sale that is under way keeps its account, which was replaced beside it.
		replaced := func(a *accounts) {
			storetest.Exec(a, storetest.URL(a), `UPDATE provider_connections SET replaced_at = $2 WHERE app_id = $1`, a.app.ID.String(), a.now())
		}
		t.Run(name+" that was interrupted", func(t *testing.T) {
			a, key, call := begin(t)
			a.inject(sandbox.Fault{Kind: sandbox.Limit, Only: call})
			wantFault(t, c.sell(a, key), fault.ProviderUnavailable)
			replaced(a)
			before := len(a.callsTo(call))
			wantFault(t, c.sell(a, key), c.want)
			if sent := len(a.callsTo(call)) - before; sent != 0 {
				t.Errorf("it was sent %d times", sent)
			}
		})
		if c.want != fault.OperationInProgress {
			continue // an upgrade keeps its account connected
		}
		t.Run(name+" that failed is sold once its account was connected again", func(t *testing.T) {
			a, key, call := begin(t)
			node := a.cashier
			a.cashier = a.newCashier(func(o *cashier.Options) { o.StripeTransport = refusing{a} })
			wantFault(t, c.sell(a, key), fault.ProviderRefused)
			a.cashier = node
			a.connect(secondKey)
			a.connect(thirdKey)
			a.settle()
			a.check(c.sell(a, key))
			checkouts, _, err := a.store.Payments(a.scope).Checkouts(t.Context(), payments.CheckoutPage{Page: store.Page{Limit: 1}})
			a.check(err)
			a.pay(checkouts[0].URL, cardPays)
			a.settle()
			if tokens, _ := a.balance("tokens"); tokens == 0 || len(a.callsTo(call)) != 1 {
				t.Errorf("ada holds %s after %d calls", tokens, len(a.callsTo(call)))
			}
		})
	}
	t.Run("a checkout that failed before its first call", func(t *testing.T) {
		a := twoAccounts(t)
		a.plan("pro", 2900, grants("tokens", 100*million))
		gift(a)
		key := newKey()
		a.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/customers", Times: 2})
		wantFault(t, upgrade(a, key), fault.ProviderRefused)
		a.connect(secondKey)
		a.wantKey("cond")
		a.settle()
		before := a.callsWith(secondKey)
		wantFault(t, upgrade(a, key), fault.OperationInProgress)
		if sent := a.callsWith(secondKey) - before; sent != 0 {
			t.Errorf("the new account was called %d times", sent)
		}
	})
	t.Run("an upgrade that was charged before is finished", func(t *testing.T) {
		a := twoAccounts(t)
		a.plan("basic", 1000, grants("tokens", 10*million))
		a.plan("pro", 2900, grants("tokens", 100*million))
		s := a.subscribe("basic", cardPays)
		a.idle.Store(true)
		a.dropWebhooks.Store(true)
		key, update := newKey(), "POST /v1/subscriptions/"+s.ProviderID
		a.inject(sandbox.Fault{Kind: sandbox.DropAfter, Only: update})
		a.inject(sandbox.Fault{Kind: sandbox.Limit, Only: update})
		wantFault(t, upgrade(a, key), fault.ProviderUnavailable)
		storetest.Exec(t, storetest.URL(t), `UPDATE provider_connections SET replaced_at = $2 WHERE app_id = $1`, a.app.ID.String(), a.now())
		if got := must[billing.Subscription](a.harness)(a.upgradeWith(key)); got.Terms.PlanKey != "pro" {
			t.Errorf("the answer is on %s", got.Terms.PlanKey)
		}
	})
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
		a.dropWebhooks.Store(true)
		a.refund(page, 1000)
		a.wantTokens(30*million, 0)
		a.advance(6 * time.Minute)
		a.wantTokens(20*million, 0)
	})
	t.Run("when neither has it, and everything is compared", func(t *testing.T) {
		a, page := moved(t)
		a.dropWebhooks.Store(true)
		a.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "GET /v1/events", Times: 1 << 30})
		a.refund(page, 1000)
		a.advance(25 * time.Hour)
		a.wantTokens(20*million, 0)
	})
	t.Run("when the work is from before it named its account", func(t *testing.T) {
		a, page := moved(t)
		a.dropWebhooks.Store(true)
		a.refund(page, 1000)
		paid := paymentsOf(t, storetest.URL(t), a.scope, "ada")
		a.check(a.store.Queue(a.scope).Enqueue(t.Context(), queue.Job{Kind: queue.JobCharge, Object: paid[0].ChargeID}))
		a.check(a.cashier.DrainAll(t.Context(), a.app.ID))
		a.wantTokens(20*million, 0)
	})
	t.Run("and is retired when nothing can be refunded any more", func(t *testing.T) {
		a, _ := moved(t)
		a.advance(201 * 24 * time.Hour)
		asked := a.callsWith(firstKey)
		a.advance(2 * 24 * time.Hour)
		if now := a.callsWith(firstKey); now != asked {
			t.Errorf("the account of before was asked %d times more", now-asked)
		}
	})
}

// reconnected is an application that went to another account and came back, so that its
// first account has two endpoints. Webhooks reach only the earlier one, when the test calls
// deliverEarlier.
type reconnected struct {
	*accounts
	earlier string // the connection that was replaced
}

func reconnect(t *testing.T) *reconnected {
	t.Helper()
	a := twoAccounts(t)
	first := must[payments.Connection](a.harness)(a.store.PaymentAccounts(a.scope).Connection(t.Context()))
	a.connect(secondKey)
	a.connect(thirdKey)
	a.wantKey("hird")
	a.dropWebhooks.Store(true)
	return &reconnected{a, first.ID.Format("con")}
}

func (a *reconnected) deliverEarlier() {
	a.Helper()
	a.dropWebhooks.Store(false)
	delivered := 0
	for _, webhook := range a.arrived {
		if webhook.connection == a.earlier {
			a.check(a.cashier.ReceiveWebhook(a.Context(), webhook.connection, webhook.signature, webhook.body))
			delivered++
		}
	}
	if delivered == 0 {
		a.Error("no webhook came to the earlier endpoint")
	}
	a.dropWebhooks.Store(true)
	a.settle()
}

func TestTheEarlierEndpointOfAReconnectedAccountReportsItsSales(t *testing.T) {
	t.Run("a top-up is credited after the earlier connection would be retired", func(t *testing.T) {
		a := reconnect(t)
		a.advance(201 * 24 * time.Hour)
		page := a.topUp(3000)
		a.pay(page.URL, cardPays)
		a.settle()
		a.wantTokens(0, 0)
		a.deliverEarlier()
		a.wantTokens(30*million, 0)
	})
	t.Run("a top-up of the second time is refunded after both connections were replaced", func(t *testing.T) {
		a := reconnect(t)
		page := a.topUp(3000)
		a.pay(page.URL, cardPays)
		a.settle()
		a.deliverEarlier()
		a.wantTokens(30*million, 0)
		earlier := must[ids.ID](a.harness)(ids.Parse("con", a.earlier))
		storetest.Exec(t, storetest.URL(t), `UPDATE provider_connections SET replaced_at = $3 WHERE app_id = $1 AND id = $2 AND replaced_at IS NOT NULL`,
			a.scope.AppID, earlier, a.now()-(201*24*time.Hour).Milliseconds())
		a.connect(secondKey)
		a.wantKey("cond")
		a.refund(page, 1000)
		a.deliverEarlier()
		a.wantTokens(20*million, 0)
	})
	t.Run("a subscription keeps the account from being replaced", func(t *testing.T) {
		a := reconnect(t)
		a.plan("basic", 1000, grants("tokens", 10*million))
		page := a.checkout("basic")
		a.pay(page.URL, cardPays)
		a.settle()
		a.deliverEarlier()
		sub := a.wantOn("basic", metering.StatusActive)
		if current := must[payments.Connection](a.harness)(a.store.PaymentAccounts(a.scope).Connection(t.Context())); sub.ConnectionID != current.ID {
			t.Error("it was stored with the connection that was replaced")
		}
		if connected := must[cashier.Connected](a.harness)(a.cashier.Connect(t.Context(), a.scope, cashier.Account{APIKey: secondKey})); !connected.Former {
			t.Errorf("the account was replaced: %+v", connected)
		}
		a.wantKey("hird")
	})
	t.Run("a subscription of an earlier connection keeps it from being replaced too", func(t *testing.T) {
		a := latePayer(t)
		sub := a.subscription()
		a.connect(thirdKey)
		a.wantKey("hird")
		if current := must[payments.Connection](a.harness)(a.store.PaymentAccounts(a.scope).Connection(t.Context())); sub.ConnectionID == current.ID {
			t.Error("it is not of an earlier connection")
		}
		if connected := must[cashier.Connected](a.harness)(a.cashier.Connect(t.Context(), a.scope, cashier.Account{APIKey: secondKey})); !connected.Former {
			t.Errorf("the account was replaced: %+v", connected)
		}
		current := must[payments.Connection](a.harness)(a.store.PaymentAccounts(a.scope).Connection(t.Context()))
		if current.KeyLastFour != "hird" {
			t.Errorf("connected is the key …%s", current.KeyLastFour)
		}
		other := current
		other.ID, other.AccountID = ids.New(), "acct_other"
		_, err := a.store.PaymentAccounts(a.scope).PutConnection(t.Context(), other, a.now())
		wantFault(t, err, fault.ProviderInUse)
	})
	t.Run("its events are read by one connection", func(t *testing.T) {
		a, _ := moved(t)
		a.connect(thirdKey)
		a.topUp(3000)
		a.advance(26 * time.Hour)
		read := a.callsWith(thirdKey)
		a.advance(6 * time.Minute)
		if reads := a.callsWith(thirdKey) - read; reads != 1 {
			t.Errorf("the account was called %d times in six minutes, want 1", reads)
		}
	})
}

func TestARefundAtARetiredAccountFails(t *testing.T) {
	a, page := moved(t)
	a.advance(201 * 24 * time.Hour)
	a.check(a.requestRefund(page))
	a.settle()
	a.wantRefunded(page, 0, billing.OperationFailed)
	got := must[payments.PaymentRefund](a.harness)(a.store.Payments(a.scope).PaymentRefund(t.Context(), a.paidWith(page)))
	if want := "The payment account was replaced and is no longer used."; got.Error != want {
		t.Errorf("the request says %q", got.Error)
	}
	a.wantAlerts(billing.ActionRefused)
	_, _, err := a.store.App(a.scope).Erase(t.Context(), store.Erasure{ID: ids.New(), Identity: "ada", Reason: "asked", IdempotencyKey: newKey(), CreatedAt: a.now()})
	a.check(err)
}

func TestAnAccountThatIsRefusedIsLeftAsItWas(t *testing.T) {
	a := twoAccounts(t)
	a.topUp(1000)
	endpoints := len(a.callsTo("POST /v1/webhook_endpoints"))
	_, err := a.cashier.Connect(t.Context(), a.scope, cashier.Account{APIKey: secondKey})
	wantFault(t, err, fault.ProviderInUse)
	if made := len(a.callsTo("POST /v1/webhook_endpoints")) - endpoints; made != 0 || endpoints == 0 {
		t.Errorf("%d endpoints were made before, and %d by what was refused", endpoints, made)
	}
	a.wantKey("irst")
}

func TestAReplacedAccountIsNotLetGoOfWhileASubscriptionThereGoesOn(t *testing.T) {
	a := latePayer(t)
	a.advance(240 * 24 * time.Hour)
	if s := a.wantOn("basic", metering.StatusActive); s.Period.End <= a.now() {
		t.Error("its renewals are not followed")
	}
}

// Its last payments can be refunded and disputed for half a year.
func TestAReplacedAccountIsFollowedAfterItsLastSubscriptionEnded(t *testing.T) {
	a := latePayer(t)
	a.advance(240 * 24 * time.Hour)
	sub := a.wantOn("basic", metering.StatusActive)
	a.askProvider(http.MethodDelete, "/v1/subscriptions/"+sub.ProviderID, nil)
	a.settle()
	a.wantNone()
	a.advance(150 * 24 * time.Hour)
	tokens, _ := a.balance("tokens")
	paid := paymentsOf(t, storetest.URL(t), a.scope, "ada")
	a.provider("/v1/refunds", url.Values{"charge": {paid[len(paid)-1].ChargeID}})
	a.settle()
	a.wantTokens(tokens-10*million, 0)
	a.advance(51 * 24 * time.Hour)
	asked := a.callsWith(firstKey)
	a.advance(2 * 24 * time.Hour)
	if now := a.callsWith(firstKey); now != asked {
		t.Errorf("the account was called %d times more", now-asked)
	}
}

func TestAKeyThatIsRefusedIsForAPersonToSee(t *testing.T) {
	// lockedOut is after a refund that could not be read.
	lockedOut := func(t *testing.T) *accounts {
		a, page := moved(t)
		a.revoke(firstKey)
		a.refund(page, 1000)
		a.wantTokens(30*million, 0)
		return a
	}
	t.Run("by the account and the key", func(t *testing.T) {
		a := lockedOut(t)
		alerts, _, err := a.store.Payments(a.scope).Alerts(t.Context(), store.Page{Limit: 10}, false)
		a.check(err)
		if len(alerts) != 1 || alerts[0].Kind != billing.KeyRefused || !strings.HasPrefix(alerts[0].ObjectID, "acct_") || !strings.HasSuffix(alerts[0].ObjectID, "irst") {
			t.Errorf("alerts: %+v", alerts)
		}
	})
	t.Run("also when it is refused again after it was resolved", func(t *testing.T) {
		a := twoAccounts(t)
		page := a.topUp(3000)
		a.pay(page.URL, cardPays)
		a.settle()
		a.revoke(firstKey)
		a.refund(page, 1000)
		a.resolveAlerts(1)
		a.allow(firstKey)
		a.advance(7 * time.Hour)
		a.resolveAlerts(0)
		later := billing.Alert{Kind: billing.SaleMissing, ObjectID: "cs_later"}
		a.check(a.store.Payments(a.scope).Raise(t.Context(), later, false, a.now()))
		a.revoke(firstKey)
		a.refund(page, 1000)
		alerts, _, err := a.store.Payments(a.scope).Alerts(t.Context(), store.Page{Limit: 10}, false)
		a.check(err)
		if len(alerts) != 2 || alerts[0].Kind != billing.KeyRefused {
			t.Errorf("the newest alert is not about the key: %+v", alerts)
		}
	})
	t.Run("but once for an account that was replaced, which may be closed", func(t *testing.T) {
		a := lockedOut(t)
		a.resolveAlerts(1)
		asked := a.callsWith(firstKey)
		a.advance(7 * time.Hour)
		if a.callsWith(firstKey) == asked {
			t.Error("the key was not tried again")
		}
		a.resolveAlerts(0)
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
	t.Run("and all is made up for with another key, while the account that took its place sells", func(t *testing.T) {
		a := lockedOut(t)
		a.topUp(1000)
		renewed := must[cashier.Connected](a.harness)(a.cashier.Connect(t.Context(), a.scope, cashier.Account{APIKey: thirdKey}))
		if !renewed.Former || renewed.KeyLastFour != "hird" {
			t.Errorf("it answers %+v", renewed)
		}
		a.wantKey("cond")
		a.check(a.cashier.DrainAll(t.Context(), a.app.ID))
		a.wantTokens(20*million, 0)
	})
	t.Run("and all is made up for once the account is connected with another", func(t *testing.T) {
		a := lockedOut(t)
		a.connect(thirdKey)
		a.check(a.cashier.DrainAll(t.Context(), a.app.ID))
		a.wantTokens(20*million, 0)
	})
}
