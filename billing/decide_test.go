package billing

import (
	"testing"

	"purser/fault"
	"purser/metering"
)

var (
	free      = sold("free", 0, Month)
	freeYear  = sold("free-year", 0, Year)
	basic     = sold("basic", 900, Month)
	pro       = sold("pro", 2900, Month)
	proYear   = sold("pro-year", 29000, Year)
	cheapYear = sold("cheap-year", 800, Year)
)

// with is a copy of the subscription after a change.
func with(s *Subscription, change func(*Subscription)) *Subscription {
	next := *s
	change(&next)
	return &next
}

func planWith(p Plan, change func(*Plan)) Plan {
	change(&p)
	return p
}

func local(s *Subscription) *Subscription {
	return with(s, func(s *Subscription) { s.ProviderID = "" })
}

func TestDecideChange(t *testing.T) {
	unsynced := func(p Plan) Plan { return planWith(p, func(p *Plan) { p.Sync = Sync{Status: SyncPending} }) }
	failed := func(p Plan) Plan { return planWith(p, func(p *Plan) { p.Sync.Status = SyncFailed }) }
	inactive := func(p Plan) Plan { return planWith(p, func(p *Plan) { p.Active = false }) }
	euros := planWith(pro, func(p *Plan) { p.ID, p.Currency = named("euros"), "eur" })
	status := func(s metering.SubscriptionStatus) func(*Subscription) {
		return func(sub *Subscription) { sub.Status = s }
	}
	scheduled := func(s *Subscription) {
		s.Scheduled = &ScheduledChange{Target: basic.Terms(), EffectiveAt: s.Period.End}
	}
	pending := func(s *Subscription) { s.Pending = &PendingChange{Target: proYear.Terms(), ExpiresAt: day} }
	cancelled := func(s *Subscription) { s.CancelAtPeriodEnd = true }

	for _, c := range []struct {
		claim   string
		current *Subscription
		target  Plan
		want    ChangeKind
		fault   fault.Code
	}{
		{"a free plan starts at once", nil, free, StartFree, ""},
		{"a free plan starts after an ended one", with(on(pro), status(metering.StatusCanceled)), free, StartFree, ""},
		{"a free plan starts although the provider does not have it", nil, unsynced(free), StartFree, ""},
		{"an inactive free plan does not start", nil, inactive(free), "", fault.PlanInactive},
		{"a paid plan does not start", nil, pro, "", fault.SubscriptionNotFound},
		{"a paid plan does not start after an ended one", with(on(pro), status(metering.StatusCanceled)), pro, "", fault.SubscriptionNotFound},

		{"more expensive is an upgrade", on(basic), pro, Upgrade, ""},
		{"more expensive and longer is an upgrade", on(pro), proYear, Upgrade, ""},
		{"cheaper is a downgrade", on(pro), basic, Downgrade, ""},
		{"as expensive is a downgrade", on(pro), sold("other", 2900, Month), Downgrade, ""},
		{"longer for less is a downgrade", on(pro), cheapYear, Downgrade, ""},
		{"more expensive and shorter is a downgrade: the paid year is not cut", on(cheapYear), pro, Downgrade, ""},
		{"to a free plan is a downgrade", on(pro), free, Downgrade, ""},
		{"the price that counts is the one that is paid, not today's", with(on(basic), func(s *Subscription) { s.Terms.AmountCents = 5000 }), pro, Downgrade, ""},
		{"from a free year to a paid month is an upgrade: no paid period is cut", on(freeYear), pro, Upgrade, ""},
		{"from a free plan that runs here to a paid one takes a page to pay on", local(on(free)), pro, Checkout, ""},
		{"from a free plan that runs here to another waits for the turn", local(on(free)), unsynced(sold("hobby", 0, Month)), Downgrade, ""},
		{"another upgrade calls off the one that waits", with(on(basic), pending), pro, Upgrade, ""},

		{"the same plan is refused", on(pro), pro, "", fault.AlreadyOnPlan},
		{"the same plan is refused before it matters that it is inactive", on(pro), inactive(pro), "", fault.AlreadyOnPlan},
		{"the same plan releases a downgrade", with(on(pro), scheduled), pro, Keep, ""},
		{"the same plan voids a pending change", with(on(pro), pending), pro, Keep, ""},
		{"the same plan can be kept when it no longer accepts new customers", with(on(pro), scheduled), inactive(unsynced(pro)), Keep, ""},

		{"another currency", on(basic), euros, "", fault.CurrencyMismatch},
		{"an inactive plan", on(basic), inactive(pro), "", fault.PlanInactive},
		{"a plan that is not synced", on(basic), unsynced(pro), "", fault.PlanNotSynced},
		{"a plan whose sync failed", on(basic), failed(pro), "", fault.PlanNotSynced},
		{"a free plan that is not synced, for a subscription at the provider", on(pro), unsynced(free), "", fault.PlanNotSynced},
		{"a scheduled cancellation", with(on(basic), cancelled), pro, "", fault.CancellationScheduled},
		{"a scheduled cancellation, to the same plan", with(on(basic), cancelled), basic, "", fault.CancellationScheduled},
		{"past due", with(on(basic), status(metering.StatusPastDue)), pro, "", fault.PaymentHold},
		{"unpaid", with(on(basic), status(metering.StatusUnpaid)), pro, "", fault.PaymentHold},
		{"past due, to the same plan with a queued downgrade", with(with(on(pro), scheduled), status(metering.StatusPastDue)), pro, "", fault.PaymentHold},
		{"a first payment that is not confirmed", with(on(basic), status(metering.StatusIncomplete)), pro, "", fault.PaymentHold},
	} {
		t.Run(c.claim, func(t *testing.T) {
			order, err := DecideChange(c.current, c.target)
			wantFault(t, err, c.fault)
			if err != nil {
				return
			}
			if order.Kind != c.want {
				t.Errorf("it is %q, not %q", order.Kind, c.want)
			}
			if c.current == nil {
				return
			}
			if order.ReleaseScheduled != (c.current.Scheduled != nil) || order.VoidPending != (c.current.Pending != nil) {
				t.Errorf("what waits is not called off: %+v", order)
			}
			if order.Target.PlanID != c.target.ID {
				t.Errorf("the target is %s", order.Target.PlanKey)
			}
		})
	}
	t.Run("staying calls off what was asked before and may be on its way", func(t *testing.T) {
		id := on(basic).ID
		for claim, c := range map[string]struct {
			asked Change
			fault fault.Code
		}{
			"an upgrade":                         {Change{Kind: Upgrade, SubscriptionID: id, State: ChangeRequested}, ""},
			"a downgrade":                        {Change{Kind: Downgrade, SubscriptionID: id, State: ChangePending}, ""},
			"a page that would replace it":       {Change{Kind: Checkout, Replaces: id, State: ChangeRequested}, ""},
			"but not what was carried out":       {Change{Kind: Upgrade, SubscriptionID: id, State: ChangeApplied}, fault.AlreadyOnPlan},
			"and not what is dropped":            {Change{Kind: Upgrade, SubscriptionID: id, State: ChangeDropped}, fault.AlreadyOnPlan},
			"and not the checkout that made it":  {Change{Kind: Checkout, SubscriptionID: id, State: ChangePending}, fault.AlreadyOnPlan},
			"and not what another one was asked": {Change{Kind: Upgrade, SubscriptionID: named("another"), State: ChangeRequested}, fault.AlreadyOnPlan},
		} {
			order, err := DecideChange(on(basic), basic, c.asked)
			if wantFault(t, err, c.fault); err == nil && (order.Kind != Keep || order.Target.PlanID != basic.ID) {
				t.Errorf("%s: %+v", claim, order)
			}
		}
	})
	t.Run("keeping a plan keeps the terms that it was bought on", func(t *testing.T) {
		order, err := DecideChange(with(on(pro), scheduled), planWith(pro, func(p *Plan) { p.Grants = nil }))
		if err != nil || len(order.Target.Grants) != 1 {
			t.Errorf("got %+v, %v", order.Target, err)
		}
	})
}

