package billing

import (
	"fmt"
	"slices"

	"purser/metering"
)

// shop is a model of the provider for one subscription: what it does with the
// money, and the report that it would give after each step. Its clock counts in
// seconds, a little behind ours.
type shop struct {
	now      int64
	sub      ProviderSubscription
	interval map[string]Interval // by price
	cents    map[string]int64
	asked    []Change
	reports  []report
}

type report struct {
	remote ProviderSubscription
	now    int64
}

func openShop(plans ...Plan) *shop {
	s := &shop{now: 1_700_000_000_000, interval: map[string]Interval{}, cents: map[string]int64{}}
	for _, p := range plans {
		s.interval[p.Sync.PriceID], s.cents[p.Sync.PriceID] = p.Interval, p.AmountCents
	}
	return s
}

// request adds the change that is stored before the provider is called.
func (s *shop) request(kind ChangeKind, plan Plan) {
	s.asked = append(s.asked, Change{
		ID:   named(fmt.Sprintf("change-%02d", len(s.asked))),
		Kind: kind, Target: plan.Terms(), State: ChangeRequested, RequestedAt: s.now + 700,
	})
}

// buy is a checkout that is done and not yet paid.
func (s *shop) buy(plan Plan) {
	s.request(Checkout, plan)
	price := plan.Sync.PriceID
	s.sub = ProviderSubscription{ID: "sub_1", Status: ProviderIncomplete, PriceID: price, Period: s.periodFrom(s.now, price)}
	s.bill(InvoiceOpen, ReasonCreate, price, s.sub.Period)
	s.report()
}

func (s *shop) payFirst() {
	s.last().pay()
	s.sub.Status = ProviderActive
	s.report()
}

func (s *shop) upgrade(plan Plan, paid bool) {
	s.callOff()
	s.request(Upgrade, plan)
	price := plan.Sync.PriceID
	s.bill(InvoiceOpen, ReasonUpdate, price, s.periodFrom(s.now, price))
	s.sub.Pending = &ProviderPending{PriceID: price, ExpiresAt: min(s.sub.Period.End, s.now+23*hour)}
	if paid {
		s.payPending()
	} else {
		s.report()
	}
}

func (s *shop) payPending() {
	s.last().pay()
	s.sub.PriceID, s.sub.Period, s.sub.Pending = s.last().Lines[0].PriceID, s.last().Lines[0].Period, nil
	s.report()
}

func (s *shop) expirePending() {
	s.now = s.sub.Pending.ExpiresAt
	s.dropPending()
	s.report()
}

func (s *shop) downgrade(plan Plan) {
	s.callOff()
	s.request(Downgrade, plan)
	s.sub.Next = &ProviderPhase{PriceID: plan.Sync.PriceID, At: s.sub.Period.End}
	s.report()
}

func (s *shop) keep() {
	s.callOff()
	s.report()
}

func (s *shop) cancel(atPeriodEnd bool) {
	s.callOff()
	s.sub.CancelAtPeriodEnd = atPeriodEnd
	s.report()
}

// turn is the end of the period: the next one begins, and its invoice is a draft
// for an hour.
func (s *shop) turn() {
	s.now = s.sub.Period.End
	s.dropPending()
	if s.sub.CancelAtPeriodEnd {
		s.end()
		return
	}
	if s.sub.Next != nil {
		s.sub.PriceID, s.sub.Next = s.sub.Next.PriceID, nil
	}
	s.sub.Period = s.periodFrom(s.sub.Period.End, s.sub.PriceID)
	s.bill(InvoiceDraft, ReasonCycle, s.sub.PriceID, s.sub.Period)
	s.report()
}

func (s *shop) charge(succeeds bool) {
	s.now += hour
	if succeeds {
		s.last().pay()
		s.sub.Status = ProviderActive
	} else {
		s.last().Status, s.sub.Status = InvoiceOpen, ProviderPastDue
	}
	s.report()
}

func (s *shop) end() {
	s.sub.Status, s.sub.EndedAt = ProviderCanceled, s.now
	s.report()
}

func (s *shop) callOff() {
	s.sub.Next = nil
	s.dropPending()
}

func (s *shop) dropPending() {
	if s.sub.Pending != nil {
		s.last().Status, s.sub.Pending = InvoiceVoid, nil
	}
}

func (s *shop) bill(status InvoiceStatus, reason InvoiceReason, price string, period metering.Period) {
	id := fmt.Sprintf("in_%02d", len(s.sub.Invoices))
	s.sub.Invoices = append(s.sub.Invoices, ProviderInvoice{
		ID: id, Status: status, Reason: reason, CreatedAt: s.now, Currency: "usd",
		ChargeID: "ch_" + id, PaymentURL: "https://pay.example/" + id,
		Lines: []ProviderLine{{Subscription: true, PriceID: price, AmountCents: s.cents[price], Period: period}},
	})
}

func (s *shop) last() *ProviderInvoice { return &s.sub.Invoices[len(s.sub.Invoices)-1] }

func (i *ProviderInvoice) pay() {
	i.Status, i.AmountPaid = InvoicePaid, i.Lines[0].AmountCents
}

func (s *shop) periodFrom(at int64, price string) metering.Period {
	return s.interval[price].Containing(at, at)
}

func (s *shop) report() { s.reports = append(s.reports, report{s.sub.copy(), s.now}) }

func (s ProviderSubscription) copy() ProviderSubscription {
	s.Invoices = slices.Clone(s.Invoices)
	return s
}

// books are what we hold, kept up to date with what follows from each report.
type books struct{ Current }

func openBooks(changes []Change, prices ...Plan) *books {
	b := &books{Current{Changes: slices.Clone(changes), Prices: map[string]Terms{}}}
	for _, p := range prices {
		b.Prices[p.Sync.PriceID] = p.Terms()
	}
	b.Subscription = Begin(named("subscription"), "ada", "sub_1", changes[0], 1)
	return b
}

func (b *books) apply(r report) Projection {
	p := Project(b.Current, r.remote, r.now)
	b.Subscription = p.Subscription
	for _, moved := range p.Changes {
		at := slices.IndexFunc(b.Changes, func(c Change) bool { return c.ID == moved.ID })
		b.Changes[at] = moved
	}
	b.Payments = concat(b.Payments, p.Settled)
	return p
}
