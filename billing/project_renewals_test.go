package billing

import (
	"slices"
	"testing"
)

// renewedBeside is a subscription on basic whose renewal and whose upgrade to pro were
// paid at the given seconds after the period's end.
func renewedBeside(t *testing.T, change func(renewal, upgrade *ProviderInvoice)) (Projection, *books) {
	t.Helper()
	s, b, _ := story(bought(basic))
	s.turn()
	renewal := len(s.sub.Invoices) - 1
	s.now += hour / 2
	s.request(Upgrade, pro)
	price := pro.Sync.PriceID
	s.bill(InvoicePaid, ReasonUpdate, price, s.periodFrom(s.now, price))
	s.last().pay()
	s.last().PaidAt = s.now
	s.sub.PriceID, s.sub.Period = price, s.last().Lines[0].Period
	s.sub.Invoices[renewal].AmountDue = basic.AmountCents
	change(&s.sub.Invoices[renewal], s.last())
	s.report()
	b.Changes = slices.Clone(s.asked)
	b.Changes[0].State = ChangeApplied
	return b.apply(s.reports[len(s.reports)-1]), b
}

func TestARenewalBesideAnUpgradeIsChargedOnce(t *testing.T) {
	t.Run("one that is a draft is voided", func(t *testing.T) {
		p, _ := renewedBeside(t, func(*ProviderInvoice, *ProviderInvoice) {})
		if !slices.Contains(p.Actions, Action{VoidRenewal, "in_01"}) {
			t.Errorf("it asks for %+v", p.Actions)
		}
	})
	t.Run("one that is paid in the second of the upgrade is refunded", func(t *testing.T) {
		p, b := renewedBeside(t, func(renewal, upgrade *ProviderInvoice) {
			renewal.pay()
			renewal.PaidAt = upgrade.PaidAt
		})
		if !slices.Contains(p.Actions, Action{RefundInvoice, "in_01"}) || total(p.Settled) != pro.Grants[0].Amount || b.Subscription.Terms.PlanKey != "pro" {
			t.Errorf("it asks for %+v, settles %+v, on %s", p.Actions, p.Settled, b.Subscription.Terms.PlanKey)
		}
	})
	t.Run("one that was paid before stays paid", func(t *testing.T) {
		p, _ := renewedBeside(t, func(renewal, upgrade *ProviderInvoice) {
			renewal.pay()
			renewal.PaidAt = upgrade.PaidAt - 1000
		})
		if len(p.Actions) != 0 || total(p.Settled) != basic.Grants[0].Amount+pro.Grants[0].Amount {
			t.Errorf("it asks for %+v, settles %+v", p.Actions, p.Settled)
		}
	})
	t.Run("one that the customer's balance paid is credited back", func(t *testing.T) {
		p, b := renewedBeside(t, func(renewal, upgrade *ProviderInvoice) {
			renewal.pay()
			renewal.AmountDue, renewal.AmountPaid, renewal.FromBalance = 0, 0, basic.AmountCents
			renewal.PaidAt = upgrade.PaidAt + 1000
		})
		if want := []Action{{ReturnBalance, "in_01"}}; len(p.Alerts) != 0 || !slices.Equal(p.Actions, want) || total(p.Settled) != pro.Grants[0].Amount || b.Subscription.Terms.PlanKey != "pro" {
			t.Errorf("alerts %+v, actions %+v, settled %+v", p.Alerts, p.Actions, p.Settled)
		}
	})
	t.Run("one of which the customer's balance paid a part is refunded and credited back", func(t *testing.T) {
		p, _ := renewedBeside(t, func(renewal, upgrade *ProviderInvoice) {
			renewal.pay()
			renewal.AmountPaid, renewal.FromBalance = basic.AmountCents-100, 100
			renewal.PaidAt = upgrade.PaidAt + 1000
		})
		if want := []Action{{RefundInvoice, "in_01"}, {ReturnBalance, "in_01"}}; len(p.Alerts) != 0 || !slices.Equal(p.Actions, want) {
			t.Errorf("alerts %+v, actions %+v", p.Alerts, p.Actions)
		}
	})
}

func TestARenewalPaidAfterTheEndIsRefundedWithAnAlert(t *testing.T) {
	// paid is a subscription that dunning has ended, and whose renewal is then paid.
	paid := func(fromBalance int64) Projection {
		s, b, _ := story(bought(basic), (*shop).turn, charge(false), (*shop).end)
		renewal := s.last()
		renewal.pay()
		renewal.AmountPaid, renewal.FromBalance, renewal.PaidAt = basic.AmountCents-fromBalance, fromBalance, s.now+day
		s.now += day
		s.report()
		return b.apply(s.reports[len(s.reports)-1])
	}
	refund, credit := Action{RefundInvoice, "in_01"}, Action{ReturnBalance, "in_01"}
	for claim, c := range map[string]struct {
		fromBalance int64
		refunded    bool
	}{"by card": {0, true}, "in part from the customer's balance": {100, true}, "from the customer's balance": {basic.AmountCents, false}} {
		t.Run(claim, func(t *testing.T) {
			p := paid(c.fromBalance)
			if len(p.alerts(PaidLate)) != 1 || len(p.Alerts) != 1 || slices.Contains(p.Actions, refund) != c.refunded || slices.Contains(p.Actions, credit) != (c.fromBalance > 0) || len(p.Settled) != 1 || total(p.Settled) != 0 {
				t.Errorf("alerts %+v, actions %+v, settled %+v", p.Alerts, p.Actions, p.Settled)
			}
		})
	}
}