func TestDecideCheckout(t *testing.T) {
	for _, c := range []struct {
		claim   string
		current *Subscription
		target  Plan
		want    fault.Code
	}{
		{"sells a plan to a customer without one", nil, pro, ""},
		{"sells a free plan", nil, free, ""},
		{"sells after an ended one", with(on(pro), func(s *Subscription) { *s = s.End(day) }), pro, ""},
		{"refuses while one is live", on(free), pro, fault.SubscriptionExists},
		{"refuses while one is on hold", with(on(pro), func(s *Subscription) { s.Status = metering.StatusPastDue }), pro, fault.SubscriptionExists},
		{"refuses while a first payment is being confirmed", with(on(pro), func(s *Subscription) { s.Status = metering.StatusIncomplete }), pro, fault.SubscriptionExists},
		{"refuses an inactive plan", nil, planWith(pro, func(p *Plan) { p.Active = false }), fault.PlanInactive},
		{"refuses a plan that is not synced", nil, planWith(free, func(p *Plan) { p.Sync.Status = SyncPending }), fault.PlanNotSynced},
	} {
		t.Run(c.claim, func(t *testing.T) { wantFault(t, DecideCheckout(c.current, c.target), c.want) })
	}
}

func TestDecideCancel(t *testing.T) {
	queued := with(on(pro), func(s *Subscription) { s.Scheduled = &ScheduledChange{Target: basic.Terms()} })
	waiting := with(on(pro), func(s *Subscription) { s.Pending = &PendingChange{Target: proYear.Terms()} })
	leaving := with(on(pro), func(s *Subscription) { s.CancelAtPeriodEnd = true })
	for _, c := range []struct {
		claim       string
		current     *Subscription
		atPeriodEnd bool
		want        CancelOrder
		fault       fault.Code
	}{
		{"sets the flag", on(pro), true, CancelOrder{CancelAtPeriodEnd: true, Changes: true}, ""},
		{"set twice changes nothing", leaving, true, CancelOrder{CancelAtPeriodEnd: true}, ""},
		{"is undone", leaving, false, CancelOrder{Changes: true}, ""},
		{"undone when there is none changes nothing", on(pro), false, CancelOrder{}, ""},
		{"releases a downgrade first", queued, true, CancelOrder{CancelAtPeriodEnd: true, Changes: true, ReleaseScheduled: true}, ""},
		{"undone when there is none still releases a downgrade", queued, false, CancelOrder{ReleaseScheduled: true}, ""},
		{"voids an upgrade that waits", waiting, true, CancelOrder{CancelAtPeriodEnd: true, Changes: true, VoidPending: true}, ""},
		{"undone leaves an upgrade that waits", waiting, false, CancelOrder{}, ""},
		{"works on hold", with(on(pro), func(s *Subscription) { s.Status = metering.StatusUnpaid }), true, CancelOrder{CancelAtPeriodEnd: true, Changes: true}, ""},
		{"needs a subscription", nil, true, CancelOrder{}, fault.SubscriptionNotFound},
		{"needs one that has not ended", with(on(pro), func(s *Subscription) { *s = s.End(1) }), false, CancelOrder{}, fault.SubscriptionNotFound},
		{"waits for the first payment", with(on(pro), func(s *Subscription) { s.Status = metering.StatusIncomplete }), true, CancelOrder{}, fault.PaymentHold},
	} {
		t.Run(c.claim, func(t *testing.T) {
			order, err := DecideCancel(c.current, c.atPeriodEnd)
			wantFault(t, err, c.fault)
			if order != c.want {
				t.Errorf("got %+v, want %+v", order, c.want)
			}
		})
	}
}

