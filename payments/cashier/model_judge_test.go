package cashier_test

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"purser/billing"
	"purser/metering"
	"purser/store"
	"purser/store/verify"
)

// The judge compares three things that were written by different authors: what
// the provider's own record says was paid, what the answers to the customers
// said, and what the cashier has in its books. It knows the rules of the
// interface and nothing of how the cashier follows them.

// modelPaid is something that the provider has confirmed as paid.
type modelPaid struct {
	source       billing.Source
	subscription string // at the provider; empty for a top-up
	reason       string // of the invoice
	price        string
	amount       int64
	start, end   int64 // of the period, in milliseconds
	created      int64
	at, nth      int64 // orders payments
	charge       *providerCharge
	plan         *billing.Plan // what it has to bring; nil for a top-up
	page         *modelPage    // of a checkout
	extra        bool          // it bought a second subscription
	superseded   bool          // a later period was paid before it
	late         bool          // it was collected after its subscription had ended
}

// The words of the provider.
const (
	providerPaid    = "paid"
	providerCreate  = "subscription_create"
	providerUpdate  = "subscription_update"
	providerCycle   = "subscription_cycle"
	providerActive  = "active"
	providerPastDue = "past_due"
	providerWaiting = "incomplete"
)

// accounts is which customer of the provider is whose.
func (h *modelHistory) accounts(w *modelProvider) map[string]*modelCustomer {
	owner := map[string]*modelCustomer{}
	for _, c := range h.customers {
		for _, page := range c.pages {
			if session := w.Sessions[page.session]; session != nil && session.Customer != "" {
				owner[session.Customer] = c
			}
		}
	}
	return owner
}

// paidBy lists what the customer has paid, in order, each with the plan that it
// has to bring. What was charged without having been asked for fails here.
func (h *modelHistory) paidBy(w *modelProvider, c *modelCustomer) (all []modelPaid) {
	h.Helper()
	owner := h.accounts(w)
	for _, invoice := range w.Invoices {
		if invoice.Status != providerPaid || owner[invoice.Customer] != c {
			continue
		}
		line := invoice.Lines[len(invoice.Lines)-1]
		paid := modelPaid{
			source: billing.Source{Kind: billing.Invoice, ID: invoice.ID}, subscription: invoice.Subscription, reason: invoice.Reason,
			price: line.Price, amount: invoice.AmountPaid, start: int64(line.Start) * 1000, end: int64(line.End) * 1000,
			created: int64(invoice.Created) * 1000, at: int64(invoice.PaidAt), nth: invoice.Nth, charge: w.Charges[invoice.Charge],
		}
		if paid.charge != nil {
			paid.nth = paid.charge.Nth
		}
		all = append(all, paid)
	}
	for i := range c.pages {
		page := &c.pages[i]
		session := w.Sessions[page.session]
		if session == nil || page.plan != nil || session.Payment != providerPaid {
			continue
		}
		charge := w.Charges[w.Intents[session.Intent].Charge]
		all = append(all, modelPaid{
			source: billing.Source{Kind: billing.Session, ID: session.ID}, amount: session.Total, page: page,
			at: int64(charge.Created), nth: charge.Nth, charge: charge,
		})
	}
	slices.SortFunc(all, func(a, b modelPaid) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.nth, b.nth)) })
	h.assign(w, c, all)
	return all
}

