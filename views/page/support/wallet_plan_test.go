package support

import (
	"strings"
	"testing"

	"purser/billing"
	"purser/metering"
)

// Days are counted from 1 January 1970, in milliseconds.
const day = 86_400_000

func TestWalletPlanNamesWhatComesNext(t *testing.T) {
	t.Parallel()
	renderWith := func(status metering.SubscriptionStatus, p WalletPlan) string {
		t.Helper()
		var out strings.Builder
		head := WalletHead{
			Path: "/wallets/x", Plan: &p,
			Subscription: &SubscriptionRow{PlanName: "Team", Status: status, Period: metering.Period{Start: 0, End: 31 * day}},
		}
		if err := walletPlan(head).Render(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if err := walletAllowances(head).Render(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	render := func(p WalletPlan) string { t.Helper(); return renderWith(metering.StatusActive, p) }
	price := billing.Price{AmountCents: 2900, Currency: "usd", Interval: billing.Month}

	t.Run("the price and the renewal", func(t *testing.T) {
		if got := render(WalletPlan{Price: price}); !strings.Contains(got, "29.00 USD / month") || !strings.Contains(got, "Renews on") || !strings.Contains(got, "1 Feb 1970") {
			t.Error(got)
		}
	})
	t.Run("a scheduled change", func(t *testing.T) {
		got := render(WalletPlan{Price: price, Scheduled: &PlanChange{PlanName: "Starter", At: 31 * day, Price: billing.Price{Interval: billing.Month}}})
		if !strings.Contains(got, "Starter") || !strings.Contains(got, "(Free) on") {
			t.Error(got)
		}
	})
	t.Run("an open payment with its page, unless the address is a script", func(t *testing.T) {
		pending := &PendingChange{PlanName: "Scale", Price: price, ExpiresAt: day, PaymentURL: "https://pay.example/i"}
		if got := render(WalletPlan{Price: price, Pending: pending}); !strings.Contains(got, `href="https://pay.example/i"`) || !strings.Contains(got, "Scale") {
			t.Error(got)
		}
		pending.PaymentURL = "javascript:alert(1)"
		if got := render(WalletPlan{Price: price, Pending: pending}); strings.Contains(got, "javascript:") {
			t.Error(got)
		}
	})
	t.Run("and says that a cancellation drops it", func(t *testing.T) {
		const scheduled, unpaid = "The scheduled change to Starter is dropped, and undoing doesn't bring it back.", "The unpaid upgrade to Scale is dropped, and its payment link stops working."
		head := WalletHead{Plan: &WalletPlan{}, Subscription: &SubscriptionRow{}}
		if text := head.cancelConfirmation().Text; strings.Contains(text, "dropped") {
			t.Error(text)
		}
		head.Plan.Scheduled, head.Plan.Pending = &PlanChange{PlanName: "Starter"}, &PendingChange{PlanName: "Scale"}
		if text := head.cancelConfirmation().Text; !strings.Contains(text, scheduled) || !strings.Contains(text, unpaid) {
			t.Error(text)
		}
	})
	t.Run("what is left of an allowance and what happens then", func(t *testing.T) {
		for want, a := range map[string]metering.Allowance{
			"Usage past the allowance is declined. Resets ":               {Limit: 20_000, Used: 19_000, Overage: metering.OverageBlock},
			">Usage is declined. Resets ":                                 {Limit: 20_000, Used: 20_000, Overage: metering.OverageBlock},
			"Usage past the allowance is charged to the balance. Resets ": {Limit: 20_000, Used: 0, Overage: metering.OverageCredits},
			">Usage is charged to the balance. Resets ":                   {Limit: 20_000, Used: 30_000, Overage: metering.OverageCredits},
		} {
			got := render(WalletPlan{Allowances: []Allowance{{FeatureKey: "chat", Allowance: a}}})
			if !strings.Contains(got, want) || !strings.Contains(got, " of 20,000 used") {
				t.Errorf("%s: %s", want, got)
			}
		}
	})
	t.Run("while a payment is overdue or the subscription is paused, usage of limited features is declined and nothing resets", func(t *testing.T) {
		used := Allowance{FeatureKey: "chat", Allowance: metering.Allowance{Limit: 20_000, Used: 19_000, Overage: metering.OverageCredits}}
		suspended := WalletPlan{Suspended: true, Allowances: []Allowance{used}}
		for status, want := range map[metering.SubscriptionStatus]string{
			metering.StatusPastDue: "Usage of these features is declined until the overdue invoice is paid.",
			metering.StatusPaused:  "Usage of these features is declined while the subscription is paused.",
		} {
			got := renderWith(status, suspended)
			if !strings.Contains(got, want) || strings.Contains(got, "charged") || strings.Contains(got, "Resets") {
				t.Error(got)
			}
		}
	})
}
