package billing

import (
	"cmp"
	"slices"

	"purser/metering"
)

// Current is the stored state of a subscription before a report is applied.
type Current struct {
	Subscription Subscription

	// Changes are all that were ever requested for the subscription, the checkout that
	// created it, and the checkouts that would replace it. They define on which terms
	// an invoice was sold, however late it is read.
	Changes []Change
	// Prices are the catalog's terms by the provider's price id, for purchases made at the
	// provider directly.
	Prices map[string]Terms
	// Payments are the settled payments of the subscription's invoices, and the
	// identity's free ones.
	Payments []Payment
	// Conflicting is another live subscription of the identity; nil for none.
	Conflicting *Subscription
	// ReplacedFrom is the start of the first period of the subscription that replaced
	// this one: when it was paid in its checkout, also by a bank debit that was
	// collected days later. Zero for none.
	ReplacedFrom int64
}

// Projection is the result of applying a report. Everything but the actions is stored
// in one transaction; the actions are calls for later.
type Projection struct {
	Subscription Subscription
	Replaced     *Subscription // the conflicting one, ended, when this one replaced it
	Changes      []Change      // those that changed state
	Settled      []Payment     // to be credited and stored, in this order
	Actions      []Action
	Alerts       []Alert
}

// Action is a call that the provider needs. It may be requested again until it is
// done; kind and object identify it.
type Action struct {
	Kind     ActionKind
	ObjectID string
}

// ActionKind is the call to make.
type ActionKind string

const (
	CancelNow     ActionKind = "cancel_now"     // cancel a subscription, without proration or invoice
	RefundInvoice ActionKind = "refund_invoice" // refund all that was paid of it
	RefundCharge  ActionKind = "refund_charge"  // refund what is left of it; requested by a member
	VoidRenewal   ActionKind = "void_renewal"   // void an unpaid renewal that an upgrade has replaced
	ReturnBalance ActionKind = "return_balance" // credit what the customer's balance at the provider paid of an invoice
)

// Alert is something that a person should review.
type Alert struct {
	Kind     AlertKind
	ObjectID string
}

// AlertKind is what to review.
type AlertKind string

const (
	UnknownPrice          AlertKind = "unknown_price"      // sold or scheduled at the provider directly: the previous terms stay
	UnrequestedUpdate     AlertKind = "unasked_update"     // a paid update that was not requested here: nothing is granted
	DuplicateSubscription AlertKind = "extra_subscription" // a second one for an identity: cancelled and refunded
	AmountMismatch        AlertKind = "amount_mismatch"    // a payment that differs from what was requested: set aside
	BalanceFull           AlertKind = "balance_full"       // a paid grant exceeds the wallet's limits: it was not booked
	DebtFull              AlertKind = "debt_full"          // a refund or dispute exceeds the debt limit: the rest was not booked
	BalanceSpent          AlertKind = "balance_spent"      // what the customer's balance at the provider paid of an invoice could not be credited back
	PaidLate              AlertKind = "paid_late"          // a renewal that was paid after its subscription had ended: refunded
	ActionRefused         AlertKind = "action_refused"     // the provider refused a cancellation or refund, or the refund failed later
	KeyRefused            AlertKind = "key_refused"        // the provider refused the stored API key
	SaleMissing           AlertKind = "sale_missing"       // paid for a checkout of ours that the database does not have: nothing is granted
)

// Recurs reports whether each alert of the kind is about a new problem, so that a
// resolved one is opened again. The other kinds repeat with every report.
func (k AlertKind) Recurs() bool {
	return k == BalanceFull || k == DebtFull || k == ActionRefused
}

// Project applies the provider's state to a subscription. The result depends on that
// state alone, not on how often or in which order reports were applied: an outdated
// report does no harm, and the next one corrects it.
func Project(current Current, remote ProviderSubscription, now int64) Projection {
	p := projector{current: current, remote: remote, now: now, applied: map[int]string{}}
	p.Subscription = current.Subscription
	p.detectDuplicate()
	p.settleInvoices()
	p.setPeriod()
	p.setStatus()
	p.setCancellation()
	p.setScheduled()
	p.setPending()
	p.updateChanges()
	p.endReplaced()
	return p.Projection
}

// projector builds a projection.
type projector struct {
	Projection
	current Current
	remote  ProviderSubscription
	now     int64

	purchases   []purchase
	applied     map[int]string // paid changes by position, with the invoice if known
	queued      int            // position of the change that is scheduled, or none
	following   int            // position of the change scheduled after an invoiced one, or none
	waiting     int            // position of the change that waits for payment, or none
	openInvoice ProviderInvoice
}