// assign finds the plan that each payment has to bring.
func (h *modelHistory) assign(w *modelProvider, c *modelCustomer, all []modelPaid) {
	h.Helper()
	current := map[string]*billing.Plan{} // of each subscription
	begun := map[string]int64{}           // its period
	used := map[int]bool{}                // requests that were charged
	for i := range all {
		p := &all[i]
		switch p.reason {
		case "":
			continue
		case providerCreate:
			for j := range c.pages {
				if session := w.Sessions[c.pages[j].session]; session != nil && session.Subscription == p.subscription {
					p.page, p.plan = &c.pages[j], c.pages[j].plan
				}
			}
			p.extra = h.isSecond(w, c, p, all[:i])
		case providerUpdate:
			for j := len(c.asked) - 1; j >= 0 && p.plan == nil; j-- {
				if !used[j] && c.asked[j].at/1000*1000 <= p.created && c.asked[j].plan.Sync.PriceID == p.price {
					p.plan, used[j] = &c.asked[j].plan, true
				}
			}
		case providerCycle:
			p.plan = h.renewal(w, c, p, current[p.subscription])
			for j := range all[:i] { // the bill of a free plan may be closed after an upgrade
				if e := &all[j]; p.amount == 0 && e.subscription == p.subscription && e.price == p.price && e.plan != nil {
					p.plan = e.plan
				}
			}
		}
		if ended := w.Subscriptions[p.subscription].EndedAt; p.reason == providerCycle && p.amount > 0 && ended != 0 && ended < p.at {
			p.late = true
			continue
		}
		if p.plan == nil || p.plan.Sync.PriceID != p.price {
			h.fail("%s was charged %d at %s for %s (%s) which it did not ask for", c.name, p.amount, modelTime(p.at*1000), p.price, p.reason)
		}
		if p.amount != p.plan.AmountCents {
			h.fail("%s was charged %d for %s, which was sold for %d", c.name, p.amount, p.plan.Key, p.plan.AmountCents)
		}
		// The bill of a renewal that costs nothing may be closed after an upgrade.
		if p.superseded = p.reason == providerCycle && p.start <= begun[p.subscription]; !p.superseded {
			current[p.subscription], begun[p.subscription] = p.plan, p.start
		}
	}
}

// isSecond reports whether a checkout was paid while another subscription that
// costs something was running, and not in order to replace it.
func (h *modelHistory) isSecond(w *modelProvider, c *modelCustomer, p *modelPaid, earlier []modelPaid) bool {
	if p.page != nil && p.page.replaces {
		return false
	}
	// One that costs nothing takes no place either.
	if p.amount == 0 && c.free != nil && c.free.anchor <= p.at*1000+999 && !c.free.over(p.at*1000) {
		return true
	}
	for _, e := range earlier {
		other := w.Subscriptions[e.subscription]
		if e.subscription == "" || e.subscription == p.subscription || e.amount == 0 || e.extra {
			continue
		}
		if other.EndedAt == 0 || int64(other.EndedAt) > p.at {
			return true
		}
	}
	return false
}

// renewal is the plan that a renewal has to be on: the one that was promised for
// the moment at which it began.
func (h *modelHistory) renewal(w *modelProvider, c *modelCustomer, p *modelPaid, current *billing.Plan) *billing.Plan {
	h.Helper()
	promise := h.promiseAt(w, c, p.subscription, p.start)
	// Between the end of a period and its charge an answer says what the charge is for.
	for _, later := range c.promises {
		if later.about == p.subscription && later.from > p.start && later.from <= p.at*1000+999 && later.turns != 0 && later.turns <= p.at*1000 {
			promise = later
			promise.turns = min(promise.turns, p.start)
		}
	}
	switch {
	case promise.unknown:
		if current != nil && current.Sync.PriceID == p.price {
			return current
		}
		for j := len(c.asked) - 1; j >= 0; j-- {
			if c.asked[j].plan.Sync.PriceID == p.price {
				return &c.asked[j].plan
			}
		}
	case promise.ends != 0 && promise.ends <= p.start:
		h.fail("%s was told that the subscription ends at %s, and was charged %d for a period from %s", c.name, modelTime(promise.ends), p.amount, modelTime(p.start))
	case promise.turns != 0 && promise.turns <= p.start:
		return promise.plan
	}
	return current
}

