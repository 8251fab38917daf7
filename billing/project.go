package billing

import (
	"cmp"
	"slices"

	"purser/metering"
)

// Current is what we hold of a subscription before the provider is heard.
type Current struct {
	Subscription Subscription

	// Changes are all that were ever asked of the subscription, the checkout that
	// made it, and the checkouts that would replace it. They tell on which terms an
	// invoice was sold, however late it is seen.
	Changes []Change
	// Prices are the terms in the catalog by the provider's price, for what was
	// sold there without us.
	Prices map[string]Terms
	// Payments are those of the subscription's invoices that are settled, and the
	// identity's free ones.
	Payments []Payment
	// Rival is another live subscription of the identity; nil for none.
	Conflicting *Subscription
	// ReplacedFrom is when the first period began of the subscription that took this
	// one's place: the moment in which it was paid for on its page, also by a bank debit
	// that was collected days later. Zero for none.
	ReplacedFrom int64
}

// Projection is what follows from the provider's word. Everything but the
// actions is stored in one transaction; the actions are calls for later.
type Projection struct {
	Subscription Subscription
	Replaced     *Subscription // the rival, ended, when this one took its place
	Changes      []Change      // those that moved
	Settled      []Payment     // to be credited, in this order, and remembered
	Actions      []Action
	Alerts       []Alert
}

// Action is something that the provider has to be asked for. It may be said again
// as long as it is not done; the kind and the object make it one.
type Action struct {
	Kind     ActionKind
	ObjectID string
}

// ActionKind is what to ask the provider for.
type ActionKind string

// The actions.
const (
	CancelNow     ActionKind = "cancel_now"     // a subscription, without proration or invoice
	RefundInvoice ActionKind = "refund_invoice" // all that was paid of it
	VoidRenewal   ActionKind = "void_renewal"   // an unpaid renewal whose period an upgrade has replaced
	ReturnBalance ActionKind = "return_balance" // what the customer's balance at the provider paid of an invoice
)

// Alert is something that a person should look at.
type Alert struct {
	Kind     AlertKind
	ObjectID string
}

// AlertKind is what a person should look at.
type AlertKind string

// The alerts.
const (
	UnknownPrice          AlertKind = "unknown_price"      // sold or queued at the provider, not by us: the terms of before stay
	UnrequestedUpdate     AlertKind = "unasked_update"     // a paid update that no change asked for: nothing is granted
	DuplicateSubscription AlertKind = "extra_subscription" // a second one for an identity: cancelled and refunded
	AmountMismatch        AlertKind = "amount_mismatch"    // a payment that is not what was asked for: set aside
	BalanceFull           AlertKind = "balance_full"       // what was paid for has no room in the wallet: it was left out
	DebtFull              AlertKind = "debt_full"          // a refund or dispute would take a debt past its limit: the rest was left out
	BalanceSpent          AlertKind = "balance_spent"      // what the customer's balance at the provider paid of an invoice could not be credited back
	PaidLate              AlertKind = "paid_late"          // a renewal that was paid after its subscription had ended: refunded
	ActionRefused         AlertKind = "action_refused"     // the provider does not cancel or refund what it was asked to
	KeyRefused            AlertKind = "key_refused"        // an account does not take the key that is stored for it
)

// Project takes a subscription to where the provider's word puts it. The result
// depends on the word alone, not on how often or after which other word it was
// heard: a report that is older than what is known does no harm, and the next
// one heals it.
func Project(current Current, remote ProviderSubscription, now int64) Projection {
	p := projector{current: current, remote: remote, now: now, applied: map[int]string{}}
	p.Subscription = current.Subscription
	p.detectDuplicate()
	p.settleInvoices()
	p.period()
	p.status()
	p.cancellation()
	p.scheduled()
	p.pending()
	p.changes()
	p.endReplaced()
	return p.Projection
}

// projector is a projection in the making.
type projector struct {
	Projection
	current Current
	remote  ProviderSubscription
	now     int64

	purchases   []purchase
	applied     map[int]string // changes that were paid for, by position, and the invoice as far as it is known
	queued      int            // position of the change that is scheduled, or none
	following   int            // position of the change that waits behind a billed one, or none
	waiting     int            // position of the change that waits for payment, or none
	openInvoice ProviderInvoice
}

// none is the position of a change that there is not.
const none = -1

// detectDuplicate finds out whether the subscription may come into force at all. One
// that is live keeps its place, so of two that were bought at once the one that
// is heard of second gives way.
func (p *projector) detectDuplicate() {
	s := &p.Subscription
	if s.Extra || s.Begun || s.Ended() || p.current.Conflicting == nil || p.replacesConflicting() {
		return
	}
	if p.remote.Status.Terminal() && len(paidSales(p.remote.Invoices)) == 0 {
		return
	}
	s.Extra = true
	p.addAlert(DuplicateSubscription, p.remote.ID)
}

// replacesConflicting reports whether this subscription takes the rival's place: it was
// bought for that, or it is paid for and the rival is free.
func (p *projector) replacesConflicting() bool {
	if p.current.Conflicting.Terms.Free() && !p.current.Subscription.Terms.Free() {
		return true
	}
	for _, c := range p.current.Changes {
		if c.replaces(*p.current.Conflicting) {
			return true
		}
	}
	return false
}

// period moves period and terms to the latest that was paid. Around a renewal,
// the provider's own period runs ahead of the payment, so it is not asked.
func (p *projector) period() {
	s := &p.Subscription
	if s.Extra {
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
// later. The provider's present price is no argument: it changes with a downgrade
// an hour before that is paid.
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

func (p *projector) status() {
	s := &p.Subscription
	if !s.Begun && !p.remote.Period.IsZero() {
		s.Period = p.remote.Period
	}
	switch {
	case s.Ended():
	case p.remote.Status.Terminal():
		at := p.remote.EndedAt
		if at == 0 {
			at = p.now
		}
		*s = s.End(at)
	case !s.Begun:
		s.Status = metering.StatusIncomplete
	default:
		s.Status = statusOf(p.remote.Status)
	}
	if s.Extra && !p.remote.Status.Terminal() {
		p.addAction(CancelNow, p.remote.ID)
	}
}

// statusOf is for a subscription that has begun, so "incomplete" cannot be said
// of it; whatever is unknown rests until somebody has looked.
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

// cancellation: the provider's own portal sets a date and not the flag.
func (p *projector) cancellation() {
	byDate := p.remote.CancelAt > 0 && p.remote.CancelAt <= p.remote.Period.End
	p.Subscription.CancelAtPeriodEnd = p.remote.CancelAtPeriodEnd || byDate
}

// endReplaced ends the subscription that this one was bought to replace, in the
// same step in which this one comes into force.
func (p *projector) endReplaced() {
	if p.current.Conflicting == nil || !p.Subscription.Live() || !p.replacesConflicting() {
		return
	}
	replaced := p.current.Conflicting.End(p.now)
	p.Replaced = &replaced
	if !replaced.Local() {
		p.addAction(CancelNow, replaced.ProviderID)
	}
}

func (p *projector) addAction(kind ActionKind, objectID string) {
	p.Actions = append(p.Actions, Action{kind, objectID})
}

func (p *projector) addAlert(kind AlertKind, objectID string) {
	p.Alerts = append(p.Alerts, Alert{kind, objectID})
}
