package billing

import (
	"reflect"
	"slices"
	"testing"

	"purser/metering"
)

// story runs steps at the provider and tells what follows from the last report.
func story(steps ...func(*shop)) (*shop, *books, Projection) {
	s := openShop(free, basic, pro, proYear, cheapYear)
	for _, step := range steps {
		step(s)
		s.now += day
	}
	b := openBooks(s.asked)
	var last Projection
	for _, r := range s.reports {
		last = b.apply(r)
	}
	return s, b, last
}

func buy(p Plan) func(*shop)                { return func(s *shop) { s.buy(p) } }
func bought(p Plan) func(*shop)             { return func(s *shop) { s.buy(p); s.payFirst() } }
func upgrade(p Plan, paid bool) func(*shop) { return func(s *shop) { s.upgrade(p, paid) } }
func downgrade(p Plan) func(*shop)          { return func(s *shop) { s.downgrade(p) } }
func charge(succeeds bool) func(*shop)      { return func(s *shop) { s.charge(succeeds) } }
func cancel(atPeriodEnd bool) func(*shop)   { return func(s *shop) { s.cancel(atPeriodEnd) } }
func renewed(s *shop)                       { s.turn(); s.charge(true) }

func TestProject(t *testing.T) {
	credits := func(plans ...Plan) (sum metering.Amount) {
		for _, p := range plans {
			sum += p.Grants[0].Amount
		}
		return sum
	}
	for _, c := range []struct {
		claim    string
		steps    []func(*shop)
		status   metering.SubscriptionStatus
		plan     Plan
		paidAt   int // the invoice that paid for the period
		credited []Plan
	}{
		{"a purchase is incomplete until it is paid", []func(*shop){buy(basic)}, metering.StatusIncomplete, basic, 0, nil},
		{"a paid purchase is active and grants", []func(*shop){bought(basic)}, metering.StatusActive, basic, 0, []Plan{basic}},
		{"a purchase that is never paid ends", []func(*shop){buy(basic), func(s *shop) { s.sub.Status = ProviderIncompleteExpired; s.report() }}, metering.StatusCanceled, basic, 0, nil},
		{"active at the provider and unpaid is incomplete: a bank debit takes days", []func(*shop){buy(basic), func(s *shop) { s.sub.Status = ProviderActive; s.report() }}, metering.StatusIncomplete, basic, 0, nil},
		{"in the hour before a renewal is charged nothing moves", []func(*shop){bought(basic), (*shop).turn}, metering.StatusActive, basic, 0, []Plan{basic}},
		{"a paid renewal moves the period and grants", []func(*shop){bought(basic), renewed}, metering.StatusActive, basic, 1, []Plan{basic, basic}},
		{"a failed renewal is a hold on the old period", []func(*shop){bought(basic), (*shop).turn, charge(false)}, metering.StatusPastDue, basic, 0, []Plan{basic}},
		{"a recovered renewal grants once", []func(*shop){bought(basic), (*shop).turn, charge(false), charge(true)}, metering.StatusActive, basic, 1, []Plan{basic, basic}},
		{"given up, it ends", []func(*shop){bought(basic), (*shop).turn, charge(false), (*shop).end}, metering.StatusCanceled, basic, 0, []Plan{basic}},
		{"a paid upgrade starts a full period and grants", []func(*shop){bought(basic), upgrade(pro, true)}, metering.StatusActive, pro, 1, []Plan{basic, pro}},
		{"an upgrade that waits for payment changes nothing", []func(*shop){bought(basic), upgrade(pro, false)}, metering.StatusActive, basic, 0, []Plan{basic}},
		{"an upgrade that was paid late applies", []func(*shop){bought(basic), upgrade(pro, false), (*shop).payPending}, metering.StatusActive, pro, 1, []Plan{basic, pro}},
		{"an upgrade that expired is gone", []func(*shop){bought(basic), upgrade(pro, false), (*shop).expirePending}, metering.StatusActive, basic, 0, []Plan{basic}},
		{"only the second of two upgrades can apply", []func(*shop){bought(basic), upgrade(pro, false), upgrade(proYear, false), (*shop).payPending}, metering.StatusActive, proYear, 2, []Plan{basic, proYear}},
		{"a downgrade waits for the renewal", []func(*shop){bought(pro), downgrade(basic)}, metering.StatusActive, pro, 0, []Plan{pro}},
		{"a downgrade waits also in the hour before the renewal is charged", []func(*shop){bought(pro), downgrade(basic), (*shop).turn}, metering.StatusActive, pro, 0, []Plan{pro}},
		{"a downgrade takes effect with the paid renewal", []func(*shop){bought(pro), downgrade(basic), renewed}, metering.StatusActive, basic, 1, []Plan{pro, basic}},
		{"a downgrade to a free plan too", []func(*shop){bought(pro), downgrade(free), renewed}, metering.StatusActive, free, 1, []Plan{pro, free}},
		{"a downgrade whose renewal fails leaves the old plan on hold", []func(*shop){bought(pro), downgrade(basic), (*shop).turn, charge(false)}, metering.StatusPastDue, pro, 0, []Plan{pro}},
		{"and switches once it is paid", []func(*shop){bought(pro), downgrade(basic), (*shop).turn, charge(false), charge(true)}, metering.StatusActive, basic, 1, []Plan{pro, basic}},
		{"a cancelled one ends with its period", []func(*shop){bought(pro), cancel(true), (*shop).turn}, metering.StatusCanceled, pro, 0, []Plan{pro}},
		{"an undone cancellation renews", []func(*shop){bought(pro), cancel(true), cancel(false), renewed}, metering.StatusActive, pro, 1, []Plan{pro, pro}},
		{"a free plan grants at each paid invoice of nothing", []func(*shop){bought(free), renewed}, metering.StatusActive, free, 1, []Plan{free, free}},
		{"the same upgrade twice in a life grants twice", []func(*shop){bought(free), upgrade(pro, false), (*shop).payPending, downgrade(free), renewed, upgrade(pro, true)}, metering.StatusActive, pro, 3, []Plan{free, pro, free, pro}},
		{"twelve renewals are twelve grants", []func(*shop){bought(basic), renewed, renewed, renewed, renewed, renewed, renewed, renewed, renewed, renewed, renewed, renewed, renewed}, metering.StatusActive, basic, 12, slices.Repeat([]Plan{basic}, 13)},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s, b, _ := story(c.steps...)
			got := b.Subscription
			if got.Status != c.status || got.Terms.PlanKey != c.plan.Key {
				t.Errorf("it is %s on %s", got.Status, got.Terms.PlanKey)
			}
			if want := s.sub.Invoices[c.paidAt].Lines[0].Period; got.Period != want {
				t.Errorf("the period is %v, want %v", got.Period, want)
			}
			if sum := total(b.Payments); sum != credits(c.credited...) {
				t.Errorf("%d credits came in, want %d", sum, credits(c.credited...))
			}
			// A reader of only the last event knows the same.
			late := openBooks(s.asked)
			late.apply(s.reports[len(s.reports)-1])
			if !reflect.DeepEqual(late.Subscription, got) || !reflect.DeepEqual(late.Payments, b.Payments) {
				t.Errorf("applied late, it is\n%+v\nand not\n%+v", late.Subscription, got)
			}
		})
	}
}

