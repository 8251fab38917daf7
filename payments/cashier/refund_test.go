package cashier_test

import (
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/payments/cashier"
	"purser/store"
	"purser/store/storetest"
)

// paidTopUp is 30 million tokens for 30 dollars.
func paidTopUp(t *testing.T, card string) (*harness, cashier.Page) {
	t.Helper()
	r := shop(t)
	page := r.topUp(3000)
	r.pay(page.URL, card)
	r.settle()
	return r, page
}

func TestScenario46_RefundsTakeBackInProportion(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.wantTokens(30*million, 0)
	r.refund(page, 1000)
	r.wantTokens(20*million, 0)
	r.refund(page, 500)
	r.wantTokens(15*million, 0)
}

func TestScenario47_InAnyOrderAndNumber(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.controlSandbox("webhooks", `{"hold": true}`)
	r.refund(page, 1000)
	r.refund(page, 500)
	r.controlSandbox("webhooks", `{"replay": 20, "shuffle": 7}`)
	r.controlSandbox("webhooks", `{"hold": false}`)
	r.wantTokens(15*million, 0)
}

func TestScenario48_WhatWasSpentIsOwed(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.spend(25 * million)
	r.refund(page, 3000)
	r.wantTokens(0, 25*million)
	r.deposit(10 * million)
	r.wantTokens(0, 15*million)
	r.deposit(20 * million)
	r.wantTokens(5*million, 0)
}

func TestScenario49_AFailedRefundGivesBack(t *testing.T) {
	r, page := paidTopUp(t, cardRefundFails)
	r.refund(page, 1500)
	r.wantTokens(15*million, 0)
	r.advance(2 * time.Hour)
	r.wantTokens(30*million, 0)
}

func TestScenario50_ADisputeHoldsTheMoneyUntilItIsWon(t *testing.T) {
	t.Run("an inquiry takes nothing", func(t *testing.T) {
		r, _ := paidTopUp(t, cardInquired)
		r.wantTokens(30*million, 0)
	})
	t.Run("a dispute takes all, and gives it back when won", func(t *testing.T) {
		r, page := paidTopUp(t, cardPays)
		r.dispute(page, "open")
		r.wantTokens(0, 0)
		r.dispute(page, "won")
		r.wantTokens(30*million, 0)
	})
	t.Run("a lost one stays", func(t *testing.T) {
		r, page := paidTopUp(t, cardPays)
		r.dispute(page, "lost")
		r.wantTokens(0, 0)
		r.advance(24 * time.Hour)
		r.wantTokens(0, 0)
	})
	t.Run("the card that is always disputed", func(t *testing.T) {
		r, _ := paidTopUp(t, cardDisputed)
		r.settle()
		r.wantTokens(0, 0)
	})
}

func TestScenario51_WonAndThenRefunded(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.dispute(page, "open")
	r.dispute(page, "won")
	r.refund(page, 1000)
	r.wantTokens(20*million, 0)
}

func TestScenario52_NeverMoreThanWasPaid(t *testing.T) {
	r, page := paidTopUp(t, cardPays)
	r.refund(page, 2000)
	r.wantTokens(10*million, 0)
	r.dispute(page, "lost")
	r.wantTokens(0, 0)
}

func TestScenario53_EveryCreditOfARenewalGoesInProportion(t *testing.T) {
	r := shop(t)
	r.credit("stars")
	r.plan("both", 2000, grants("tokens", 10*million), grants("stars", 4*million))
	page := r.checkout("both")
	r.pay(page.URL, cardPays)
	r.settle()
	r.refund(page, 500)
	r.wantTokens(7_500_000, 0)
	if stars, _ := r.balance("stars"); stars != 3*million {
		t.Errorf("ada has %s stars", stars)
	}
}

// A payment without credits leaves no trace in the balance when its refund fails.
func TestARefundOfPurserThatFailsLaterRaisesAnAlert(t *testing.T) {
	t.Parallel()
	duplicate := func(t *testing.T) *harness {
		r := shop(t)
		page := r.checkout("basic")
		second := r.provider("/v1/checkout/sessions", r.callsTo("POST /v1/checkout/sessions")[0])
		r.pay(page.URL, cardPays)
		r.pay(second["url"].(string), cardRefundFails)
		r.settle()
		r.wantAlerts(billing.DuplicateSubscription)
		return r
	}
	t.Run("for a duplicate subscription", func(t *testing.T) {
		r := duplicate(t)
		r.advance(2 * time.Hour)
		r.wantAlerts(billing.ActionRefused, billing.DuplicateSubscription)
	})
	t.Run("for a renewal that an upgrade replaced, once", func(t *testing.T) {
		r, _ := renewing(t, "basic", cardRefundFails)
		r.idle.Store(true)
		r.changed("pro")
		r.advance(2 * time.Hour) // the renewal is charged
		r.idle.Store(false)
		r.settle()
		r.wantAlerts()
		r.advance(2 * time.Hour)
		r.wantAlerts(billing.ActionRefused)
		r.resolveAlerts(1)
		r.controlSandbox("webhooks", `{"replay": 50}`)
		r.advance(24 * time.Hour)
		r.resolveAlerts(0)
	})
	t.Run("when it was read only after it had failed", func(t *testing.T) {
		r := duplicate(t)
		storetest.Exec(t, storetest.URL(t), `UPDATE provider_payments SET refunded_cents = 0 WHERE app_id = $1`, r.app.ID.String())
		r.advance(2 * time.Hour)
		r.wantAlerts(billing.ActionRefused, billing.DuplicateSubscription)
	})
	t.Run("but not for a refund that was made elsewhere", func(t *testing.T) {
		r, page := paidTopUp(t, cardRefundFails)
		r.refund(page, 1500)
		r.advance(2 * time.Hour)
		r.wantAlerts()
	})
}

// deposit is credit that the caller gives.
func (r *harness) deposit(amount metering.Amount) {
	r.Helper()
	key := newKey()
	_, _, err := r.store.App(r.scope).Deposit(r.Context(), store.Deposit{
		ID: ids.New(), Identity: "ada", CreditKey: "tokens", Amount: amount, IdempotencyKey: &key, CreatedAt: r.now(),
	})
	r.check(err)
}