// promiseAt is what the last answer before a moment said about a subscription.
func (h *modelHistory) promiseAt(w *modelProvider, c *modelCustomer, subscription string, at int64) (last modelPromise) {
	for _, promise := range c.promises {
		if promise.from <= at && (promise.about == subscription || promise.about == "" && promise.from >= int64(w.Subscriptions[subscription].Created)*1000) {
			last = promise
		}
	}
	return last
}

// judge compares every customer's answer with what the provider says was paid.
func (h *modelHistory) judge() {
	h.Helper()
	w := h.provider()
	for _, c := range h.customers {
		if len(c.pages) == 0 && len(c.asked) == 0 {
			continue
		}
		sub := h.subscriptionOf(c)
		paid := h.paidBy(w, c)
		h.onePayer(c, paid)
		h.judgeAnswer(w, c, paid, sub)
	}
}

// onePayer holds renewals to periods that were not paid before.
func (h *modelHistory) onePayer(c *modelCustomer, paid []modelPaid) {
	h.Helper()
	var until int64
	for _, p := range paid {
		if p.reason == "" || p.amount == 0 || p.extra || p.late {
			continue
		}
		if p.reason == providerCycle && p.start < until {
			h.fail("%s was charged %d at %s for %s–%s, but had paid until %s", c.name, p.amount, modelTime(p.at*1000), modelTime(p.start), modelTime(p.end), modelTime(until))
		}
		until = p.end
	}
}

// judgeAnswer holds what the customer reads to what was paid.
func (h *modelHistory) judgeAnswer(w *modelProvider, c *modelCustomer, paid []modelPaid, sub *billing.Subscription) {
	h.Helper()
	extra, free := map[string]bool{}, c.free
	for _, p := range paid {
		if p.extra {
			extra[p.subscription] = true
		} else if p.reason == providerCreate && p.amount > 0 && free != nil && p.at*1000+999 >= free.anchor {
			free = nil // replaced
		}
	}
	c.free = free
	owner := h.accounts(w)
	var live []*providerSubscription
	debits := map[string]bool{} // subscriptions whose first payment is under way
	for _, s := range w.Subscriptions {
		if owner[s.Customer] != c || extra[s.ID] {
			continue
		}
		switch s.Status {
		case providerWaiting:
			debits[s.ID] = true
		case providerActive, providerPastDue:
			live = append(live, s)
		}
	}
	for _, page := range c.pages {
		session := w.Sessions[page.session]
		if page.replaces && len(live) == 1 && session != nil && debits[session.Subscription] && sub != nil && (sub.Pending == nil || sub.Pending.Target.PlanKey != page.plan.Key) {
			h.fail("%s pays for %s by a debit that is under way, and reads %s", c.name, page.plan.Key, show(*sub))
		}
	}
	switch {
	case len(debits) > 0:
	case len(live) > 1:
		h.fail("%s has %d subscriptions at the provider", c.name, len(live))
	case len(live) == 1:
		h.judgeSubscription(w, c, live[0], sub, paid)
	case c.free != nil:
		h.judgeFree(c, sub)
	case sub != nil:
		h.fail("%s has paid for nothing that runs, and reads %s", c.name, show(*sub))
	}
}

func (h *modelHistory) judgeSubscription(w *modelProvider, c *modelCustomer, live *providerSubscription, sub *billing.Subscription, paid []modelPaid) {
	h.Helper()
	var last *modelPaid
	for i := range paid {
		if paid[i].subscription == live.ID && !paid[i].superseded && !paid[i].late {
			last = &paid[i]
		}
	}
	if sub == nil || last == nil {
		h.fail("%s has the subscription %s at the provider, paid: %v, and reads %v", c.name, live.ID, last != nil, sub)
	}
	now := h.now()
	status := metering.StatusActive
	if live.Status == providerPastDue {
		status = metering.StatusPastDue
	}
	if sub.Status != status || sub.Period.Start != last.start || sub.Period.End != last.end || !sameTerms(sub.Terms, last.plan) {
		h.fail("%s reads %s at %s, want %s on %s for %s–%s, which was paid last\nterms  %+v\nwanted %+v",
			c.name, show(*sub), modelTime(now), status, last.plan.Key, modelTime(last.start), modelTime(last.end), sub.Terms, *last.plan)
	}
	if sub.CancelAtPeriodEnd != live.CancelAtPeriodEnd {
		h.fail("%s reads %s, and the provider's flag is %v", c.name, show(*sub), live.CancelAtPeriodEnd)
	}
	h.judgePromise(w, c, live, sub, last)
	h.judgePending(w, c, live, sub)
}

