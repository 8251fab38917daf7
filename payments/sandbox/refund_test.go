package sandbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
)

// paidTopup is a single payment with the card, as a charge.
func (r *harness) paidTopup(cents int64, card string) *stripe.Charge {
	r.Helper()
	session := r.topup(cents)
	r.pay(session.URL, card)
	return r.session(session.ID, "payment_intent.latest_charge").PaymentIntent.LatestCharge
}

func (r *harness) charge(id string) *stripe.Charge {
	r.Helper()
	return ok[*stripe.Charge](r)(r.api.Charges.Get(id, nil))
}

func TestRefund(t *testing.T) {
	t.Parallel()

	t.Run("adds up, and never passes what was paid", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		charge := r.paidTopup(3000, cardPays)
		r.events()
		give := func(cents int64) error {
			_, err := r.api.Refunds.New(&stripe.RefundParams{Charge: stripe.String(charge.ID), Amount: stripe.Int64(cents)})
			return err
		}
		must(t, give(1000))
		r.wantEvents("charge.refunded", "refund.created")
		must(t, give(500))
		if got := r.charge(charge.ID); got.AmountRefunded != 1500 || got.Refunded {
			t.Errorf("refunded %d", got.AmountRefunded)
		}
		wantRefusal(t, give(1501), http.StatusBadRequest, "", "greater than unrefunded")
		must(t, give(1500))
		if got := r.charge(charge.ID); !got.Refunded {
			t.Error("it is not refunded")
		}
		wantRefusal(t, give(1), http.StatusBadRequest, "charge_already_refunded", "already been refunded")
		list := r.api.Refunds.List(&stripe.RefundListParams{PaymentIntent: stripe.String(charge.PaymentIntent.ID)})
		total := int64(0)
		for list.Next() {
			total += list.Refund().Amount
		}
		if must(t, list.Err()); total != 3000 {
			t.Errorf("the list adds up to %d", total)
		}
	})

	t.Run("fails an hour later with a card that is gone", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		charge := r.paidTopup(3000, cardRefundFails)
		refund := ok[*stripe.Refund](t)(r.api.Refunds.New(&stripe.RefundParams{Charge: stripe.String(charge.ID)}))
		r.events()
		if refund.Status != "succeeded" {
			t.Errorf("it begins %s", refund.Status)
		}
		r.advance(time.Hour)
		r.wantEvents("charge.refund.updated", "refund.updated")
		if got := ok[*stripe.Refund](t)(r.api.Refunds.Get(refund.ID, nil)); got.Status != "failed" || got.FailureReason != "expired_or_canceled_card" {
			t.Errorf("it ends %s", got.Status)
		}
		if got := r.charge(charge.ID); got.AmountRefunded != 0 || got.Refunded {
			t.Errorf("the charge still says %d", got.AmountRefunded)
		}
	})

	t.Run("takes an hour with a slow card", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		charge := r.paidTopup(3000, cardRefundPends)
		refund := ok[*stripe.Refund](t)(r.api.Refunds.New(&stripe.RefundParams{PaymentIntent: stripe.String(charge.PaymentIntent.ID)}))
		if refund.Status != "pending" {
			t.Errorf("it begins %s", refund.Status)
		}
		r.events()
		r.advance(time.Hour)
		r.wantEvents("charge.refund.updated", "refund.updated")
		if got := ok[*stripe.Refund](t)(r.api.Refunds.Get(refund.ID, nil)); got.Status != "succeeded" {
			t.Errorf("it ends %s", got.Status)
		}
	})
}

func TestDispute(t *testing.T) {
	t.Parallel()
	disputeOf := func(r *harness, charge *stripe.Charge) *stripe.Dispute {
		list := r.api.Disputes.List(&stripe.DisputeListParams{Charge: stripe.String(charge.ID)})
		if !list.Next() {
			r.Fatalf("there is no dispute: %v", list.Err())
		}
		return list.Dispute()
	}

	t.Run("follows a payment with the card for it, and takes the money", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		charge := r.paidTopup(3000, cardDisputed)
		r.wantEvents("checkout.session.completed", "charge.dispute.created", "charge.dispute.funds_withdrawn")
		dispute := disputeOf(r, charge)
		if dispute.Status != "needs_response" || len(dispute.BalanceTransactions) != 1 || dispute.Amount != 3000 || !r.charge(charge.ID).Disputed {
			t.Errorf("disputed %+v", dispute)
		}
		_, err := r.api.Refunds.New(&stripe.RefundParams{Charge: stripe.String(charge.ID)})
		wantRefusal(t, err, http.StatusBadRequest, "charge_disputed", "charged back")
		r.control("disputes", `{"checkoutId": "chk_1", "outcome": "won"}`, http.StatusOK)
		r.wantEvents("charge.dispute.closed", "charge.dispute.funds_reinstated")
		if got := disputeOf(r, charge); got.Status != "won" || len(got.BalanceTransactions) != 2 {
			t.Errorf("won %+v", got)
		}
		ok[*stripe.Refund](t)(r.api.Refunds.New(&stripe.RefundParams{Charge: stripe.String(charge.ID)}))
	})

	t.Run("that is an inquiry moves nothing until it escalates", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		charge := r.paidTopup(3000, cardInquired)
		r.wantEvents("checkout.session.completed", "charge.dispute.created")
		if got := disputeOf(r, charge); got.Status != "warning_needs_response" || len(got.BalanceTransactions) != 0 {
			t.Errorf("inquired %+v", got)
		}
		r.control("disputes", `{"checkoutId": "chk_1", "outcome": "open"}`, http.StatusOK)
		r.wantEvents("charge.dispute.updated", "charge.dispute.funds_withdrawn")
		r.control("disputes", `{"checkoutId": "chk_1", "outcome": "lost"}`, http.StatusOK)
		r.wantEvents("charge.dispute.closed")
		if got := disputeOf(r, charge); got.Status != "lost" || len(got.BalanceTransactions) != 1 {
			t.Errorf("lost %+v", got)
		}
		r.control("disputes", `{"checkoutId": "chk_1", "outcome": "won"}`, http.StatusBadRequest)
	})

	t.Run("that is an inquiry can end well without money", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		charge := r.paidTopup(3000, cardInquired)
		r.events()
		r.control("disputes", `{"checkoutId": "chk_1", "outcome": "won"}`, http.StatusOK)
		r.wantEvents("charge.dispute.closed")
		if got := disputeOf(r, charge); got.Status != "warning_closed" || len(got.BalanceTransactions) != 0 {
			t.Errorf("closed %+v", got)
		}
	})
}
