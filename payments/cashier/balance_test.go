package cashier_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/sandbox"
	"purser/store/storetest"
	"purser/store/verify"
)

// customerID is ada at the provider.
func (r *harness) customerID() string {
	r.Helper()
	return r.askProvider(http.MethodGet, "/v1/subscriptions/"+r.subscription().ProviderID, nil)["customer"].(string)
}

// creditCustomer puts money on ada's balance at the provider.
func (r *harness) creditCustomer(cents int64) {
	r.Helper()
	r.provider("/v1/customers/"+r.customerID()+"/balance_transactions", url.Values{
		"amount": {strconv.FormatInt(-cents, 10)}, "currency": {"usd"},
	})
}

// wantCustomerCredit is what is left on ada's balance at the provider.
func (r *harness) wantCustomerCredit(cents int64) {
	r.Helper()
	got := r.askProvider(http.MethodGet, "/v1/customers/"+r.customerID(), nil)["balance"].(float64)
	if int64(-got) != cents {
		r.Errorf("the customer's balance is %v cents, want %d", -got, cents)
	}
}

// withCredit is ada on basic with money on her balance, which pays for the upgrade to
// pro that she makes while the renewal is a draft.
func withCredit(t *testing.T, cents int64) *harness {
	t.Helper()
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.creditCustomer(cents)
	r.advanceTo(s.Period.End + (10 * time.Minute).Milliseconds())
	r.changed("pro")
	return r
}

func TestABalanceThatPaidForAReplacedRenewalIsCreditedBack(t *testing.T) {
	t.Run("when it paid for all of it", func(t *testing.T) {
		r := withCredit(t, 5000)
		r.advance(2 * time.Hour)
		r.wantOn("pro", metering.StatusActive)
		r.wantCollected(1000)
		r.wantCustomerCredit(5000 - 2900)
		r.wantTokens(110*million, 0)
		r.wantAlerts()
		r.advance(month)
		r.wantCollected(1000 + 800)
		r.wantCustomerCredit(0)
	})
	t.Run("when the card paid for the rest", func(t *testing.T) {
		r := withCredit(t, 3400)
		r.advance(2 * time.Hour)
		r.wantCollected(1000)
		r.wantCustomerCredit(3400 - 2900)
		r.wantTokens(110*million, 0)
		r.wantAlerts()
	})
	t.Run("once, however often the answer is lost", func(t *testing.T) {
		r := withCredit(t, 5000)
		// All attempts of the first call (net/http repeats each of the three once), so that
		// another call has to find what it did.
		r.inject(sandbox.Fault{Kind: sandbox.DropAfter, Only: "POST /v1/customers/" + r.customerID() + "/balance_transactions", Times: 6})
		r.advance(3 * time.Hour)
		r.wantCustomerCredit(5000 - 2900)
		r.wantAlerts()
	})
	t.Run("with an alert when the provider refuses it", func(t *testing.T) {
		r := withCredit(t, 5000)
		r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "/balance_transactions", Times: 100})
		r.advance(2 * time.Hour)
		r.wantCustomerCredit(5000 - 2900 - 1000)
		r.wantAlerts(billing.BalanceSpent)
	})
}

func TestARefundLeavesWhatTheBalanceHasPaid(t *testing.T) {
	r := shop(t)
	s := r.subscribe("basic", cardPays)
	r.creditCustomer(900)
	r.advanceTo(s.Period.End + (2 * time.Hour).Milliseconds())
	r.wantCollected(1000 + 100)
	r.wantTokens(20*million, 0)
	renewal := paymentsOf(r.T, storetest.URL(r.T), r.scope, "ada")[0]
	if renewal.AmountCents != 100 || renewal.BalanceCents != 900 {
		t.Errorf("%d cents are of the card and %d of the balance", renewal.AmountCents, renewal.BalanceCents)
	}
	r.provider("/v1/refunds", url.Values{"charge": {renewal.ChargeID}})
	r.settle()
	r.wantTokens(19*million, 0)
	_, err := r.store.Payments(r.scope).RequestRefund(t.Context(), renewal.Source, "Once more", r.now())
	wantFault(t, err, fault.PaymentNotRefundable)
	if verified := must[verify.Verification](r)(r.store.Verification(r.scope).Verify(t.Context(), verify.Options{})); len(verified.Differences) > 0 {
		t.Errorf("the books differ: %v", verified.Differences)
	}
}
