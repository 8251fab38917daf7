package billing

import (
	"reflect"
	"slices"
	"testing"

	"purser/metering"
)

// reported is the last report of a shop after something happened there.
func (s *shop) reported(change func(*ProviderSubscription)) report {
	remote := s.sub.copy()
	change(&remote)
	return report{remote, s.now}
}

func (p Projection) alerts(kind AlertKind) (ids []string) {
	for _, a := range p.Alerts {
		if a.Kind == kind {
			ids = append(ids, a.ObjectID)
		}
	}
	return ids
}

// paid is one more paid invoice for the plan, for the period after the current.
func paid(id string, reason InvoiceReason, plan Plan, start int64) ProviderInvoice {
	return ProviderInvoice{
		ID: id, Status: InvoicePaid, Reason: reason, CreatedAt: start, AmountPaid: plan.AmountCents, Currency: "usd",
		Lines: []ProviderLine{{
			Subscription: true, PriceID: plan.Sync.PriceID, AmountCents: plan.AmountCents,
			Period: plan.Interval.Containing(start, start),
		}},
	}
}

func TestOnlyPaidPeriodsGrant(t *testing.T) {
	for _, c := range []struct {
		claim   string
		invoice func(start int64) ProviderInvoice
		grants  bool
		moves   bool
	}{
		{"a renewal grants", func(at int64) ProviderInvoice { return paid("in_x", ReasonCycle, basic, at) }, true, true},
		{"money from the customer's balance is money", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.AmountPaid = 0
			return i
		}, true, true},
		{"an open invoice does not", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.Status = InvoiceOpen
			return i
		}, false, false},
		{"an uncollectible one does not", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.Status = InvoiceUncollectible
			return i
		}, false, false},
		{"an invoice by hand does not", func(at int64) ProviderInvoice { return paid("in_x", "manual", basic, at) }, false, false},
		{"a threshold invoice does not", func(at int64) ProviderInvoice { return paid("in_x", "subscription_threshold", basic, at) }, false, false},
		{"a proration does not", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.Lines[0].Proration = true
			return i
		}, false, false},
		{"something thrown in does not", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.Lines[0].Subscription = false
			return i
		}, false, false},
		{"a trial moves the period and grants nothing", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.AmountPaid, i.Lines[0].AmountCents = 0, 0
			return i
		}, false, true},
		{"the line of the period is found among others", func(at int64) ProviderInvoice {
			i := paid("in_x", ReasonCycle, basic, at)
			i.Lines = append([]ProviderLine{{PriceID: "price_item"}, {Subscription: true, Proration: true, PriceID: pro.Sync.PriceID}}, i.Lines...)
			return i
		}, true, true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s, b, _ := story(bought(basic))
			before := b.Subscription.Period
			p := b.apply(s.reported(func(remote *ProviderSubscription) {
				remote.Invoices = append(remote.Invoices, c.invoice(before.End))
			}))
			if grants := total(p.Settled) > 0; grants != c.grants {
				t.Errorf("it settles %+v", p.Settled)
			}
			if moves := p.Subscription.Period != before; moves != c.moves {
				t.Errorf("the period is %v, was %v", p.Subscription.Period, before)
			}
		})
	}
}