// judgePromise holds what is to what was promised.
func (h *modelHistory) judgePromise(w *modelProvider, c *modelCustomer, live *providerSubscription, sub *billing.Subscription, last *modelPaid) {
	h.Helper()
	now := h.now()
	promise := h.promiseAt(w, c, live.ID, now)
	if promise.waits && last.reason == providerUpdate && last.at*1000+999 >= promise.from {
		promise.turns = 0 // an upgrade was paid since
	}
	switch {
	case promise.unknown || sub.Status != metering.StatusActive:
		return
	case promise.ends != 0:
		if now >= promise.ends+1000 {
			h.fail("%s was told that the subscription ends at %s, and at %s reads %s", c.name, modelTime(promise.ends), modelTime(now), show(*sub))
		}
		if !sub.CancelAtPeriodEnd || sub.Period.End > promise.ends {
			h.fail("%s was told that the subscription ends at %s, and reads %s", c.name, modelTime(promise.ends), show(*sub))
		}
	case promise.turns != 0 && now < promise.turns:
		if sub.Scheduled == nil || sub.Scheduled.EffectiveAt != promise.turns || sub.Scheduled.Target.PlanKey != promise.plan.Key {
			h.fail("%s was told to be on %s from %s, and reads %s", c.name, promise.plan.Key, modelTime(promise.turns), show(*sub))
		}
	case promise.turns != 0:
		if now >= promise.turns+modelHour+modelMinute && last.at*1000 < promise.turns {
			h.fail("%s was told to be on %s from %s, and at %s reads %s", c.name, promise.plan.Key, modelTime(promise.turns), modelTime(now), show(*sub))
		}
	case sub.Scheduled != nil:
		h.fail("%s was told of no change, and reads %s", c.name, show(*sub))
	}
}

// judgePending compares the change that waits for payment with the provider's.
func (h *modelHistory) judgePending(w *modelProvider, c *modelCustomer, live *providerSubscription, sub *billing.Subscription) {
	h.Helper()
	now := h.now()
	want := int64(0)
	if live.Pending != nil {
		want = int64(live.Pending.Expires) * 1000
	}
	for _, page := range c.pages {
		// A page that sells another plan in place of this one.
		session := w.Sessions[page.session]
		if page.plan != nil && page.at >= int64(live.Created)*1000 && session != nil && session.Status == "open" {
			want = int64(session.Expires) * 1000
		}
	}
	switch {
	case want <= now && sub.Pending != nil:
		h.fail("%s reads %s, and nothing waits for payment at the provider", c.name, show(*sub))
	case want > now && (sub.Pending == nil || sub.Pending.ExpiresAt != want || sub.Pending.PaymentURL == ""):
		h.fail("%s reads %s, and at the provider a change waits for payment until %s", c.name, show(*sub), modelTime(want))
	}
}

// judgeFree holds a free subscription to the calendar.
func (h *modelHistory) judgeFree(c *modelCustomer, sub *billing.Subscription) {
	h.Helper()
	now := h.now()
	n := 0
	for addMonths(c.free.anchor, n+1) <= now {
		n++
	}
	start, end := addMonths(c.free.anchor, n), addMonths(c.free.anchor, n+1)
	if c.free.ends != 0 && now >= c.free.ends {
		c.free = nil
		if sub != nil {
			h.fail("%s cancelled a free plan, and reads %s", c.name, show(*sub))
		}
		return
	}
	if sub == nil || sub.CancelAtPeriodEnd != (c.free.ends != 0) || sub.Status != metering.StatusActive || sub.Period.Start != start || sub.Period.End != end || !sameTerms(sub.Terms, &c.free.plan) {
		h.fail("%s has the free plan of %s since %s, and reads %v", c.name, modelTime(c.free.anchor), modelTime(start), sub)
	}
}

