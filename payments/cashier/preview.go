package cashier

import (
	"context"

	"purser/billing"
	"purser/tenancy"
)

// PreviewChange is what Change would do by the stored state. Nothing is stored, and the
// provider is not called.
func (c *Cashier) PreviewChange(ctx context.Context, scope tenancy.Scope, r billing.ChangeRequest) (billing.Preview, error) {
	app := c.options.Store.App(scope)
	state, err := c.options.Store.Payments(scope).CustomerState(ctx, r.Identity, r.PlanKey)
	if err != nil {
		return billing.Preview{}, err
	}
	offset, err := app.ClockOffset(ctx)
	if err != nil {
		return billing.Preview{}, err
	}
	return billing.PreviewChange(billing.PreviewInput{
		Subscription: state.Subscription, Plan: state.Plan, Changes: state.Changes, Payments: state.Payments, Balances: state.Balances,
	}, c.nowAt(offset)), nil
}