func TestStatusesOfTheProvider(t *testing.T) {
	for remote, want := range map[ProviderStatus]metering.SubscriptionStatus{
		ProviderActive:            metering.StatusActive,
		ProviderTrialing:          metering.StatusTrialing,
		ProviderPastDue:           metering.StatusPastDue,
		ProviderUnpaid:            metering.StatusUnpaid,
		ProviderPaused:            metering.StatusPaused,
		ProviderCanceled:          metering.StatusCanceled,
		ProviderIncompleteExpired: metering.StatusCanceled,
		"something_new":           metering.StatusPaused,
	} {
		s, b, _ := story(bought(basic))
		p := b.apply(s.reported(func(sub *ProviderSubscription) { sub.Status = remote }))
		if p.Subscription.Status != want {
			t.Errorf("%s became %s", remote, p.Subscription.Status)
		}
		if terms := p.Subscription.Terms.Metering(); len(terms.Limits) != 1 {
			t.Errorf("the engine sees %+v", terms)
		}
		if p.Subscription.Ended() != (p.Subscription.EndedAt == s.now) {
			t.Errorf("%s ended at %d", remote, p.Subscription.EndedAt)
		}
	}
}

func TestProjectShowsWhatWaits(t *testing.T) {
	t.Run("an upgrade with its page and its expiry", func(t *testing.T) {
		s, b, _ := story(bought(basic), upgrade(pro, false))
		want := &PendingChange{Target: pro.Terms(), ExpiresAt: s.sub.Pending.ExpiresAt, PaymentURL: "https://pay.example/in_01"}
		if !reflect.DeepEqual(b.Subscription.Pending, want) {
			t.Errorf("got %+v", b.Subscription.Pending)
		}
		if c := b.Changes[1]; c.State != ChangePending || c.InvoiceID != "in_01" || c.ExpiresAt != want.ExpiresAt {
			t.Errorf("the change is %+v", c)
		}
	})
	t.Run("an upgrade near the end of the period only until then", func(t *testing.T) {
		s, b, _ := story(bought(basic), func(s *shop) { s.now = s.sub.Period.End - hour; s.upgrade(pro, false) })
		if b.Subscription.Pending.ExpiresAt != s.sub.Period.End {
			t.Errorf("it expires at %d", b.Subscription.Pending.ExpiresAt)
		}
	})
	t.Run("no upgrade once it is paid, expired or called off", func(t *testing.T) {
		for claim, end := range map[string]func(*shop){
			"paid": (*shop).payPending, "expired": (*shop).expirePending, "called off": (*shop).keep,
			"superseded by a downgrade": downgrade(free), "cancelled": cancel(true),
		} {
			if _, b, _ := story(bought(basic), upgrade(pro, false), end); b.Subscription.Pending != nil || b.Changes[1].State == ChangePending {
				t.Errorf("%s: %+v, %+v", claim, b.Subscription.Pending, b.Changes[1])
			}
		}
	})
	t.Run("a downgrade until it is paid", func(t *testing.T) {
		for claim, steps := range map[string][]func(*shop){
			"queued":  {bought(pro), downgrade(basic)},
			"billed":  {bought(pro), downgrade(basic), (*shop).turn},
			"overdue": {bought(pro), downgrade(basic), (*shop).turn, charge(false)},
		} {
			s, b, _ := story(steps...)
			want := &ScheduledChange{Target: basic.Terms(), EffectiveAt: s.sub.Invoices[0].Lines[0].Period.End, Billed: claim != "queued"}
			if !reflect.DeepEqual(b.Subscription.Scheduled, want) || b.Changes[1].State != ChangePending {
				t.Errorf("%s: %+v, %+v", claim, b.Subscription.Scheduled, b.Changes[1])
			}
		}
	})
	t.Run("a billed downgrade as of its charge", func(t *testing.T) {
		_, b, _ := story(bought(pro), downgrade(basic), func(s *shop) {
			s.turn()
			s.last().FinalizesAt = s.now + hour
			s.report()
		})
		if got := b.Subscription.Scheduled; got == nil || got.EffectiveAt != b.Subscription.Period.End+hour {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a downgrade that is asked for while the renewal is billed, until the renewal after it", func(t *testing.T) {
		s, b, _ := story(bought(pro), (*shop).turn, downgrade(basic))
		if got := b.Subscription.Scheduled; got == nil || got.EffectiveAt != s.sub.Period.End || got.EffectiveAt == b.Subscription.Period.End {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("no downgrade once it is paid, released or superseded", func(t *testing.T) {
		for claim, step := range map[string]func(*shop){
			"paid": renewed, "released": (*shop).keep, "superseded": upgrade(proYear, true), "cancelled": cancel(true),
		} {
			if _, b, _ := story(bought(pro), downgrade(basic), step); b.Subscription.Scheduled != nil || b.Changes[1].State == ChangePending {
				t.Errorf("%s: %+v, %+v", claim, b.Subscription.Scheduled, b.Changes[1])
			}
		}
	})
	t.Run("a change that was not seen at the provider yet stays requested", func(t *testing.T) {
		s, b, _ := story(bought(basic))
		b.Changes = append(b.Changes, Change{ID: named("new"), Kind: Upgrade, Target: pro.Terms(), State: ChangeRequested, RequestedAt: s.now})
		if p := b.apply(s.reports[len(s.reports)-1]); len(p.Changes) != 0 {
			t.Errorf("it became %+v", p.Changes)
		}
	})
	t.Run("an upgrade with the page of its open invoice, not of one that was voided", func(t *testing.T) {
		s, b, _ := story(bought(basic), upgrade(pro, false))
		p := b.apply(s.reported(func(remote *ProviderSubscription) {
			void := remote.Invoices[1]
			void.ID, void.Status, void.CreatedAt, void.PaymentURL = "in_99", InvoiceVoid, void.CreatedAt+1, "https://pay.example/void"
			remote.Invoices = append(remote.Invoices, void)
		}))
		if got := p.Subscription.Pending.PaymentURL; got != "https://pay.example/in_01" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an upgrade whose invoice is out of sight", func(t *testing.T) {
		s, b, _ := story(bought(basic), upgrade(pro, false))
		p := b.apply(s.reported(func(remote *ProviderSubscription) { remote.Invoices = remote.Invoices[:1] }))
		if p.Subscription.Pending == nil || p.Subscription.Pending.Target.PlanKey != "pro" || len(p.Alerts) != 0 {
			t.Errorf("got %+v", p)
		}
		if b.Changes[1].State != ChangePending || b.Changes[1].InvoiceID != "in_01" {
			t.Errorf("the change forgot its invoice: %+v", b.Changes[1])
		}
	})
	t.Run("an upgrade that was made elsewhere, when the catalog has its price", func(t *testing.T) {
		s, b, _ := story(bought(basic))
		pending := s.reported(func(remote *ProviderSubscription) {
			remote.Pending = &ProviderPending{PriceID: pro.Sync.PriceID, ExpiresAt: s.now + hour}
		})
		if p := b.apply(pending); p.Subscription.Pending != nil || len(p.alerts(UnknownPrice)) != 1 {
			t.Errorf("got %+v", p)
		}
		b.Prices[pro.Sync.PriceID] = pro.Terms()
		if p := b.apply(pending); p.Subscription.Pending == nil || len(p.Alerts) != 0 {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("a date of cancellation inside the period is a cancellation", func(t *testing.T) {
		for _, c := range []struct {
			after int64 // the end of the period
			want  bool
		}{{-hour, true}, {0, true}, {1000, false}} {
			s, b, _ := story(bought(basic))
			s.sub.CancelAt = s.sub.Period.End + c.after
			if s.report(); b.apply(s.reports[len(s.reports)-1]).Subscription.CancelAtPeriodEnd != c.want {
				t.Errorf("%d after the end: want %v", c.after, c.want)
			}
		}
	})
}