// addMonths is the same day of a later month, or that month's last day.
func addMonths(at int64, months int) int64 {
	t := time.UnixMilli(at).UTC()
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1).UnixMilli()
}

func sameTerms(sub billing.Terms, want *billing.Plan) bool {
	return sub.PlanKey == want.Key && sub.Price == want.Price && sub.TopupsEnabled == want.TopupsEnabled &&
		slices.Equal(sub.Limits, want.Limits) && slices.Equal(sub.Grants, want.Grants) && slices.Equal(sub.Multipliers, want.Multipliers)
}

// finish ends a history: everything that was held back arrives, what failed is
// tried again, and the books are compared with the provider's record.
func (h *modelHistory) finish() {
	h.Helper()
	h.taken = append(h.taken, "the end")
	h.releaseAll(modelStep{})
	h.advanceTo(h.now() + 2*modelHour)
	h.judge()
	w := h.provider()
	alerts, _, err := h.store.Payments(h.scope).Alerts(h.ctx, store.Page{Limit: 100}, false)
	h.check(err)
	visible := map[string]bool{}
	for _, alert := range alerts {
		visible[alert.ObjectID] = true
	}
	h.judgeJobs(visible)
	for _, c := range h.customers {
		h.judgeBooks(w, c, visible)
	}
	verified, err := h.store.Verification(h.scope).Verify(h.ctx, verify.Options{})
	h.check(err)
	if len(verified.Differences) > 0 {
		h.fail("verify finds %+v", verified.Differences)
	}
}

// judgeJobs: after a calm end no job fails any more, or people can see that.
func (h *modelHistory) judgeJobs(visible map[string]bool) {
	h.Helper()
	failing, err := h.store.Queue(h.scope).FailingJobs(h.ctx, 100)
	h.check(err)
	for _, job := range failing {
		if !visible[job.Object] {
			h.fail("the job %s of %s has failed %d times, and it is shown nowhere: %s", job.Kind, job.Object, job.Tries, job.LastError)
		}
	}
}

// judgeBooks holds what was booked to what was paid, and the wallet to both.
func (h *modelHistory) judgeBooks(w *modelProvider, c *modelCustomer, visible map[string]bool) {
	h.Helper()
	booked := paymentsOf(h, h.admin, h.scope, c.name)
	wallet := h.wallet(c.name)
	want := map[string]*big.Int{}
	for credit, moved := range c.moved {
		want[credit] = new(big.Int).Set(moved)
	}
	bySource := map[billing.Source]*billing.Payment{}
	for i := range booked {
		bySource[booked[i].Source] = &booked[i]
	}
	for _, p := range h.paidBy(w, c) {
		sub := bySource[p.source]
		delete(bySource, p.source)
		h.judgePayment(w, c, p, sub, booked, visible, wallet)
		if sub != nil {
			h.expect(want, sub, h.reversed(w, p.charge), visible)
		}
	}
	for _, left := range bySource {
		if left.AmountCents > 0 || left.Source.Kind != billing.FreePeriod {
			h.fail("%s has a booked payment of %d that the provider does not know: %+v", c.name, left.AmountCents, *left)
		}
		h.expect(want, left, 0, visible)
	}
	h.judgeFreeGrants(c, booked)
	for _, b := range wallet.Balances {
		if want[b.CreditKey] == nil {
			want[b.CreditKey] = new(big.Int)
		}
		if held := signed64(b); held.Cmp(want[b.CreditKey]) != 0 {
			h.fail("%s holds %s less %s of %s, want %s\nbooked %+v", c.name, b.Amount, b.Debt, b.CreditKey, want[b.CreditKey], booked)
		}
		delete(want, b.CreditKey)
	}
	for credit, amount := range want {
		if amount.Sign() != 0 {
			h.fail("%s holds no %s, want %s", c.name, credit, amount)
		}
	}
}

