package cashier_test

import (
	"net/http"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store"
	"purser/store/storetest"
)

// A change that could not be carried out at once is carried out later on the
// prices of then, or not at all.
func TestAFreeSubscriptionIsNeverQueuedForAPlanThatCosts(t *testing.T) {
	r := shop(t)
	r.plan("free", 0)
	r.plan("mini", 0, grants("tokens", 500*million))
	r.changed("free")
	r.changed("pro") // on a page that stays open
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "/expire"})
	_, err := r.change("mini")
	wantFault(t, err, fault.ProviderUnavailable)

	expensive := int64(5000)
	_, err = r.store.App(r.scope).UpdatePlan(t.Context(), "mini", billing.PlanPatch{AmountCents: &expensive})
	r.check(err)
	r.advance(10 * time.Minute)
	r.advance(40 * 24 * time.Hour)
	r.wantOn("free", metering.StatusActive)
	r.wantTokens(0, 0)
}

// The provider may never say that a page was paid or has expired. It is asked
// when the page must be over.
func TestAPageIsLookedAtThoughNoEventTellsOfIt(t *testing.T) {
	t.Parallel()
	for claim, pays := range map[string]bool{"one that was paid is credited": true, "one that was not paid is over": false} {
		t.Run(claim, func(t *testing.T) {
			r := shop(t)
			r.dropWebhooks.Store(true)
			r.inject(sandbox.Fault{Kind: sandbox.Limit, Times: 100_000, Only: "GET /v1/events"})
			page := r.topUp(1000)
			want, tokens := billing.TopUpExpired, metering.Amount(0)
			if pays {
				r.pay(page.URL, cardPays)
				want, tokens = billing.TopUpPaid, 30*million
			}
			r.advance(24 * time.Hour)
			r.wantTopUp(page.ID, want)
			r.wantTokens(tokens, 0)
		})
	}
}