func TestUnrequestedSales(t *testing.T) {
	t.Run("an unknown price leaves the old terms and raises an alert", func(t *testing.T) {
		s, b, _ := story(bought(basic))
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.PriceID = pro.Sync.PriceID
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonCycle, pro, s.now))
		}))
		if p.Subscription.Terms.PlanKey != "basic" || p.Subscription.Scheduled != nil || len(p.Settled) != 0 || !slices.Equal(p.alerts(UnknownPrice), []string{"in_x", s.sub.ID}) {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("a renewal at a price of the catalog is on the catalog's terms", func(t *testing.T) {
		s, b, _ := story(bought(basic))
		b.Prices[pro.Sync.PriceID] = pro.Terms()
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.PriceID = pro.Sync.PriceID
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonCycle, pro, s.now))
		}))
		if p.Subscription.Terms.PlanKey != "pro" || total(p.Settled) != pro.Grants[0].Amount {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("an update moves the plan, grants nothing and raises an alert", func(t *testing.T) {
		s, b, _ := story(bought(basic))
		b.Prices[pro.Sync.PriceID] = pro.Terms()
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.PriceID = pro.Sync.PriceID
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonUpdate, pro, s.now))
		}))
		if p.Subscription.Terms.PlanKey != "pro" || total(p.Settled) != 0 || len(p.alerts(UnrequestedUpdate)) != 1 {
			t.Errorf("got %+v", p)
		}
		if again := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonUpdate, pro, s.now))
		})); len(again.Alerts) > 1 || len(again.Settled) > 0 {
			t.Errorf("said again: %+v", again)
		}
	})
	t.Run("a second paid update for one request grants nothing and raises an alert", func(t *testing.T) {
		s, b, _ := story(bought(basic), upgrade(pro, true))
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonUpdate, pro, s.now))
		}))
		if total(p.Settled) != 0 || len(p.alerts(UnrequestedUpdate)) != 1 {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("an upgrade is recognised although the answer to its call was lost", func(t *testing.T) {
		_, b, last := story(bought(basic), upgrade(pro, true))
		if b.Changes[1].State != ChangeApplied || b.Changes[1].InvoiceID != "in_01" || len(last.Alerts) != 0 {
			t.Errorf("the change is %+v, alerts %+v", b.Changes[1], last.Alerts)
		}
	})
}

// A plan can be sold twice at one price and on different terms. Each invoice
// grants what was agreed when its period was sold, however late it is seen.
func TestEachSaleHasItsOwnTerms(t *testing.T) {
	generous := planWith(basic, func(p *Plan) { p.Grants = []Grant{tokens(1_000_000)} })
	steps := []func(*shop){bought(basic), upgrade(pro, true), downgrade(generous), renewed, renewed}
	s, b, _ := story(steps...)
	want := []metering.Amount{basic.Grants[0].Amount, pro.Grants[0].Amount, 1_000_000, 1_000_000}
	late := openBooks(s.asked)
	late.apply(s.reports[len(s.reports)-1])
	for claim, applied := range map[string]*books{"in time": b, "late": late} {
		for i, p := range applied.Payments {
			if total([]Payment{p}) != want[i] {
				t.Errorf("applied %s, invoice %d grants %v, want %d", claim, i, p.Credits, want[i])
			}
		}
	}
}

// The provider counts in seconds. What was bought and at once upgraded has two
// invoices that nothing tells apart but their prices.
func TestTwoPurchasesInOneSecond(t *testing.T) {
	for _, order := range [][2]string{{"in_a", "in_b"}, {"in_b", "in_a"}} {
		s := openShop(basic, pro)
		s.buy(basic)
		s.payFirst()
		s.upgrade(pro, true)
		late := openBooks(s.asked)
		p := late.apply(s.reported(func(remote *ProviderSubscription) {
			remote.Invoices[0].ID, remote.Invoices[1].ID = order[0], order[1]
		}))
		if p.Subscription.Terms.PlanKey != "pro" || len(p.Settled) != 2 {
			t.Errorf("%v: it is on %s, settled %d", order, p.Subscription.Terms.PlanKey, len(p.Settled))
		}
	}
}

// Two requests for one plan, the first canceled: an old report must not give the
// first one the invoice of the second.
func TestAnOldReportDoesNotMixUpRequests(t *testing.T) {
	s := openShop(basic, pro)
	s.buy(basic)
	s.payFirst()
	s.upgrade(pro, false)
	s.upgrade(pro, false)
	s.payPending()
	b := openBooks(s.asked)
	for _, i := range []int{4, 3, 4} {
		b.apply(s.reports[i])
	}
	if b.Changes[1].State == ChangeApplied || b.Changes[2].State != ChangeApplied {
		t.Errorf("got %s and %s", b.Changes[1].State, b.Changes[2].State)
	}
}

