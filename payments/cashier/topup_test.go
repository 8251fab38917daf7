package cashier_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
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
)

func TestScenario41_APaidTopUpIsCreditedOnce(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	if sold := r.callsTo("POST /v1/checkout/sessions")[0].Get("line_items[0][price_data][product_data][name]"); sold != "0.03 tokens" {
		t.Errorf("the bill says %q", sold)
	}
	r.wantTokens(0, 0)
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTokens(30*million, 0)
	r.controlSandbox("webhooks", `{"replay": 50}`)
	r.settle()
	r.wantTokens(30*million, 0)
	if got := r.deposits(); len(got) != 1 || got[0].IdempotencyKey != nil {
		t.Errorf("ada was given %+v", got)
	}
}

func TestScenario42_ABankDebitIsCreditedWhenItArrives(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	r.pay(page.URL, bankSucceeds)
	r.settle()
	r.wantTokens(0, 0)
	r.wantTopUp(page.ID, billing.TopUpProcessing)
	r.advance(4 * 24 * time.Hour)
	r.wantTokens(30*million, 0)
	r.wantTopUp(page.ID, billing.TopUpPaid)

	t.Run("and never when it fails", func(t *testing.T) {
		page := r.topUp(3000)
		r.pay(page.URL, bankFails)
		r.advance(4 * 24 * time.Hour)
		r.wantTokens(30*million, 0)
		r.wantTopUp(page.ID, billing.TopUpFailed)
	})
}

func TestScenario43_ALostWebhookIsFoundInTime(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	r.dropWebhooks.Store(true)
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTokens(0, 0)
	r.advance(6 * time.Minute)
	r.wantTokens(30*million, 0)
}

func TestScenario45_AnExpiredTopUpIsOver(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	r.advance(24 * time.Hour)
	r.wantTopUp(page.ID, billing.TopUpExpired)
	r.wantTokens(0, 0)
	_, _, _ = r.submit(page.URL, url.Values{"card": {cardPays}})
	r.settle()
	r.wantTokens(0, 0)
}

func TestTopUpsThatAreNotSold(t *testing.T) {
	r := shop(t)
	ask := func(change func(*billing.TopUpRequest)) error {
		request := r.topUpRequest(3000)
		change(&request)
		_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, request, newKey())
		return err
	}
	wantFault(t, ask(func(q *billing.TopUpRequest) { q.Amount = 0 }), fault.AmountTooSmall)
	wantFault(t, ask(func(q *billing.TopUpRequest) { q.AmountCents = 49 }), fault.AmountTooSmall)
	wantFault(t, ask(func(q *billing.TopUpRequest) { q.CreditKey = "gold" }), fault.CreditNotFound)
	r.plan("closed", 1500, noTopUps)
	r.subscribe("closed", cardPays)
	wantFault(t, ask(func(*billing.TopUpRequest) {}), fault.TopupsDisabled)
}

func TestARefusedTopUpCreatesNoWalletAndNoCustomer(t *testing.T) {
	r := shop(t)
	ask := func(change func(*billing.TopUpRequest), want fault.Code) {
		t.Helper()
		request := r.topUpRequest(3000)
		change(&request)
		_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, request, newKey())
		wantFault(t, err, want)
		if made := len(r.callsTo("POST /v1/customers")); made != 0 {
			t.Errorf("%d customers were created", made)
		}
	}
	ask(func(q *billing.TopUpRequest) { q.CreditKey = "gold" }, fault.CreditNotFound)
	ask(func(q *billing.TopUpRequest) { q.Amount = 0 }, fault.AmountTooSmall)
	_, err := r.store.App(r.scope).Wallet(t.Context(), "ada")
	wantFault(t, err, fault.WalletNotFound)
	r.deposit(metering.MaxAmount)
	ask(func(*billing.TopUpRequest) {}, fault.BalanceOverflow)
	r.hold(metering.MaxBalances)
	r.credit("stars")
	ask(func(q *billing.TopUpRequest) { q.CreditKey = "stars" }, fault.TooManyBalances)
}

func TestTheSameKeyGivesTheSameTopUp(t *testing.T) {
	r := shop(t)
	key := newKey()
	first, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key)
	r.check(err)
	again, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key)
	r.check(err)
	if first != again {
		t.Errorf("%v became %v", first, again)
	}
	_, err = r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(4000), key)
	wantFault(t, err, fault.IdempotencyConflict)
}

