package cashier

import (
	"context"
	"errors"

	"purser/billing"
	"purser/fault"
)

// hasFailed reports whether the operation failed before and the caller retries it. The
// state it was decided on may have changed.
func (run *operationRun) hasFailed() bool { return run.rec.Error != "" }

// recheckAccount refuses a sale at an account that was replaced since, also one that was
// only interrupted: nothing is sold there any more, and the current account has neither
// its prices nor its customers. An account that was connected again sells. It returns
// hasFailed: what failed is decided again.
func (run *operationRun) recheckAccount() (failed bool, err error) {
	if run.latest.ReplacedAt != 0 {
		return false, errors.Join(errSuperseded, errAccountChanged())
	}
	return run.hasFailed(), nil
}

// recheckCheckout decides again about a failed checkout: the identity may have a
// subscription by now.
func (run *operationRun) recheckCheckout(ctx context.Context) error {
	if failed, err := run.recheckAccount(); err != nil || !failed {
		return err
	}
	current, err := run.c.currentSubscription(ctx, run.scope, run.rec.Identity)
	if err != nil {
		return err
	}
	plan, err := run.c.options.Store.App(run.scope).Plan(ctx, run.rec.Parameters.PlanKey())
	if err != nil {
		return err
	}
	if err := billing.DecideCheckout(current, plan); err != nil {
		return errors.Join(errSuperseded, err)
	}
	return run.recheckRoom(ctx)
}

// recheckReplacement decides again about a failed sale of a subscription that would replace
// the current one.
func (run *operationRun) recheckReplacement(ctx context.Context) error {
	if failed, err := run.recheckAccount(); err != nil || !failed {
		return err
	}
	order, refusal, err := run.decideChangeAgain(ctx)
	if err != nil {
		return err
	}
	if refusal == nil && order.Kind != billing.Checkout && order.Kind != billing.Upgrade {
		refusal = errChangedSince()
	}
	if refusal != nil {
		return errors.Join(errSuperseded, refusal)
	}
	return run.recheckRoom(ctx)
}

// decideChangeAgain decides on a change to the plan, and returns the refusal apart from
// failures to find out.
func (run *operationRun) decideChangeAgain(ctx context.Context) (order billing.ChangeOrder, refusal, err error) {
	sub, err := run.replacedSubscription(ctx)
	if err != nil {
		return order, nil, err
	}
	plan, err := run.c.options.Store.App(run.scope).Plan(ctx, run.rec.Parameters.PlanKey())
	if err != nil {
		return order, nil, err
	}
	order, refusal = billing.DecideChange(&sub, plan)
	return order, refusal, nil
}

// replacedSubscription is the subscription that a sale would replace: an upgrade that fell
// back to a checkout has one at the provider.
func (run *operationRun) replacedSubscription(ctx context.Context) (billing.Subscription, error) {
	if id := run.rec.Parameters.SubscriptionID(); id != "" {
		return run.c.syncSubscription(ctx, run.account, run.fence, id, syncOptions{scheduleRefresh: true})
	}
	return run.currentSubscription(ctx)
}

// recheckRoom refuses a sale whose credits the wallet has no room for any more.
func (run *operationRun) recheckRoom(ctx context.Context) error {
	sold, err := run.app.Change(ctx, run.rec.ChangeID)
	if err != nil {
		return err
	}
	wallet, err := run.c.options.Store.App(run.scope).Wallet(ctx, run.rec.Identity)
	if err != nil {
		return err
	}
	if err := billing.CheckRoom(wallet.Balances, sold.Target.Grants); err != nil {
		return errors.Join(errSuperseded, err)
	}
	return nil
}

// recheckTopUp decides again about a failed top-up.
func (run *operationRun) recheckTopUp(ctx context.Context) error {
	if failed, err := run.recheckAccount(); err != nil || !failed {
		return err
	}
	sold, err := run.app.CheckoutByID(ctx, run.rec.ChangeID)
	if err != nil {
		return err
	}
	s, err := run.c.topUpState(ctx, run.scope, run.rec.Identity, sold.CreditKey)
	if err != nil {
		return err
	}
	if err := billing.DecideTopUp(s.Subscription, s.Balances, grantOf(s.Credit, sold.Amount), sold.AmountCents, sold.Currency); err != nil {
		return errors.Join(errSuperseded, err)
	}
	return nil
}

// recheckUpgrade decides again about a failed upgrade. From a more expensive plan it
// would cut a paid period short; after a cancellation it would charge for a
// subscription that is about to end.
func (run *operationRun) recheckUpgrade(ctx context.Context) error {
	switch {
	case run.latest.ReplacedAt != 0:
		return errors.Join(errSuperseded, fault.Newf(fault.ProviderRefused,
			"This subscription is at a payment account that was replaced, where nothing is sold any more. Cancel it, and subscribe again once it has ended."))
	case run.fresh, !run.hasFailed() && run.mayHaveCharged():
		return nil
	case !run.hasFailed(): // interrupted before the provider took it
		return run.recheckRoom(ctx)
	}
	order, refusal, err := run.decideChangeAgain(ctx)
	if err != nil {
		return err
	}
	switch {
	case fault.Is(refusal, fault.AlreadyOnPlan):
		return nil // it was paid after all
	case refusal == nil && order.Kind == billing.Keep:
		return nil
	case refusal == nil && order.Kind == billing.Upgrade:
		return run.recheckRoom(ctx)
	case refusal == nil:
		refusal = errChangedSince()
	}
	return errors.Join(errSuperseded, refusal)
}

// mayHaveCharged reports whether an upgrade was sent and got no definite answer.
func (run *operationRun) mayHaveCharged() bool {
	return run.rec.Step == billing.StepUpgrade && run.rec.AttemptedAt != 0
}
