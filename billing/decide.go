package billing

import (
	"slices"

	"purser/fault"
	"purser/metering"
)

// ChangeOrder is what a request to change plans amounts to. What is called off
// comes before everything else: a page on which the old wish can still be paid
// would charge twice.
type ChangeOrder struct {
	Kind             ChangeKind
	Target           Terms
	ReleaseScheduled bool
	VoidPending      bool
	// Stays marks an upgrade to the terms that the subscription has: another plan is
	// billed already, and is replaced. Their price may be off sale.
	SameTerms bool
}

// DecideChange says what it means that the identity wants to be on the plan,
// whose subscription is nil when it has none. Who wants to stay calls off what was
// asked before, also what the provider has not heard of: it may be on its way.
//
// A downgrade that is billed cannot be called off. To stay then is to pay for the
// plan again, which replaces the bill; to ask for the downgrade again changes nothing.
func DecideChange(current *Subscription, target Plan, changes ...Change) (ChangeOrder, error) {
	if current == nil || current.Ended() {
		return decideStart(target)
	}
	if err := checkChangeable(*current); err != nil {
		return ChangeOrder{}, err
	}
	order := ChangeOrder{
		Target:           target.Terms(),
		ReleaseScheduled: current.Scheduled != nil,
		VoidPending:      current.Pending != nil,
	}
	if target.ID == current.Terms.PlanID {
		if current.downgradeBilled() {
			order.Kind, order.Target, order.SameTerms = Upgrade, current.Terms, true
			return order, nil
		}
		open := slices.ContainsFunc(changes, func(c Change) bool { return c.affects(*current) })
		if !order.ReleaseScheduled && !order.VoidPending && !open {
			return ChangeOrder{}, fault.New(fault.AlreadyOnPlan)
		}
		order.Kind, order.Target = Keep, current.Terms
		return order, nil
	}
	order.Kind = changeKindOf(*current, target)
	if err := checkActive(target); err != nil {
		return ChangeOrder{}, err
	}
	if target.Currency != current.Terms.Currency {
		return ChangeOrder{}, fault.New(fault.CurrencyMismatch)
	}
	if current.downgradeBilled() && target.ID == current.Scheduled.Target.PlanID {
		order.Kind, order.Target = Keep, current.Terms
		return order, checkSynced(target)
	}
	// From one free plan to another the provider has no part in it.
	if bothFree := current.Local() && target.Free(); !bothFree {
		return order, checkSynced(target)
	}
	return order, nil
}

// decideStart is for an identity without a subscription. Only what costs nothing
// can start without somebody at a payment page.
func decideStart(target Plan) (ChangeOrder, error) {
	if !target.Free() {
		return ChangeOrder{}, fault.New(fault.SubscriptionNotFound)
	}
	return ChangeOrder{Kind: StartFree, Target: target.Terms()}, checkActive(target)
}

// kindOf: an upgrade costs more and does not shorten the interval; everything
// else waits, because a paid period is never cut short. A free period was not
// paid, so leaving it for a paid plan is an upgrade in any case. What the
// provider does not know has no saved card either: it is paid for on a page.
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

// DecideCheckout says whether a hosted checkout may sell the plan to the
// identity. One whose first payment is still being confirmed counts as there:
// a second page could be paid as well.
func DecideCheckout(current *Subscription, target Plan) error {
	if current != nil && !current.Ended() {
		return fault.New(fault.SubscriptionExists)
	}
	if err := checkActive(target); err != nil {
		return err
	}
	return checkSynced(target)
}

// CancelOrder is what a request to cancel amounts to.
type CancelOrder struct {
	CancelAtPeriodEnd bool
	Changes           bool // whether the flag is another than before
	ReleaseScheduled  bool
	VoidPending       bool
}

// DecideCancel says what it means that the subscription shall, or shall not, end
// with its period. A queued downgrade is released in either case. An upgrade
// that waits for payment goes only with the subscription.
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

// DecideTopUp says whether the identity may buy an amount of a credit at the
// price. The terms have a word in it only while they are in force.
func DecideTopUp(current *Subscription, amount metering.Amount, amountCents int64, currency string) error {
	if current != nil && current.Status.InForce() && !current.Terms.TopupsEnabled {
		return fault.New(fault.TopupsDisabled)
	}
	if amount == 0 {
		return fault.Newf(fault.AmountTooSmall, "Top-ups need amountNanocredits above 0.")
	}
	return CheckCharge(amountCents, currency)
}