// What the provider will not undo, a person has to.
func TestARefundThatIsRefusedIsSeen(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	second := r.provider("/v1/checkout/sessions", r.callsTo("POST /v1/checkout/sessions")[0])
	r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/refunds"})
	r.pay(page.URL, cardPays)
	r.pay(second["url"].(string), cardPays)
	r.settle()
	alerts, _, err := r.store.Payments(r.scope).Alerts(t.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	seen := map[billing.AlertKind]string{}
	for _, alert := range alerts {
		seen[alert.Kind] = alert.Identity
	}
	if len(alerts) != 2 || seen[billing.ActionRefused] != "ada" || seen[billing.DuplicateSubscription] != "ada" {
		t.Errorf("alerts: %+v", alerts)
	}
	r.wantOn("basic", metering.StatusActive)
	r.wantTokens(10*million, 0)
}

// A refund of ours has no caller who could send it again.
func TestServerErrorsDoNotEndARefund(t *testing.T) {
	r := shop(t)
	page := r.checkout("basic")
	second := r.provider("/v1/checkout/sessions", r.callsTo("POST /v1/checkout/sessions")[0])
	r.inject(sandbox.Fault{Kind: sandbox.Fail, Times: 12, Only: "POST /v1/refunds"})
	r.pay(page.URL, cardPays)
	r.pay(second["url"].(string), cardPays)
	r.settle()
	storetest.Exec(t, storetest.URL(t), `UPDATE provider_ops SET attempt = 100 WHERE app_id = $1 AND state = 'running'`, r.app.ID.String())
	for range 4 {
		r.advance(time.Hour)
	}
	r.wantCollected(1000)
	r.wantAlerts(billing.DuplicateSubscription)
	r.wantNothingFailing()
}

// A customer that was deleted at the provider is created again, also while
// the provider still remembers the call that made the first one.
func TestADeletedCustomerCanBuyAgain(t *testing.T) {
	r := shop(t)
	r.topUp(1000)
	first := r.callsTo("POST /v1/checkout/sessions")[0].Get("customer")
	request := must[*http.Request](r)(http.NewRequestWithContext(t.Context(), http.MethodDelete, r.sandbox.StripeURL()+"/v1/customers/"+first, nil))
	request.Header.Set("Authorization", "Bearer "+r.sandbox.Key(r.app.ID))
	response := must[*http.Response](r)(r.http.Client().Do(request))
	r.check(response.Body.Close())
	r.settle()
	page := r.topUp(1000)
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTopUp(page.ID, billing.TopUpPaid)
	r.wantTokens(30*million, 0)
}

// A request that was given up may be repeated, but what it meant then is not done
// to what has become of the subscription since.
func TestARepeatedRequestIsDecidedAgain(t *testing.T) {
	givenUp := func(r *harness) (key string) {
		r.plan("max", 9900, grants("tokens", 1000*million))
		s := r.subscribe("basic", cardPays)
		key = newKey()
		r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/" + s.ProviderID})
		_, err := r.upgradeWith(key)
		wantFault(r, err, fault.ProviderUnavailable)
		r.advance(11 * time.Minute)
		return key
	}
	t.Run("an upgrade does not cut a more expensive period short", func(t *testing.T) {
		r := shop(t)
		key := givenUp(r)
		r.changed("max")
		r.settle()
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.OperationInProgress)
		r.settle()
		r.wantOn("max", metering.StatusActive)
		r.wantTokens(1010*million, 0)
	})
	t.Run("an upgrade does not go against a cancellation", func(t *testing.T) {
		r := shop(t)
		key := givenUp(r)
		must[billing.Subscription](r)(r.cancel(true))
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.CancellationScheduled)
		r.wantOn("basic", metering.StatusActive)
	})
	t.Run("an upgrade is not charged without room for its credits", func(t *testing.T) {
		r := shop(t)
		key := givenUp(r)
		r.deposit(metering.MaxAmount - 20*million)
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.BalanceOverflow)
		r.wantOn("basic", metering.StatusActive)
		r.wantCollected(1000)
	})
	t.Run("nor is one that was cut off", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/" + s.ProviderID})
		_, err := r.upgradeWith(newKey())
		wantFault(t, err, fault.ProviderUnavailable)
		r.deposit(metering.MaxAmount - 20*million)
		r.advance(2 * time.Minute)
		r.wantOn("basic", metering.StatusActive)
		r.wantCollected(1000)
	})
	t.Run("an upgrade that may have been charged is finished without room", func(t *testing.T) {
		r := shop(t)
		s := r.subscribe("basic", cardPays)
		way := &unanswered{path: "/v1/subscriptions/" + s.ProviderID}
		r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = way })
		key := newKey()
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.ProviderUnavailable)
		r.deposit(metering.MaxAmount - 20*million)
		r.check(way.release())
		if got := must[billing.Subscription](r)(r.upgradeWith(key)); got.Terms.PlanKey != "pro" {
			t.Errorf("the answer is on %s", got.Terms.PlanKey)
		}
	})
	t.Run("a checkout does not sell a second subscription", func(t *testing.T) {
		r := shop(t)
		key := newKey()
		r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/checkout/sessions"})
		_, err := r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
		wantFault(t, err, fault.ProviderRefused)
		r.subscribe("pro", cardPays)
		r.advance(25 * time.Hour)
		_, err = r.cashier.SubscriptionCheckout(t.Context(), r.scope, r.checkoutRequest("basic"), key)
		wantFault(t, err, fault.SubscriptionExists)
	})
}

