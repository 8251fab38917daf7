package cashier_test

import (
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/payments/cashier"
	"purser/payments/sandbox"
	"purser/store/payments"
)

// paidWith is the source of a top-up's payment.
func (r *harness) paidWith(page cashier.Page) billing.Source {
	r.Helper()
	return billing.Source{Kind: billing.Session, ID: must[payments.Checkout](r)(r.store.Payments(r.scope).CheckoutByID(r.Context(), page.ID)).SessionID}
}

func (r *harness) requestRefund(page cashier.Page) error {
	r.Helper()
	_, err := r.store.Payments(r.scope).RequestRefund(r.Context(), r.paidWith(page), "Bought by mistake", r.now())
	return err
}

func (r *harness) wantRefunded(page cashier.Page, cents int64, state billing.OperationState) {
	r.Helper()
	got := must[payments.PaymentRefund](r)(r.store.Payments(r.scope).PaymentRefund(r.Context(), r.paidWith(page)))
	if got.RefundedCents != cents || got.State != state {
		r.Errorf("%d cents are refunded and the request is %q, want %d and %q", got.RefundedCents, got.State, cents, state)
	}
}

func (r *harness) wantConfirming(page cashier.Page, want bool) {
	r.Helper()
	got := must[payments.PaymentRefund](r)(r.store.Payments(r.scope).PaymentRefund(r.Context(), r.paidWith(page)))
	if got.Confirming != want {
		r.Errorf("the provider is still to confirm the refund: %t", got.Confirming)
	}
}

// A refund is in progress from its request until the provider's state after it was read,
// without a gap in which the page would say that it did not go through.
func TestARefundIsInProgressUntilItIsConfirmed(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.wantConfirming(page, false)
	r.check(r.requestRefund(page))
	r.dropWebhooks.Store(true)
	got := must[payments.PaymentRefund](r)(r.store.Payments(r.scope).PaymentRefund(t.Context(), r.paidWith(page)))
	request := must[payments.OperationRecord](r)(r.store.Payments(r.scope).Operation(t.Context(), billing.OperationAction, string(billing.RefundCharge)+":"+got.ChargeID))
	r.check(r.cashier.Recover(t.Context(), r.scope, request.ID))
	r.wantRefunded(page, 0, billing.OperationDone)
	r.wantConfirming(page, true)
	r.settle()
	r.wantRefunded(page, 3000, billing.OperationDone)
	r.wantConfirming(page, false)
}

func TestARefundThatFailedSaysWhyInPlainWords(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/refunds"})
	r.check(r.requestRefund(page))
	r.settle()
	got := must[payments.PaymentRefund](r)(r.store.Payments(r.scope).PaymentRefund(t.Context(), r.paidWith(page)))
	if got.State != billing.OperationFailed || got.Error != "Your card was declined." {
		t.Errorf("the request is %q: %q", got.State, got.Error)
	}
}

func TestARefundThatFailsAgainIsListedAgain(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	for range 2 {
		r.inject(sandbox.Fault{Kind: sandbox.Decline, Only: "POST /v1/refunds"})
		r.check(r.requestRefund(page))
		r.settle()
		r.wantRefunded(page, 0, billing.OperationFailed)
		r.resolveAlerts(1)
	}
}

func TestARequestedRefundReturnsMoneyAndTakesCreditsBack(t *testing.T) {
	t.Parallel()
	t.Run("what was spent is owed, and a second request refunds nothing", func(t *testing.T) {
		r, page := paidTopUp(t, cardPays)
		r.spend(25 * million)
		r.check(r.requestRefund(page))
		r.check(r.requestRefund(page)) // a form that was sent twice
		r.wantRefunded(page, 0, billing.OperationRunning)
		r.settle()
		r.wantTokens(0, 25*million)
		r.wantRefunded(page, 3000, billing.OperationDone)
		if err := r.requestRefund(page); !fault.Is(err, fault.PaymentNotRefundable) {
			t.Errorf("a refunded payment: %v", err)
		}
		r.settle()
		if calls := r.callsTo("POST /v1/refunds"); len(calls) != 1 {
			t.Errorf("%d refunds were sent", len(calls))
		}
	})
	t.Run("only the rest of a payment is refunded", func(t *testing.T) {
		r, page := paidTopUp(t, cardPays)
		r.refund(page, 1000)
		r.wantTokens(20*million, 0)
		r.check(r.requestRefund(page))
		r.settle()
		r.wantTokens(0, 0)
		r.wantRefunded(page, 3000, billing.OperationDone)
	})
	t.Run("a disputed payment is not refunded", func(t *testing.T) {
		r, page := paidTopUp(t, cardPays)
		r.dispute(page, "open")
		if err := r.requestRefund(page); !fault.Is(err, fault.PaymentNotRefundable) {
			t.Errorf("a disputed payment: %v", err)
		}
	})
	t.Run("a refund whose answer was lost is sent once", func(t *testing.T) {
		r, page := paidTopUp(t, cardPays)
		r.inject(sandbox.Fault{Kind: sandbox.DropAfter, Only: "POST /v1/refunds"})
		r.check(r.requestRefund(page))
		r.settle()
		r.advance(time.Hour)
		r.wantTokens(0, 0)
		r.wantRefunded(page, 3000, billing.OperationDone)
	})
	t.Run("a refund that failed later gives back, and can be requested again", func(t *testing.T) {
		r, page := paidTopUp(t, cardRefundFails)
		r.check(r.requestRefund(page))
		r.settle()
		r.wantTokens(0, 0)
		r.wantConfirming(page, false)
		r.advance(2 * time.Hour)
		r.wantTokens(30*million, 0)
		r.wantConfirming(page, false)
		r.check(r.requestRefund(page))
		r.settle()
		r.wantTokens(0, 0)
		if calls := r.callsTo("POST /v1/refunds"); len(calls) != 2 {
			t.Errorf("%d refunds were sent", len(calls))
		}
	})
}