func signed64(b metering.Balance) *big.Int {
	held := new(big.Int).SetUint64(uint64(b.Amount))
	return held.Sub(held, new(big.Int).SetUint64(uint64(b.Debt)))
}

// reversed is how much of a charge has gone back, by refunds and disputes.
func (h *modelHistory) reversed(w *modelProvider, charge *providerCharge) (cents int64) {
	if charge == nil {
		return 0
	}
	for _, refund := range w.Refunds {
		if refund.Charge == charge.ID && refund.Status != "failed" && refund.Status != "canceled" {
			cents += refund.Amount
		}
	}
	for _, dispute := range w.Disputes {
		if dispute.Charge != charge.ID {
			continue
		}
		for _, movement := range dispute.Movements {
			cents -= movement.Amount
		}
	}
	return min(cents, charge.Amount)
}

// judgePayment: what was paid is booked with the credits it was paid for, or it
// is set aside and people can see that.
func (h *modelHistory) judgePayment(w *modelProvider, c *modelCustomer, p modelPaid, sub *billing.Payment, booked []billing.Payment, visible map[string]bool, wallet metering.Wallet) {
	h.Helper()
	gone := h.reversed(w, p.charge)
	alerted := visible[p.source.ID] || visible[p.subscription]
	if p.extra {
		if gone != p.amount || !alerted {
			h.fail("%s paid %d for a second subscription, got %d back, alert: %v", c.name, p.amount, gone, alerted)
		}
		return
	}
	if p.late {
		if gone != p.amount || sub == nil || len(sub.Credits) > 0 {
			h.fail("%s was charged %d after the subscription had ended, and got %d back: booked is %+v", c.name, p.amount, gone, sub)
		}
		return
	}
	if sub == nil && p.superseded && p.amount == 0 {
		return
	}
	if sub == nil {
		h.fail("%s paid %d for %s at %s, and nothing is booked; alert: %v, of it %d went back", c.name, p.amount, p.what(), modelTime(p.at*1000), alerted, gone)
	}
	if sub.AmountCents != p.amount {
		h.fail("%s paid %d for %s, and %d is booked", c.name, p.amount, p.what(), sub.AmountCents)
	}
	back := min(sub.AmountCents, sub.RefundedCents+sub.DisputedCents)
	if back != gone && !alerted {
		h.fail("%s got %d back of the %d for %s, and %d is booked", c.name, gone, p.amount, p.what(), back)
	}
	if p.charge != nil && p.reason != "" && gone == p.amount && !h.asked(w, p.charge) {
		h.fail("%s paid %d for %s, and it was refunded without a request", c.name, p.amount, p.what())
	}
	given, due := map[string]metering.Amount{}, map[string]metering.Amount{}
	for _, g := range sub.Credits {
		given[g.CreditKey] += g.Amount
	}
	for _, g := range p.due() {
		if g.Amount > 0 {
			due[g.CreditKey] += g.Amount
		}
	}
	for credit, amount := range given {
		if due[credit] != amount {
			h.fail("%s was given %s %s for %s, want %s", c.name, amount, credit, p.what(), due[credit])
		}
	}
	for credit, amount := range due {
		if given[credit] == amount || p.amount == 0 && (p.superseded || h.grantedBefore(booked, p)) {
			continue
		}
		if !alerted {
			h.fail("%s paid %d for %s, got no %s, and it is shown nowhere", c.name, p.amount, p.what(), credit)
		}
		if len(wallet.Balances) < modelMostBalances && !slices.ContainsFunc(wallet.Balances, func(b metering.Balance) bool {
			return b.CreditKey == credit && len(roomFor(wallet, credit, amount)) > 0
		}) && !h.nearLimits(c) {
			h.fail("%s paid %d for %s and got no %s, for which there is room", c.name, p.amount, p.what(), credit)
		}
	}
}

