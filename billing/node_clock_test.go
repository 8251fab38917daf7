package billing

import "testing"

// The clock of a node may be off by an hour. What was asked for and paid is
// granted all the same, once.
func TestTheClockOfANodeDecidesAboutNoMoney(t *testing.T) {
	for claim, off := range map[string]int64{"ahead": hour, "behind": -hour} {
		t.Run("an upgrade is granted when the clock is "+claim, func(t *testing.T) {
			s := openShop(basic, pro)
			bought(basic)(s)
			s.now += day
			upgrade(pro, true)(s)
			s.asked[1].RequestedAt += off
			b := openBooks(s.asked, basic, pro)
			var last Projection
			for _, r := range append(s.reports, s.reports...) {
				last = b.apply(r)
				if len(last.Alerts) > 0 {
					t.Errorf("alerts %+v", last.Alerts)
				}
			}
			if want := basic.Grants[0].Amount + pro.Grants[0].Amount; total(b.Payments) != want {
				t.Errorf("granted %s, want %s", total(b.Payments), want)
			}
			if last.Subscription.Terms.PlanKey != "pro" || b.Changes[1].State != ChangeApplied {
				t.Errorf("the plan is %s, the change %s", last.Subscription.Terms.PlanKey, b.Changes[1].State)
			}
		})
		t.Run("an upgrade that waits for its payment is granted when the clock is "+claim, func(t *testing.T) {
			s := openShop(basic, pro)
			bought(basic)(s)
			s.now += day
			upgrade(pro, false)(s)
			s.now += 2 * hour
			s.payPending()
			s.asked[1].RequestedAt += off
			b := openBooks(s.asked, basic, pro)
			for _, r := range s.reports {
				b.apply(r)
			}
			if want := basic.Grants[0].Amount + pro.Grants[0].Amount; total(b.Payments) != want {
				t.Errorf("granted %s, want %s", total(b.Payments), want)
			}
		})
	}
	t.Run("an unrequested update is not taken for a later request", func(t *testing.T) {
		s := openShop(basic, pro)
		bought(basic)(s)
		b := openBooks(s.asked, basic, pro)
		for _, r := range s.reports {
			b.apply(r)
		}
		s.now += day
		b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonUpdate, pro, s.now))
		}))
		s.sub.Invoices = append(s.sub.Invoices, paid("in_x", ReasonUpdate, pro, s.now))
		s.now += day
		upgrade(pro, true)(s)
		b.Changes = append(b.Changes, s.asked[1])
		p := b.apply(s.reports[len(s.reports)-1])
		if total(p.Settled) != pro.Grants[0].Amount || b.Changes[1].InvoiceID != p.Settled[0].Source.ID {
			t.Errorf("settled %+v, the change is %+v", p.Settled, b.Changes[1])
		}
	})
}
