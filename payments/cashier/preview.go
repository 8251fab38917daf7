package cashier

import (
	"context"

	"purser/billing"
	"purser/tenancy"
)

// PreviewChange is what Change would do by the stored state. Nothing is stored, and the
// provider is not called.
func (c *Cashier) PreviewChange(ctx context.Context, scope tenancy.Scope, r billing.ChangeRequest) (billing.Preview, error) {
	state, err := c.options.Store.App(scope).CustomerState(ctx, r.Identity, r.PlanKey)
	if err != nil {
		return billing.Preview{}, err
	}
	now, err := c.Now(ctx, scope)
	if err != nil {
		return billing.Preview{}, err
	}
	return billing.PreviewChange(billing.PreviewInput{
		Subscription: state.Subscription, Plan: state.Plan, Changes: state.Changes, Payments: state.Payments, Balances: state.Balances,
	}, now), nil
}
