package cashier

import (
	"context"

	"purser/billing"
	"purser/fault"
	"purser/store/payments"
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
	preview := previewOf(state, c.nowAt(offset))
	if preview.RefusedBy == fault.PlanNotSynced {
		if err = c.checkAccount(ctx, scope); fault.Is(err, fault.PaymentsNotConfigured) {
			preview.RefusedBy, err = fault.PaymentsNotConfigured, nil
		}
	}
	return preview, err
}

func previewOf(s payments.CustomerState, now int64) billing.Preview {
	return billing.PreviewChange(billing.PreviewInput{
		Subscription: s.Subscription, Plan: s.Plan, Changes: s.Changes, Payments: s.Payments, Balances: s.Balances,
	}, now)
}