// A page of a failed sale is opened by the same key only while a new request would open
// one, at the account where the application sells now.
func TestAFailedSaleOfAPlanIsDecidedAgain(t *testing.T) {
	t.Parallel()
	inactive := false
	sales := map[string]struct {
		before func(*harness)
		sell   func(r *harness, key string) error
	}{
		"a checkout": {
			func(*harness) {},
			func(r *harness, key string) error {
				_, err := r.cashier.SubscriptionCheckout(r.Context(), r.scope, r.checkoutRequest("pro"), key)
				return err
			},
		},
		"a checkout that replaces a free subscription": {
			func(r *harness) {
				r.plan("gift", 0)
				r.changed("gift")
			},
			func(r *harness, key string) error {
				_, err := r.upgradeWith(key)
				return err
			},
		},
	}
	for name, sale := range sales {
		failed := func(r *harness) (key string) {
			sale.before(r)
			key = newKey()
			r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/checkout/sessions"})
			wantFault(r, sale.sell(r, key), fault.ProviderRefused)
			return key
		}
		wantRefused := func(r *harness, key string, code fault.Code) {
			r.Helper()
			before := len(r.callsTo("POST /v1/checkout/sessions"))
			wantFault(r, sale.sell(r, key), code)
			if opened := len(r.callsTo("POST /v1/checkout/sessions")) - before; opened != 0 {
				r.Errorf("%d pages were opened", opened)
			}
		}
		t.Run(name+" is sold when nothing changed", func(t *testing.T) {
			r, key := shop(t), newKey()
			sale.before(r)
			node := r.cashier
			// The provider never saw the first call, whose answer it would repeat.
			r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = &refuser{} })
			wantFault(t, sale.sell(r, key), fault.ProviderRefused)
			r.cashier = node
			r.check(sale.sell(r, key))
		})
		t.Run(name+" is not sold at an account that was replaced", func(t *testing.T) {
			a := twoAccounts(t)
			a.plan("pro", 2900, grants("tokens", 100*million))
			key := failed(a.harness)
			a.connect(secondKey)
			a.settle()
			wantRefused(a.harness, key, fault.OperationInProgress)
			a.check(sale.sell(a.harness, newKey()))
		})
		t.Run(name+" is not sold when the plan is inactive", func(t *testing.T) {
			r := shop(t)
			key := failed(r)
			r.patchPlan("pro", billing.PlanPatch{Active: &inactive})
			r.settle()
			wantRefused(r, key, fault.PlanInactive)
		})
		t.Run(name+" is not sold to a wallet without room", func(t *testing.T) {
			r := shop(t)
			key := failed(r)
			r.deposit(metering.MaxAmount - 20*million)
			wantRefused(r, key, fault.BalanceOverflow)
		})
	}
}

func TestAFailedUpgradeOnAPageIsDecidedAgain(t *testing.T) {
	t.Parallel()
	failed := func(r *harness) (key string) {
		r.Helper()
		key = newKey()
		node := r.cashier
		r.cashier = r.newCashier(func(o *cashier.Options) { o.SandboxTransport = &refuser{} })
		_, err := r.upgradeWith(key)
		wantFault(r, err, fault.ProviderRefused)
		r.cashier = node
		return key
	}
	t.Run("it is sold when nothing changed", func(t *testing.T) {
		r, _ := byBank(t)
		must[billing.Subscription](r)(r.upgradeWith(failed(r)))
		r.wantPending("pro", true)
	})
	t.Run("it is not sold when the plan is inactive", func(t *testing.T) {
		r, _ := byBank(t)
		key, inactive := failed(r), false
		r.patchPlan("pro", billing.PlanPatch{Active: &inactive})
		r.settle()
		_, err := r.upgradeWith(key)
		wantFault(t, err, fault.PlanInactive)
	})
}

