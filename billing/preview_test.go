package billing

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

func codeOf(err error) fault.Code {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

func grantTotal(grants []Grant) (sum metering.Amount) {
	for _, g := range grants {
		sum += g.Amount
	}
	return sum
}

// brought compares the previewed terms with those that came into force.
func brought(t *rapid.T, p Preview, before, after Terms) {
	t.Helper()
	if len(p.Limits) == 0 {
		t.Fatalf("the preview has no limits")
	}
	for _, l := range p.Limits {
		from, to := limitOf(before, named(l.FeatureKey)), limitOf(after, named(l.FeatureKey))
		if (l.From == nil) != (from == nil) || from != nil && *l.From != *from || (l.To == nil) != (to == nil) || to != nil && *l.To != *to {
			t.Fatalf("%s goes from %v to %v, and the preview says from %v to %v", l.FeatureKey, from, to, l.From, l.To)
		}
	}
	for _, m := range p.Multipliers {
		was, is := before.Metering(), after.Metering()
		if m.From != was.BasisPoints(named(m.FeatureKey)) || m.To != is.BasisPoints(named(m.FeatureKey)) {
			t.Fatalf("the price of %s goes from %d to %d in the preview", m.FeatureKey, m.From, m.To)
		}
	}
}

// previewed draws a plan, some of which cannot be chosen.
func previewed(t *rapid.T, plans []Plan) Plan {
	plan := rapid.SampledFrom(plans).Draw(t, "target")
	switch rapid.IntRange(0, 9).Draw(t, "flaw") {
	case 0:
		plan.Active = false
	case 1:
		plan.Sync.Status = SyncPending
	case 2:
		plan.ID, plan.Currency = named("euros"), "eur"
	}
	return plan
}

// TestThePreviewIsWhatTheChangeDoes changes the plan at a model of the provider, pays,
// and compares charge, date, credits and terms with the preview.
func TestThePreviewIsWhatTheChangeDoes(t *testing.T) {
	t.Parallel()
	kinds := map[PreviewKind]int{}
	compare := func(t *rapid.T) {
		s := history(t)
		b := openBooks(s.asked)
		for _, r := range s.reports {
			b.apply(r)
		}
		s.now += second
		current := b.Subscription
		plans := []Plan{free, basic, pro, proYear, cheapYear}
		if rapid.Bool().Draw(t, "same") { // a change back to the current plan would be rare
			plans = slices.DeleteFunc(plans, func(p Plan) bool { return p.Key != current.Terms.PlanKey })
		}
		target := previewed(t, plans)
		open := slices.DeleteFunc(slices.Clone(b.Changes), func(c Change) bool { return c.State == ChangeApplied || c.State == ChangeDropped })
		p := PreviewChange(PreviewInput{Subscription: &current, Plan: target, Changes: open, Payments: b.Payments}, s.now)
		order, err := DecideChange(&current, target, open...)
		if p.RefusedBy != codeOf(err) {
			t.Fatalf("change answers %v, and the preview %q", err, p.RefusedBy)
		}
		if err != nil || current.Ended() || current.Status == metering.StatusIncomplete {
			return
		}
		kinds[p.Kind]++
		if (p.ReleasesScheduled != "") != (order.ReleaseScheduled && current.Scheduled != nil) {
			t.Fatalf("it releases %q, and %+v is scheduled", p.ReleasesScheduled, current.Scheduled)
		}
		invoices, known := len(s.sub.Invoices), len(s.reports)
		switch order.Kind {
		case Upgrade:
			s.upgrade(target, true)
		case Downgrade:
			s.downgrade(target)
			s.turn()
			s.charge(true)
		case Keep:
			s.keep()
		}
		b.Changes = append(b.Changes, s.asked[len(b.Changes):]...)
		paid := len(b.Payments)
		for _, r := range s.reports[known:] {
			b.apply(r)
		}
		var charged int64
		for _, i := range s.sub.Invoices[invoices:] {
			charged += i.AmountPaid
		}
		if charged != p.ChargeCents || grantTotal(p.Grants) != total(b.Payments[paid:]) || p.Currency != b.Subscription.Terms.Currency {
			t.Fatalf("%d cents are charged for %d credits, and the preview is %+v", charged, total(b.Payments[paid:]), p)
		}
		if p.Kind != PreviewSame && p.EffectiveAt != b.Subscription.Period.Start {
			t.Fatalf("it takes effect at %d, and the preview says %d", b.Subscription.Period.Start, p.EffectiveAt)
		}
		if b.Subscription.Scheduled != nil || b.Subscription.Pending != nil {
			t.Fatalf("a change is left: %+v", b.Subscription)
		}
		brought(t, p, current.Terms, b.Subscription.Terms)
	}
	// Most histories end in a subscription that cannot change, so it goes on until each
	// kind was drawn.
	const rounds = 100
	for round := 0; kinds[PreviewUpgrade]*kinds[PreviewDowngrade]*kinds[PreviewSame] == 0; round++ {
		if round == rounds {
			t.Fatalf("only these kinds were drawn: %v", kinds)
		}
		rapid.Check(t, compare)
	}
}

// TestThePreviewOfAFreePlanIsWhatTheChangeDoes needs no provider: the change and its
// renewal are applied here.
func TestThePreviewOfAFreePlanIsWhatTheChangeDoes(t *testing.T) {
	t.Parallel()
	hobby := planWith(sold("hobby", 0, Month), func(p *Plan) {
		p.Multipliers = []metering.Multiplier{{FeatureID: named("calls"), FeatureKey: "calls", BasisPoints: 5000}}
		p.Limits = []metering.Limit{{FeatureID: named("images"), FeatureKey: "images", Limit: 3}}
	})
	plans := []Plan{free, freeYear, hobby}
	rapid.Check(t, func(t *rapid.T) {
		now := int64(1_700_000_000_000)
		var current *Subscription
		var payments []Payment
		if rapid.Bool().Draw(t, "subscribed") {
			s, settled := StartFreeSubscription(named("first"), "ada", rapid.SampledFrom(plans).Draw(t, "current").Terms(), nil, now)
			payments = settled
			now += rapid.Int64Range(0, 20*day).Draw(t, "later")
			switch rapid.IntRange(0, 3).Draw(t, "state") {
			case 0:
				s = s.Schedule(hobby.Terms())
			case 1:
				s = s.End(now)
			case 2:
				s.CancelAtPeriodEnd = true
			}
			current = &s
		}
		balances := rapid.SampledFrom([][]metering.Balance{nil, {{CreditID: named("tokens"), Amount: metering.MaxAmount}}}).Draw(t, "balances")
		target := previewed(t, plans)
		p := PreviewChange(PreviewInput{Subscription: current, Plan: target, Payments: payments, Balances: balances}, now)

		order, err := DecideChange(current, target)
		var after Subscription
		var settled []Payment
		if err == nil {
			err = order.CheckRoom(balances)
		}
		switch {
		case err != nil:
		case order.Kind == StartFree:
			after, settled = StartFreeSubscription(ids.New(), "ada", order.Target, payments, now)
			for _, payment := range settled {
				err = errors.Join(err, CheckRoom(balances, payment.Credits))
			}
		case order.Kind == Keep:
			after = current.ClearChanges()
		default:
			after = current.Schedule(order.Target)
			if after.Scheduled.EffectiveAt != p.EffectiveAt {
				t.Fatalf("it is scheduled for %d, and the preview says %d", after.Scheduled.EffectiveAt, p.EffectiveAt)
			}
			after, settled = RenewFree(after, payments, p.EffectiveAt)
		}
		if p.RefusedBy != codeOf(err) {
			t.Fatalf("change answers %v, and the preview %q", err, p.RefusedBy)
		}
		if err != nil {
			return
		}
		if p.ChargeCents != 0 || p.Needs != NeedsNothing || grantTotal(p.Grants) != total(settled) {
			t.Fatalf("%d credits are granted, and the preview is %+v", total(settled), p)
		}
		var before Terms
		if current != nil && !current.Ended() {
			before = current.Terms
		}
		if order.Kind == StartFree && (p.Kind != PreviewStart || p.EffectiveAt != after.Period.Start) {
			t.Fatalf("it starts at %d, and the preview is %+v", after.Period.Start, p)
		}
		brought(t, p, before, after.Terms)
	})
}

// A paid subscription that returns to a free plan gets its credits once in a period of the
// free plan.
func TestAPreviewedReturnToAFreePlanGrantsOnce(t *testing.T) {
	t.Parallel()
	_, before := StartFreeSubscription(named("first"), "ada", freeYear.Terms(), nil, hour)
	current := on(pro)
	preview := func(payments []Payment) metering.Amount {
		return grantTotal(PreviewChange(PreviewInput{Subscription: current, Plan: freeYear, Payments: payments}, hour).Grants)
	}
	if granted, want := preview(nil), total(before); granted != want || want == 0 {
		t.Errorf("a first return grants %d, expected %d", granted, want)
	}
	if granted := preview(before); granted != 0 {
		t.Errorf("a return in a period that was granted grants %d", granted)
	}
}

// Between the end of a period and the charge of the next one, a downgrade waits for the
// renewal after that.
func TestThePreviewOfADowngradeWhileARenewalWaitsNamesTheNextOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plans := []Plan{free, basic, pro, proYear, cheapYear}
		s := openShop(plans...)
		s.buy(rapid.SampledFrom(plans).Draw(t, "plan"))
		s.payFirst()
		for range rapid.IntRange(0, 3).Draw(t, "renewals") {
			s.turn()
			s.charge(true)
		}
		b := openBooks(s.asked, plans...)
		if first := rapid.SampledFrom(plans).Draw(t, "first"); rapid.Bool().Draw(t, "downgraded") {
			if order, err := DecideChange(s.holder(plans), first); err == nil && order.Kind == Downgrade {
				s.downgrade(first)
			}
		}
		b.Changes = append(b.Changes, s.asked[len(b.Changes):]...)
		s.turn()
		for _, r := range s.reports {
			b.apply(r)
		}
		s.now += rapid.Int64Range(0, hour-1).Draw(t, "pause")
		current, target := b.Subscription, rapid.SampledFrom(plans).Draw(t, "target")
		p := PreviewChange(PreviewInput{Subscription: &current, Plan: target, Payments: b.Payments}, s.now)
		if p.Kind != PreviewDowngrade || p.RefusedBy != "" {
			return
		}
		s.downgrade(target)
		b.Changes = append(b.Changes, s.asked[len(b.Changes):]...)
		s.charge(true)
		for _, r := range s.reports[len(s.reports)-2:] {
			b.apply(r)
		}
		if got := b.Subscription.Scheduled; got == nil || got.EffectiveAt != p.EffectiveAt {
			t.Fatalf("the preview says %d, and the change is %+v", p.EffectiveAt, got)
		}
	})
}