// nearLimits reports whether the customer's balances have been near a limit, so
// that some payment may have found no room.
func (h *modelHistory) nearLimits(c *modelCustomer) bool { return c.brim }

// asked reports whether the history itself gave the money of a charge back.
func (h *modelHistory) asked(w *modelProvider, charge *providerCharge) bool {
	return h.gaveBack[charge.ID] || slices.ContainsFunc(disputesOf(w), func(d *providerDispute) bool { return d.Charge == charge.ID })
}

func disputesOf(w *modelProvider) (all []*providerDispute) {
	for _, d := range w.Disputes {
		all = append(all, d)
	}
	return all
}

// grantedBefore reports whether a free period's credits were given already in
// another period of the same plan that overlaps it.
func (h *modelHistory) grantedBefore(booked []billing.Payment, p modelPaid) bool {
	return slices.ContainsFunc(booked, func(b billing.Payment) bool {
		return b.Free && b.PlanID == p.plan.ID && len(b.Credits) > 0 && b.Period.Start < p.end && p.start < b.Period.End
	})
}

func (p modelPaid) what() string {
	if p.plan == nil {
		return fmt.Sprintf("a top-up (%s)", p.source.ID)
	}
	return fmt.Sprintf("%s %s–%s (%s, %s)", p.plan.Key, modelTime(p.start), modelTime(p.end), strings.TrimPrefix(p.reason, "subscription_"), p.source.ID)
}

// due is what the payment has to bring.
func (p modelPaid) due() []billing.Grant {
	if p.plan != nil {
		return p.plan.Grants
	}
	return []billing.Grant{{CreditKey: p.page.credit, Amount: p.page.amount}}
}

// expect adds what a booked payment leaves in the wallet, after what went back.
func (h *modelHistory) expect(want map[string]*big.Int, sub *billing.Payment, gone int64, visible map[string]bool) {
	for _, g := range sub.Credits {
		if want[g.CreditKey] == nil {
			want[g.CreditKey] = new(big.Int)
		}
		amount := new(big.Int).SetUint64(uint64(g.Amount))
		if sub.AmountCents > 0 {
			taken := new(big.Int).Mul(amount, big.NewInt(gone))
			taken.Quo(taken, big.NewInt(sub.AmountCents))
			if visible[sub.Source.ID] {
				taken = new(big.Int) // what was set aside is what was noted
				for _, t := range sub.TakenBack {
					if t.CreditKey == g.CreditKey {
						taken.SetUint64(uint64(t.Amount))
					}
				}
			}
			amount.Sub(amount, taken)
		}
		want[g.CreditKey].Add(want[g.CreditKey], amount)
	}
}

// judgeFreeGrants: a free plan grants at most once in any interval, and each of
// its periods is covered by a grant.
func (h *modelHistory) judgeFreeGrants(c *modelCustomer, booked []billing.Payment) {
	h.Helper()
	for i, a := range booked {
		if !a.Free {
			continue
		}
		covered := len(a.Credits) > 0
		for j, b := range booked {
			if i == j || !b.Free || b.PlanID != a.PlanID || len(b.Credits) == 0 || a.Period.Start >= b.Period.End || b.Period.Start >= a.Period.End {
				continue
			}
			if len(a.Credits) > 0 {
				h.fail("%s was given the credits of a free plan twice: for %s–%s and %s–%s", c.name,
					modelTime(a.Period.Start), modelTime(a.Period.End), modelTime(b.Period.Start), modelTime(b.Period.End))
			}
			covered = true
		}
		if !covered && !c.brim {
			h.fail("%s was never given the credits of the free plan for %s–%s", c.name, modelTime(a.Period.Start), modelTime(a.Period.End))
		}
	}
}