// The second request is stored before the first is canceled at the
// provider; until then the open invoice is the first one's.
func TestARequestInProgressTakesNoInvoiceOfAnother(t *testing.T) {
	s, b, _ := story(bought(basic), upgrade(pro, false))
	second := b.Changes[1]
	second.ID, second.State, second.InvoiceID, second.RequestedAt = named("second"), ChangeRequested, "", second.RequestedAt+10_000
	b.Changes = append(b.Changes, second)
	if p := b.apply(s.reports[2]); len(p.Changes) != 0 {
		t.Errorf("got %+v", p.Changes)
	}
}

func TestAnEndedSubscription(t *testing.T) {
	s, b, _ := story(bought(basic), (*shop).end)
	ended := b.Subscription

	t.Run("is not revived by an older report", func(t *testing.T) {
		for _, r := range s.reports {
			if p := b.apply(r); !reflect.DeepEqual(p.Subscription, ended) || len(p.Settled) != 0 {
				t.Errorf("got %+v", p)
			}
		}
	})
	t.Run("still grants what was paid for", func(t *testing.T) {
		late := openBooks(s.asked)
		if p := late.apply(s.reports[len(s.reports)-1]); !p.Subscription.Ended() || total(p.Settled) != basic.Grants[0].Amount {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("grants nothing more for free", func(t *testing.T) {
		s, b, _ := story(bought(free))
		b.Subscription = b.Subscription.End(s.now)
		b.Payments = nil
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.Invoices = []ProviderInvoice{paid("in_x", ReasonCycle, free, s.now)}
		}))
		if total(p.Settled) != 0 {
			t.Errorf("got %+v", p.Settled)
		}
	})
}

func TestFreeInvoicesGrantOnceAPeriod(t *testing.T) {
	s := openShop(free)
	s.buy(free)
	s.payFirst()
	first := openBooks(s.asked)
	first.apply(s.reports[1])

	// The same identity cancels, and starts again ten days later.
	s.now += 10 * day
	s.sub.Invoices = nil
	s.buy(free)
	s.payFirst()
	second := openBooks(s.asked)
	for i, p := range first.Payments {
		first.Payments[i].Source.ID = "first_" + p.Source.ID
	}
	second.Payments = first.Payments
	if p := second.apply(s.reports[3]); total(p.Settled) != 0 || len(p.Settled) != 1 || !p.Subscription.InUse() {
		t.Errorf("got %+v", p)
	}
}