// Stripe keeps the day of the first period, which a shorter month doesn't have.
func TestThePreviewOfADowngradeKeepsTheDayOfThePeriods(t *testing.T) {
	t.Parallel()
	at := func(month time.Month, day int) int64 {
		return time.Date(2026, month, day, 12, 0, 0, 0, time.UTC).UnixMilli()
	}
	for claim, c := range map[string]struct{ start, end, want int64 }{
		"after a month that is long enough": {at(1, 14), at(2, 14), at(3, 14)},
		"after a shorter month":             {at(1, 31), at(2, 28), at(3, 31)},
		"from a shorter month":              {at(2, 28), at(3, 31), at(4, 30)},
	} {
		current := with(on(pro), func(s *Subscription) { s.Period = metering.Period{Start: c.start, End: c.end} })
		if got := PreviewChange(PreviewInput{Subscription: current, Plan: basic}, c.end); got.EffectiveAt != c.want {
			t.Errorf("%s: it takes effect at %v, want %v", claim, time.UnixMilli(got.EffectiveAt).UTC(), time.UnixMilli(c.want).UTC())
		}
	}
}

func TestPreviewChange(t *testing.T) {
	t.Parallel()
	scheduled := with(on(pro), func(s *Subscription) { s.Scheduled = &ScheduledChange{Target: basic.Terms(), EffectiveAt: 30 * day} })
	billed := with(scheduled, func(s *Subscription) {
		s.Scheduled = &ScheduledChange{Target: basic.Terms(), EffectiveAt: 30 * day, Billed: true}
	})
	pending := with(on(basic), func(s *Subscription) { s.Pending = &PendingChange{Target: proYear.Terms(), ExpiresAt: day} })
	held := with(on(basic), func(s *Subscription) { s.Status = metering.StatusPastDue })
	for _, c := range []struct {
		claim   string
		current *Subscription
		target  Plan
		want    Preview
	}{
		{"a paid plan starts in a checkout", nil, pro,
			Preview{Kind: PreviewStart, EffectiveAt: hour, ChargeCents: 2900, Needs: NeedsCheckout, RefusedBy: fault.SubscriptionNotFound}},
		{"a free plan starts at once", nil, free, Preview{Kind: PreviewStart, EffectiveAt: hour, Needs: NeedsNothing}},
		{"an upgrade charges the whole new period now", on(basic), pro,
			Preview{Kind: PreviewUpgrade, EffectiveAt: hour, ChargeCents: 2900, Needs: NeedsPaymentMethod}},
		{"an upgrade from a plan that runs here goes through a checkout", local(on(free)), pro,
			Preview{Kind: PreviewUpgrade, EffectiveAt: hour, ChargeCents: 2900, Needs: NeedsCheckout}},
		{"a downgrade waits for the renewal", on(pro), basic,
			Preview{Kind: PreviewDowngrade, EffectiveAt: 30 * day, ChargeCents: 900, Needs: NeedsNothing}},
		{"the same plan releases the downgrade", scheduled, pro,
			Preview{Kind: PreviewSame, EffectiveAt: hour, Needs: NeedsNothing, ReleasesScheduled: "basic"}},
		{"the same plan voids the pending upgrade", pending, basic,
			Preview{Kind: PreviewSame, EffectiveAt: hour, Needs: NeedsNothing, ReleasesPending: "pro-year"}},
		{"an invoiced downgrade is replaced by paying again", billed, pro,
			Preview{Kind: PreviewUpgrade, EffectiveAt: hour, ChargeCents: 2900, Needs: NeedsPaymentMethod, ReleasesScheduled: "basic"}},
		{"an invoiced downgrade that is requested again stays", billed, basic, Preview{Kind: PreviewSame, EffectiveAt: hour, Needs: NeedsNothing}},
		{"the plan of today is refused", on(pro), pro,
			Preview{Kind: PreviewSame, EffectiveAt: hour, Needs: NeedsNothing, RefusedBy: fault.AlreadyOnPlan}},
		{"a refused change still shows what it would be", held, pro,
			Preview{Kind: PreviewUpgrade, EffectiveAt: hour, ChargeCents: 2900, Needs: NeedsPaymentMethod, RefusedBy: fault.PaymentHold}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			got := PreviewChange(PreviewInput{Subscription: c.current, Plan: c.target}, hour)
			if got.Currency != "usd" || len(got.Limits) != 1 {
				t.Errorf("it is in %s with the limits %v", got.Currency, got.Limits)
			}
			got.Currency, got.Grants, got.Limits, got.Multipliers = "", nil, nil, nil
			if got.Kind != c.want.Kind || got.EffectiveAt != c.want.EffectiveAt || got.ChargeCents != c.want.ChargeCents || got.Needs != c.want.Needs ||
				got.RefusedBy != c.want.RefusedBy || got.ReleasesScheduled != c.want.ReleasesScheduled || got.ReleasesPending != c.want.ReleasesPending {
				t.Errorf("it is\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}
