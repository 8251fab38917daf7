package billing

import (
	"cmp"
	"slices"

	"purser/fault"
	"purser/metering"
)

// ChangeOrder is the decision about a request to change plans. Scheduled and pending
// changes are cancelled first: a checkout session in which the earlier change can
// still be paid would charge twice.
type ChangeOrder struct {
	Kind             ChangeKind
	Target           Terms
	ReleaseScheduled bool
	VoidPending      bool
	// SameTerms marks an upgrade to the current terms: another plan is invoiced
	// already, and is replaced. The price of the current terms may be archived.
	SameTerms bool
}

// DecideChange decides what a request for the plan means; current is nil without a
// subscription. A request for the current plan cancels the changes requested before,
// also those that the provider does not have yet: their calls may be on their way.
//
// A downgrade that is invoiced cannot be cancelled. Staying then means to pay for the
// plan again, which replaces the invoice; requesting the downgrade again changes
// nothing.
func DecideChange(current *Subscription, target Plan, changes ...Change) (ChangeOrder, error) {
	order, refusal := classifyChange(current, target, changes)
	if refusal != nil {
		return ChangeOrder{}, refusal
	}
	return order, nil
}

// classifyChange is the order that a request amounts to, and why it is refused, if it is.
func classifyChange(current *Subscription, target Plan, changes []Change) (ChangeOrder, error) {
	if current == nil || current.Ended() {
		return classifyStart(target)
	}
	order := ChangeOrder{
		Kind:             changeKindOf(*current, target),
		Target:           target.Terms(),
		ReleaseScheduled: current.Scheduled != nil,
		VoidPending:      current.Pending != nil,
	}
	refusal := checkChangeable(*current)
	if target.ID == current.Terms.PlanID {
		order.Target = current.Terms
		if current.downgradeBilled() {
			order.Kind, order.SameTerms = Upgrade, true
			return order, refusal
		}
		order.Kind = Keep
		open := slices.ContainsFunc(changes, func(c Change) bool { return c.affects(*current) })
		if refusal == nil && !order.ReleaseScheduled && !order.VoidPending && !open {
			refusal = fault.New(fault.AlreadyOnPlan)
		}
		return order, refusal
	}
	refusal = cmp.Or(refusal, checkActive(target), checkCurrency(*current, target))
	if current.downgradeBilled() && target.ID == current.Scheduled.Target.PlanID {
		order.Kind, order.Target = Keep, current.Terms
		return order, cmp.Or(refusal, checkSynced(target))
	}
	// A change between free plans needs no provider.
	if bothFree := current.Local() && target.Free(); !bothFree {
		refusal = cmp.Or(refusal, checkSynced(target))
	}
	return order, refusal
}

// classifyStart is for an identity without a subscription. Only a free plan can start
// without a checkout.
func classifyStart(target Plan) (ChangeOrder, error) {
	if !target.Free() {
		return ChangeOrder{Kind: Checkout, Target: target.Terms()}, fault.New(fault.SubscriptionNotFound)
	}
	return ChangeOrder{Kind: StartFree, Target: target.Terms()}, checkActive(target)
}

// changeKindOf: an upgrade costs more and does not shorten the interval; everything
// else waits for the renewal, because a paid period is never cut short. Leaving a free
// plan for a paid one is always an upgrade. A local subscription has no saved card, so
// it is paid in a checkout.
func changeKindOf(current Subscription, target Plan) ChangeKind {
	was := current.Terms.Price
	costsMore := target.AmountCents > was.AmountCents
	switch {
	case !costsMore, target.Interval.shorterThan(was.Interval) && !was.Free():
		return Downgrade
	case current.Local():
		return Checkout
	default:
		return Upgrade
	}
}

func checkChangeable(current Subscription) error {
	switch {
	case current.Status == metering.StatusIncomplete:
		return fault.Newf(fault.PaymentHold, "The first payment of this subscription is not confirmed yet. Try again once it has succeeded or failed.")
	case current.PaymentHold():
		return fault.New(fault.PaymentHold)
	case current.CancelAtPeriodEnd:
		return fault.New(fault.CancellationScheduled)
	default:
		return nil
	}
}

func checkCurrency(current Subscription, target Plan) error {
	if target.Currency != current.Terms.Currency {
		return fault.New(fault.CurrencyMismatch)
	}
	return nil
}

func checkActive(target Plan) error {
	if !target.Active {
		return fault.New(fault.PlanInactive)
	}
	return nil
}

func checkSynced(target Plan) error {
	if target.Sync.Status != SyncDone {
		return fault.New(fault.PlanNotSynced)
	}
	return nil
}

// DecideCheckout reports whether a checkout may sell the plan. A subscription whose
// first payment is unconfirmed counts: a second session could be paid as well.
func DecideCheckout(current *Subscription, target Plan) error {
	if current != nil && !current.Ended() {
		return fault.New(fault.SubscriptionExists)
	}
	if err := checkActive(target); err != nil {
		return err
	}
	return checkSynced(target)
}

// CancelOrder is the decision about a request to cancel.
type CancelOrder struct {
	CancelAtPeriodEnd bool
	Changes           bool // whether the flag changes
	ReleaseScheduled  bool
	VoidPending       bool
}

// DecideCancel decides what setting or clearing cancellation at period end means. A
// scheduled downgrade is released in either case. A pending upgrade is voided only
// when the subscription is cancelled.
func DecideCancel(current *Subscription, atPeriodEnd bool) (CancelOrder, error) {
	switch {
	case current == nil, current.Ended():
		return CancelOrder{}, fault.New(fault.SubscriptionNotFound)
	case current.Status == metering.StatusIncomplete:
		return CancelOrder{}, checkChangeable(*current)
	}
	return CancelOrder{
		CancelAtPeriodEnd: atPeriodEnd,
		Changes:           current.CancelAtPeriodEnd != atPeriodEnd,
		ReleaseScheduled:  current.Scheduled != nil,
		VoidPending:       current.Pending != nil && atPeriodEnd,
	}, nil
}

// DecideTopUp reports whether the identity may buy a credit at the price, and whether
// the wallet's balances have room for it. Terms that are not in force do not restrict it.
func DecideTopUp(current *Subscription, held []metering.Balance, bought Grant, amountCents int64, currency string) error {
	if current != nil && current.Status.InForce() && !current.Terms.TopupsEnabled {
		return fault.New(fault.TopupsDisabled)
	}
	if bought.Amount == 0 {
		return fault.Newf(fault.AmountTooSmall, "Top-ups need amountNanocredits above 0.")
	}
	if err := CheckCharge(amountCents, currency); err != nil {
		return err
	}
	return CheckRoom(held, []Grant{bought})
}