func TestSecondSubscription(t *testing.T) {
	other := with(on(pro), func(s *Subscription) { s.ID, s.ProviderID = named("other"), "sub_0" })

	t.Run("is cancelled and refunded, and grants nothing", func(t *testing.T) {
		s := openShop(basic)
		s.buy(basic)
		s.payFirst()
		b := openBooks(s.asked)
		b.Conflicting = other
		p := b.apply(s.reports[1])
		if p.Subscription.InUse() || !p.Subscription.Duplicate || total(p.Settled) != 0 || len(p.alerts(DuplicateSubscription)) != 1 || p.Replaced != nil {
			t.Errorf("got %+v", p)
		}
		if want := []Action{{RefundInvoice, "in_00"}, {CancelNow, "sub_1"}}; !reflect.DeepEqual(p.Actions, want) {
			t.Errorf("it asks for %+v", p.Actions)
		}
		if p = b.apply(s.reports[1]); len(p.Alerts) != 0 || len(p.Settled) != 0 || len(p.Actions) != 1 {
			t.Errorf("applied again: %+v", p)
		}
		// It stays extra, although the other ends before the provider has cancelled it.
		b.Conflicting = nil
		if p = b.apply(s.reports[1]); p.Subscription.InUse() || len(p.Settled) != 0 || len(p.Alerts) != 0 {
			t.Errorf("applied again: %+v", p)
		}
		s.end()
		if p = b.apply(s.reports[2]); !p.Subscription.Ended() || len(p.Actions) != 0 || b.Changes[0].State == ChangeApplied {
			t.Errorf("once cancelled: %+v, %+v", p, b.Changes)
		}
	})
	t.Run("is refunded also when it is unknown what it sold", func(t *testing.T) {
		s := openShop(basic)
		s.buy(basic)
		s.payFirst()
		b := openBooks(s.asked)
		b.Conflicting = other
		p := b.apply(s.reported(func(remote *ProviderSubscription) { remote.Invoices[0].Lines[0].PriceID = "price_unknown" }))
		if want := []Action{{RefundInvoice, "in_00"}, {CancelNow, "sub_1"}}; !reflect.DeepEqual(p.Actions, want) {
			t.Errorf("it asks for %+v", p.Actions)
		}
	})
	t.Run("that was never paid just ends", func(t *testing.T) {
		s := openShop(basic)
		s.buy(basic)
		s.sub.Status = ProviderIncompleteExpired
		s.report()
		b := openBooks(s.asked)
		b.Conflicting = other
		if p := b.apply(s.reports[1]); !p.Subscription.Ended() || p.Subscription.Duplicate || len(p.Actions) != 0 {
			t.Errorf("got %+v", p)
		}
	})
	for claim, replaced := range map[string]*Subscription{"at the provider": other, "that runs here": local(other)} {
		t.Run("takes the place of one "+claim+" when it was bought for that", func(t *testing.T) {
			s := openShop(proYear)
			s.buy(proYear)
			s.payFirst()
			s.asked[0].Replaces = other.ID
			b := openBooks(s.asked)
			b.Conflicting = replaced
			if p := b.apply(s.reports[0]); p.Replaced != nil || p.Subscription.InUse() || len(p.Actions) != 0 {
				t.Errorf("unpaid: %+v", p)
			}
			p := b.apply(s.reports[1])
			if !p.Subscription.InUse() || total(p.Settled) != proYear.Grants[0].Amount || p.Replaced == nil || !p.Replaced.Ended() {
				t.Fatalf("paid: %+v", p)
			}
			if changes := len(p.Actions) == 1 && p.Actions[0] == (Action{CancelNow, "sub_0"}); changes == replaced.Local() {
				t.Errorf("it asks for %+v", p.Actions)
			}
		})
	}
	t.Run("does not end another that it was not bought to replace", func(t *testing.T) {
		s, b, _ := story(bought(basic))
		b.Conflicting = other
		if p := b.apply(s.reports[1]); p.Replaced != nil || len(p.Actions) != 0 {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("has terms of its own: those of the first are not taken for it", func(t *testing.T) {
		s, b, _ := story(bought(free))
		rich := planWith(pro, func(p *Plan) { p.Grants = []Grant{tokens(1_000_000)} })
		b.Changes = append(b.Changes, Change{ID: named("swap"), Kind: Checkout, Target: rich.Terms(), State: ChangePending, Replaces: named("subscription")})
		b.Prices[pro.Sync.PriceID] = pro.Terms()
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			remote.Invoices = append(remote.Invoices, paid("in_x", ReasonCycle, pro, s.now))
		}))
		if total(p.Settled) != pro.Grants[0].Amount || len(p.Changes) != 0 {
			t.Errorf("got %+v, %+v", p.Settled, p.Changes)
		}
	})
	t.Run("waits on its page while the first one holds", func(t *testing.T) {
		swap := Change{ID: named("swap"), Kind: Checkout, Target: pro.Terms(), State: ChangeRequested, Replaces: named("subscription")}
		swap = swap.After(ProviderSession{ID: "cs_1", Status: SessionOpen, URL: "https://pay.example/cs_1", ExpiresAt: 1_700_000_000_000 + 5*day})
		s, b, _ := story(bought(free))
		b.Changes = append(b.Changes, swap)
		want := &PendingChange{Target: pro.Terms(), ExpiresAt: swap.ExpiresAt, PaymentURL: swap.PaymentURL}
		p := b.apply(s.reports[1])
		if !reflect.DeepEqual(p.Subscription.Pending, want) || p.Subscription.Terms.PlanKey != "free" || len(p.Changes) != 0 {
			t.Errorf("got %+v, %+v", p.Subscription.Pending, p.Changes)
		}
		b.Changes[1] = swap.After(ProviderSession{ID: "cs_1", Status: SessionExpired})
		if p := b.apply(s.reports[1]); p.Subscription.Pending != nil || b.Changes[1].State != ChangeDropped {
			t.Errorf("expired: %+v", p.Subscription.Pending)
		}
	})
}