func TestScenario44_AnAmountThatWasNotAskedForIsSetAside(t *testing.T) {
	r := shop(t)
	page := r.topUp(3000)
	sent := r.callsTo("POST /v1/checkout/sessions")[0]
	sent.Set("line_items[0][price_data][unit_amount]", "100")
	cheaper := r.provider("/v1/checkout/sessions", sent)
	r.pay(cheaper["url"].(string), cardPays)
	r.settle()
	r.wantTokens(0, 0)
	r.wantTopUp(page.ID, billing.TopUpSetAside)
	alerts, _, err := r.store.Payments(r.scope).Alerts(t.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	if len(alerts) != 1 || alerts[0].Kind != billing.AmountMismatch {
		t.Errorf("alerts: %+v", alerts)
	}
}

func TestCreditsWithoutRoomAreLeftToAPerson(t *testing.T) {
	r := shop(t)
	const nearlyAll = 9_999_999_999_999_999_999 - 20*million
	request := r.topUpRequest(3000)
	request.Amount = nearlyAll
	page := must[cashier.Page](r)(r.cashier.TopUpCheckout(t.Context(), r.scope, request, newKey()))
	full := r.topUp(3000) // while there is room
	r.pay(page.URL, cardPays)
	r.pay(full.URL, cardPays)
	r.subscribe("basic", cardPays)
	r.wantTokens(nearlyAll+10*million, 0)
	alerts, _, err := r.store.Payments(r.scope).Alerts(t.Context(), store.Page{Limit: 10}, true)
	r.check(err)
	if len(alerts) != 1 || alerts[0].Kind != billing.BalanceFull || alerts[0].Identity != "ada" {
		t.Errorf("alerts: %+v", alerts)
	}
	if failing := must[[]queue.Job](r)(r.store.Queue(r.scope).FailingJobs(t.Context(), 10)); len(failing) != 0 {
		t.Errorf("it is tried again and again: %+v", failing)
	}
	// What never came in is not taken back.
	r.refund(full, 3000)
	r.settle()
	r.wantTokens(nearlyAll+10*million, 0)
}

func TestARefusedPageDelaysNoOther(t *testing.T) {
	r := shop(t)
	request := r.topUpRequest(3000)
	request.Currency = "kpw" // which the provider does not charge in
	_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, request, newKey())
	wantFault(t, err, fault.ProviderRefused)
	list, _, err := r.store.Payments(r.scope).Checkouts(t.Context(), payments.CheckoutPage{Page: store.Page{Limit: 10}})
	r.check(err)
	if len(list) != 1 || list[0].State != string(billing.TopUpFailed) {
		t.Errorf("it stays as %+v", list)
	}
}

// leaseOf is the name of an identity's lease.
func leaseOf(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "identity:" + hex.EncodeToString(sum[:])
}

// thief takes the lease of each request for a page, which is then refused.
type thief struct {
	r    *harness
	once sync.Once
}

func (w *thief) RoundTrip(request *http.Request) (*http.Response, error) {
	refused := false
	if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/checkout/sessions") {
		w.once.Do(func() {
			refused = true
			w.r.stealLease(time.Millisecond)
		})
	}
	if refused {
		return refusal(request), nil
	}
	return http.DefaultTransport.RoundTrip(request)
}

func refusal(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(`{"error": {"type": "invalid_request_error", "message": "No."}}`)),
	}
}

// refuser refuses requests for a page, which the provider never sees.
type refuser struct{}

func (refuser) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/checkout/sessions") {
		return refusal(request), nil
	}
	return http.DefaultTransport.RoundTrip(request)
}

// What is not closed is not over: a caller who was told that it is would be surprised
// by what recovery does.
func TestARefusalThatCouldNotBeStoredIsNotAnswered(t *testing.T) {
	r := shop(t)
	node := r.newCashier(func(o *cashier.Options) { o.SandboxTransport = &thief{r: r} })
	key := newKey()
	_, err := node.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key)
	if err == nil || fault.Is(err, fault.ProviderRefused) {
		t.Errorf("the caller is told %v", err)
	}
	r.advance(2 * time.Minute)
	page := must[cashier.Page](r)(r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key))
	r.pay(page.URL, cardPays)
	r.settle()
	r.wantTokens(30*million, 0)
}

// failedTopUp is a top-up that the provider refused, and its key.
func (r *harness) failedTopUp() (key string) {
	r.Helper()
	key = newKey()
	r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/checkout/sessions"})
	_, err := r.cashier.TopUpCheckout(r.Context(), r.scope, r.topUpRequest(3000), key)
	wantFault(r, err, fault.ProviderRefused)
	return key
}