// Of an identity's requests the last one counts. One before it that was cut off is
// not carried out afterwards, by whom ever.
func TestTheLastRequestCounts(t *testing.T) {
	for name, again := range map[string]func(*harness, string){
		"when the one before is found left behind": func(r *harness, _ string) { r.advance(2 * time.Minute) },
		"when its caller asks again": func(r *harness, key string) {
			_, err := r.upgradeWith(key)
			wantFault(r, err, fault.OperationInProgress)
			r.settle()
		},
	} {
		// cutOff is an upgrade to "pro" that did not get as far as the provider.
		cutOff := func(t *testing.T) (r *harness, key string) {
			r = shop(t)
			r.plan("max", 9900, grants("tokens", 1000*million))
			s := r.subscribe("basic", cardPays)
			key = newKey()
			r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/" + s.ProviderID})
			_, err := r.upgradeWith(key)
			wantFault(r, err, fault.ProviderUnavailable)
			return r, key
		}
		t.Run("a more expensive plan stays paid for "+name, func(t *testing.T) {
			r, key := cutOff(t)
			r.changed("max")
			again(r, key)
			r.wantOn("max", metering.StatusActive)
			r.wantTokens(1010*million, 0)
		})
		t.Run("a cancellation stays "+name, func(t *testing.T) {
			r, key := cutOff(t)
			must[billing.Subscription](r)(r.cancel(true))
			again(r, key)
			if s := r.wantOn("basic", metering.StatusActive); !s.CancelAtPeriodEnd {
				t.Error("it goes on")
			}
			r.wantTokens(10*million, 0)
		})
		t.Run("a request to stay on the plan cancels it "+name, func(t *testing.T) {
			r, key := cutOff(t)
			r.changed("basic")
			again(r, key)
			r.wantOn("basic", metering.StatusActive)
			r.wantTokens(10*million, 0)
			_, err := r.change("basic")
			wantFault(t, err, fault.AlreadyOnPlan)
		})
		t.Run("and of two that were cut off, the second is carried out "+name, func(t *testing.T) {
			r, key := cutOff(t)
			r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/"})
			_, err := r.change("max")
			wantFault(t, err, fault.ProviderUnavailable)
			again(r, key)
			r.advance(2 * time.Minute)
			r.wantOn("max", metering.StatusActive)
			r.wantTokens(1010*million, 0)
		})
	}
}

// A request that was executed and paid, and interrupted before its answer, brings
// what was paid for, though another one has come after it. Its caller is told so: an
// answer that refuses says that nothing was charged.
func TestAPaidRequestCountsThoughAnotherCame(t *testing.T) {
	for name, askAtOnce := range map[string]bool{"when it is found left behind": false, "when its caller asks again at once": true} {
		t.Run(name, func(t *testing.T) { paidAndOvertaken(t, askAtOnce) })
	}
}

func paidAndOvertaken(t *testing.T, askAtOnce bool) {
	r := shop(t)
	r.plan("max", 9900, grants("tokens", 1000*million))
	s := r.subscribe("basic", cardPays)
	r.idle.Store(true)
	r.dropWebhooks.Store(true)
	update := "POST /v1/subscriptions/" + s.ProviderID
	r.inject(sandbox.Fault{Kind: sandbox.DropAfter, Only: update})
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: update})
	key := newKey()
	_, err := r.upgradeWith(key)
	wantFault(t, err, fault.ProviderUnavailable)
	r.wantTokens(10*million, 0)
	_, err = r.change("max")
	wantFault(t, err, fault.OperationInProgress) // the refusal was of the transport's second request

	r.advance(4 * time.Minute)
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: update})
	_, err = r.change("max")
	wantFault(t, err, fault.ProviderUnavailable)
	if askAtOnce {
		if answer := must[billing.Subscription](r)(r.upgradeWith(key)); answer.Terms.PlanKey != "pro" {
			t.Errorf("the answer is on %s", answer.Terms.PlanKey)
		}
	}

	r.idle.Store(false)
	r.advance(2 * time.Minute)
	r.wantOn("max", metering.StatusActive)
	r.wantTokens(1110*million, 0)
	must[billing.Subscription](r)(r.upgradeWith(key))
	r.settle()
	r.wantOn("max", metering.StatusActive)
	r.wantTokens(1110*million, 0)
}

// Stripe lives in the present. An application that went ahead in the sandbox
// would date everything wrong there.
func TestAnApplicationInTheFutureIsNotConnectedToStripe(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.advance(400 * 24 * time.Hour)
	r.cashier = r.newCashier(func(o *cashier.Options) { o.StripeTransport = asStripe{r} })
	_, err := r.cashier.Connect(t.Context(), r.scope, cashier.Account{APIKey: stripeKey})
	wantFault(t, err, fault.InvalidRequest)
}
