package billing

import (
	"cmp"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"purser/metering"
)

// history draws a life of a subscription at the provider.
func history(t *rapid.T) *shop {
	plans := []Plan{free, basic, pro, proYear, cheapYear}
	s := openShop(plans...)
	plan := func(t *rapid.T) Plan { return plans[rapid.IntRange(0, len(plans)-1).Draw(t, "plan")] }
	s.buy(plan(t))
	if rapid.IntRange(0, 9).Draw(t, "abandoned") == 0 {
		s.sub.Status = ProviderIncompleteExpired
		s.report()
		return s
	}
	s.payFirst()
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		// Sometimes the next step comes within the same second.
		s.now += rapid.SampledFrom([]int64{0, second, hour}).Draw(t, "pause")
		target := plan(t)
		order, err := DecideChange(s.holder(plans), target)
		switch rapid.IntRange(0, 8).Draw(t, "step") {
		case 0, 1:
			if err == nil && order.Kind == Upgrade {
				s.upgrade(target, rapid.Bool().Draw(t, "paid"))
			}
		case 2:
			if s.sub.Pending != nil {
				s.payPending()
			}
		case 3:
			if s.sub.Pending != nil {
				s.expirePending()
			}
		case 4:
			if err == nil && order.Kind == Downgrade {
				s.downgrade(target)
			}
		case 5:
			s.keep()
		case 6:
			s.cancel(rapid.Bool().Draw(t, "cancel"))
		default:
			s.turn()
			if s.sub.Status.Terminal() {
				return s
			}
			for range rapid.IntRange(0, 2).Draw(t, "failures") {
				s.charge(false)
			}
			if rapid.IntRange(0, 9).Draw(t, "given up") == 0 {
				s.end()
				return s
			}
			s.charge(true)
		}
	}
	return s
}

// holder is the subscription as its holder has it, to ask what may be changed.
func (s *shop) holder(plans []Plan) *Subscription {
	at := slices.IndexFunc(plans, func(p Plan) bool { return p.Sync.PriceID == s.sub.PriceID })
	return with(on(plans[at]), func(holder *Subscription) { holder.CancelAtPeriodEnd = s.sub.CancelAtPeriodEnd })
}

// view is what the world can see of the books: the subscription, the credits by
// money object, and what became of the changes.
type view struct {
	Subscription Subscription
	Payments     []Payment
	Applied      []bool
	Pending      []bool
}

func (b *books) view() view {
	v := view{Subscription: b.Subscription, Payments: slices.Clone(b.Payments)}
	slices.SortFunc(v.Payments, func(a, b Payment) int { return cmp.Compare(a.Source.ID, b.Source.ID) })
	for _, c := range b.Changes {
		v.Applied = append(v.Applied, c.State == ChangeApplied)
		v.Pending = append(v.Pending, c.State == ChangePending)
	}
	return v
}

// Reports that are repeated and mixed up end where those in order end, as soon
// as the last report was applied; and the credits do so even before.
func TestReportsInAnyOrderAndNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := history(t)
		ordered := openBooks(s.asked)
		for _, r := range s.reports {
			ordered.apply(r)
		}
		mixed := openBooks(s.asked)
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		reports := slices.Concat(s.reports, s.reports, s.reports)
		random.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
		for _, r := range reports {
			remote := r.remote.copy()
			random.Shuffle(len(remote.Invoices), func(i, j int) {
				remote.Invoices[i], remote.Invoices[j] = remote.Invoices[j], remote.Invoices[i]
			})
			mixed.apply(report{remote, r.now})
		}
		if got, want := total(mixed.Payments), total(ordered.Payments); got != want {
			t.Fatalf("mixed up, %d credits came in, and %d in order", got, want)
		}
		mixed.apply(s.reports[len(s.reports)-1])
		if got, want := mixed.view(), ordered.view(); !reflect.DeepEqual(got, want) {
			t.Fatalf("mixed up:\n%+v\n\nin order:\n%+v", got, want)
		}
	})
}

func TestTheSameReportTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := history(t)
		b := openBooks(s.asked)
		for _, r := range s.reports {
			b.apply(r)
			before := b.Current
			p := b.apply(r)
			if len(p.Settled) != 0 || len(p.Changes) != 0 || len(p.Actions) != 0 || len(p.Alerts) != 0 {
				t.Fatalf("said again, it brings %+v", p)
			}
			if !reflect.DeepEqual(b.Subscription, before.Subscription) {
				t.Fatalf("it became %+v\nand was %+v", b.Subscription, before.Subscription)
			}
		}
	})
}

// Every period that was paid has its credits, once, on the terms of its purchase, and
// the subscription never has what was not paid.
func TestCreditsFollowTheMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := history(t)
		b := openBooks(s.asked)
		for _, r := range s.reports {
			p := b.apply(r)
			if p.Subscription.Begun && !slices.ContainsFunc(r.remote.Invoices, func(i ProviderInvoice) bool {
				line := i.Lines[0]
				return i.Status == InvoicePaid && line.Period == p.Subscription.Period && line.PriceID == p.Subscription.Terms.PriceID
			}) {
				t.Fatalf("nobody paid for %v on %s", p.Subscription.Period, p.Subscription.Terms.PlanKey)
			}
		}
		seen := map[Source]bool{}
		for _, p := range b.Payments {
			if seen[p.Source] {
				t.Fatalf("%v was settled twice", p.Source)
			}
			seen[p.Source] = true
		}
		for _, i := range s.sub.Invoices {
			if paid := i.Status == InvoicePaid; paid != seen[Source{Invoice, i.ID}] {
				t.Fatalf("%s is %s, and settled: %v", i.ID, i.Status, !paid)
			}
			at := slices.IndexFunc(b.Payments, func(p Payment) bool { return p.Source.ID == i.ID })
			if at >= 0 && i.AmountPaid > 0 && total(b.Payments[at:at+1]) != mustGrant(i.Lines[0].PriceID) {
				t.Fatalf("%s brought %v", i.ID, b.Payments[at].Credits)
			}
		}
	})
}

func mustGrant(priceID string) (want metering.Amount) {
	for _, p := range []Plan{basic, pro, proYear, cheapYear} {
		if p.Sync.PriceID == priceID {
			want = p.Grants[0].Amount
		}
	}
	return want
}