// wantNotRepeated repeats a failed top-up, which must be refused before a page is opened.
func (r *harness) wantNotRepeated(key string, code fault.Code) {
	r.Helper()
	before := len(r.callsTo("POST /v1/checkout/sessions"))
	_, err := r.cashier.TopUpCheckout(r.Context(), r.scope, r.topUpRequest(3000), key)
	wantFault(r, err, code)
	if after := len(r.callsTo("POST /v1/checkout/sessions")); after != before {
		r.Error("a page was opened")
	}
}

// deleteCustomer deletes ada's customer at the provider, whose webhook arrives.
func (r *harness) deleteCustomer() {
	r.Helper()
	r.askProvider(http.MethodDelete, "/v1/customers/"+r.callsTo("POST /v1/checkout/sessions")[0].Get("customer"), nil)
	r.settle()
}

// What another customer pays would be set aside.
func TestAnInterruptedTopUpIsNotSoldToAnotherCustomer(t *testing.T) {
	t.Parallel()
	for _, byJob := range []bool{false, true} {
		t.Run(fmt.Sprintf("resumed by the job: %t", byJob), func(t *testing.T) {
			r, key := shop(t), newKey()
			r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/checkout/sessions"})
			_, err := r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key)
			wantFault(t, err, fault.ProviderUnavailable)
			r.deleteCustomer()
			before := len(r.callsTo("POST /v1/checkout/sessions"))
			if byJob {
				r.advance(2 * time.Minute)
			}
			if opened := len(r.callsTo("POST /v1/checkout/sessions")) - before; opened != 0 {
				t.Errorf("the job opened %d pages", opened)
			}
			r.wantNotRepeated(key, fault.OperationInProgress)
			page := r.topUp(3000)
			r.pay(page.URL, cardPays)
			r.settle()
			r.wantTokens(30*million, 0)
		})
	}
}

func TestAFailedTopUpIsDecidedAgain(t *testing.T) {
	t.Parallel()
	t.Run("nothing changed", func(t *testing.T) {
		r, key := shop(t), newKey()
		node := r.newCashier(func(o *cashier.Options) { o.SandboxTransport = &refuser{} })
		_, err := node.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key)
		wantFault(t, err, fault.ProviderRefused)
		page := must[cashier.Page](r)(r.cashier.TopUpCheckout(t.Context(), r.scope, r.topUpRequest(3000), key))
		r.pay(page.URL, cardPays)
		r.settle()
		r.wantTokens(30*million, 0)
	})
	t.Run("the customer was deleted at the provider", func(t *testing.T) {
		r := shop(t)
		key := r.failedTopUp()
		r.deleteCustomer()
		r.wantNotRepeated(key, fault.OperationInProgress)
	})
	t.Run("the plan has no top-ups", func(t *testing.T) {
		r := shop(t)
		key := r.failedTopUp()
		r.plan("closed", 1500, noTopUps)
		r.subscribe("closed", cardPays)
		r.wantNotRepeated(key, fault.TopupsDisabled)
	})
	t.Run("the balance has no room", func(t *testing.T) {
		r := shop(t)
		key := r.failedTopUp()
		request := r.topUpRequest(3000)
		request.Amount = 9_999_999_999_999_999_999 - 20*million
		page := must[cashier.Page](r)(r.cashier.TopUpCheckout(t.Context(), r.scope, request, newKey()))
		r.pay(page.URL, cardPays)
		r.settle()
		r.wantNotRepeated(key, fault.BalanceOverflow)
	})
	t.Run("the account was replaced", func(t *testing.T) {
		a := twoAccounts(t)
		key := a.failedTopUp()
		a.connect(secondKey)
		a.wantNotRepeated(key, fault.OperationInProgress)
	})
	t.Run("the sandbox was replaced", func(t *testing.T) {
		r := shop(t)
		a := &accounts{harness: r, byKey: map[string]ids.ID{}, calls: map[string]int{}}
		r.second()
		a.byKey[secondKey] = r.secondAccount
		r.cashier = r.newCashier(func(o *cashier.Options) { o.StripeTransport = a })
		key := r.failedTopUp()
		a.connect(secondKey)
		a.wantNotRepeated(key, fault.OperationInProgress)
	})
}

// Under the lease of the identity of before, another operation of the wallet could run at
// the same time.
func TestAnOperationOfARenamedWalletIsNotResumedUnderItsOldIdentity(t *testing.T) {
	r := shop(t)
	key := r.failedTopUp()
	_, _, err := r.store.App(r.scope).Rename(t.Context(), store.Rename{ID: ids.New(), From: "ada", To: "eve", IdempotencyKey: newKey(), CreatedAt: r.now()})
	r.check(err)
	r.wantNotRepeated(key, fault.OperationInProgress)
}