// none is the position of a change that does not exist.
const none = -1

// detectDuplicate marks a subscription that may not come into force because another
// one is live. Of two bought at once the one that is reported second is the duplicate.
func (p *projector) detectDuplicate() {
	s := &p.Subscription
	if s.Duplicate || s.Begun || s.Ended() || p.current.Conflicting == nil || p.replacesConflicting() {
		return
	}
	if p.remote.Status.Terminal() && len(paidPurchases(p.remote.Invoices)) == 0 {
		return
	}
	s.Duplicate = true
	p.addAlert(DuplicateSubscription, p.remote.ID)
}

// replacesConflicting reports whether this subscription replaces the conflicting one:
// it was bought for that, or it is paid and the other is free.
func (p *projector) replacesConflicting() bool {
	if p.current.Conflicting.Terms.Free() && !p.current.Subscription.Terms.Free() {
		return true
	}
	return slices.ContainsFunc(p.current.Changes, func(c Change) bool { return c.replaces(*p.current.Conflicting) })
}

// setPeriod moves period and terms to the latest that was paid. Around a renewal the
// provider's own period is ahead of the payment, so it is not used.
func (p *projector) setPeriod() {
	s := &p.Subscription
	if s.Duplicate {
		return
	}
	if len(p.purchases) == 0 {
		return
	}
	last := slices.MaxFunc(p.purchases, p.compare)
	if !s.Begun || last.line.Period.Start >= s.Period.Start {
		s.Begun, s.Period, s.Terms = true, last.line.Period, last.terms
	}
}

// compare orders purchases by the start of their periods. The provider counts in
// seconds, so an upgrade may start together with the purchase before it: then an
// update comes after what it updates, and of two updates the one that was requested
// later. The provider's current price is not used: it changes with a downgrade an hour
// before that is paid.
func (p *projector) compare(a, b purchase) int {
	requested := 0
	if a.change != b.change && a.change != none && b.change != none {
		requested = -1
		if p.current.Changes[a.change].requestedAfter(p.current.Changes[b.change]) {
			requested = 1
		}
	}
	return cmp.Or(
		cmp.Compare(a.line.Period.Start, b.line.Period.Start),
		cmp.Compare(a.invoice.Reason.rank(), b.invoice.Reason.rank()),
		requested,
		cmp.Compare(a.invoice.CreatedAt, b.invoice.CreatedAt),
		cmp.Compare(a.invoice.ID, b.invoice.ID),
	)
}

func (p *projector) setStatus() {
	s := &p.Subscription
	if !s.Begun && !p.remote.Period.IsZero() {
		s.Period = p.remote.Period
	}
	switch {
	case s.Ended():
	case p.remote.Status.Terminal():
		at := cmp.Or(p.remote.EndedAt, p.now)
		*s = s.End(at)
	case !s.Begun:
		s.Status = metering.StatusIncomplete
	default:
		s.Status = statusOf(p.remote.Status)
	}
	if s.Duplicate && !p.remote.Status.Terminal() {
		p.addAction(CancelNow, p.remote.ID)
	}
}

// statusOf is for a subscription that has begun, which cannot be incomplete; an
// unknown status counts as paused.
func statusOf(remote ProviderStatus) metering.SubscriptionStatus {
	switch remote {
	case ProviderActive:
		return metering.StatusActive
	case ProviderTrialing:
		return metering.StatusTrialing
	case ProviderPastDue:
		return metering.StatusPastDue
	case ProviderUnpaid:
		return metering.StatusUnpaid
	default:
		return metering.StatusPaused
	}
}

func (p *projector) setCancellation() {
	p.Subscription.CancelAtPeriodEnd = p.remote.EndsWithPeriod()
}

// endReplaced ends the subscription that this one replaces, in the same step in which
// this one comes into force.
func (p *projector) endReplaced() {
	if p.current.Conflicting == nil || !p.Subscription.InUse() || !p.replacesConflicting() {
		return
	}
	p.Replaced = new(p.current.Conflicting.End(p.now))
	if !p.Replaced.Local() {
		p.addAction(CancelNow, p.Replaced.ProviderID)
	}
}

func (p *projector) addAction(kind ActionKind, objectID string) {
	p.Actions = append(p.Actions, Action{kind, objectID})
}

func (p *projector) addAlert(kind AlertKind, objectID string) {
	p.Alerts = append(p.Alerts, Alert{kind, objectID})
}