func TestDecideTopUp(t *testing.T) {
	without := with(on(pro), func(s *Subscription) { s.Terms.TopupsEnabled = false })
	for _, c := range []struct {
		claim    string
		current  *Subscription
		amount   metering.Amount
		cents    int64
		currency string
		want     fault.Code
	}{
		{"sells without a subscription", nil, 1, 50, "usd", ""},
		{"sells where the terms allow it", on(pro), 1, 50, "usd", ""},
		{"refuses where they do not", without, 1, 50, "usd", fault.TopupsDisabled},
		{"sells while the terms rest", with(without, func(s *Subscription) { s.Status = metering.StatusPastDue }), 1, 50, "usd", ""},
		{"sells after they have ended", with(without, func(s *Subscription) { *s = s.End(1) }), 1, 50, "usd", ""},
		{"refuses no credits", nil, 0, 50, "usd", fault.AmountTooSmall},
		{"refuses less than the smallest charge", nil, 1, 49, "usd", fault.AmountTooSmall},
		{"refuses steps too small", nil, 1, 1005, "tnd", fault.AmountNotChargeable},
	} {
		t.Run(c.claim, func(t *testing.T) {
			wantFault(t, DecideTopUp(c.current, nil, Grant{Amount: c.amount}, c.cents, c.currency), c.want)
		})
	}
}

func TestSubscriptionStatuses(t *testing.T) {
	for status, want := range map[metering.SubscriptionStatus]struct{ live, hold, ended bool }{
		metering.StatusActive:     {live: true},
		metering.StatusTrialing:   {live: true},
		metering.StatusPastDue:    {live: true, hold: true},
		metering.StatusUnpaid:     {live: true, hold: true},
		metering.StatusPaused:     {live: true},
		metering.StatusIncomplete: {},
		metering.StatusCanceled:   {ended: true},
	} {
		s := Subscription{Status: status}
		if s.InUse() != want.live || s.PaymentHold() != want.hold || s.Ended() != want.ended {
			t.Errorf("%s: live %v, on hold %v, ended %v", status, s.InUse(), s.PaymentHold(), s.Ended())
		}
	}
	t.Run("a pending change is none from the moment that it expires", func(t *testing.T) {
		s := Subscription{Pending: &PendingChange{ExpiresAt: 10}}
		if s.PendingAt(9) == nil || s.PendingAt(10) != nil || (Subscription{}).PendingAt(0) != nil {
			t.Error("it expires at another moment")
		}
	})
}
