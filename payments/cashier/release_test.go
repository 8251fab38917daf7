package cashier_test

import (
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/payments/sandbox"
	"purser/store/storetest"
)

// The server was upgraded while the operation waited for the provider. Release 0.1.0
// stored all parameters as texts, the empty ones as well.
func TestAnOperationOfAnEarlierReleaseContinues(t *testing.T) {
	r := shop(t)
	bought := r.subscribe("basic", cardPays)
	price := r.readPlan("pro").Sync.PriceID
	r.inject(sandbox.Fault{Kind: sandbox.Limit, Only: "POST /v1/subscriptions/"})
	key := newKey()
	_, err := r.cashier.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, key)
	wantFault(t, err, fault.ProviderUnavailable)
	storetest.Exec(t, storetest.URL(t), `
		UPDATE provider_ops SET parameters = jsonb_build_object(
			'act', 'upgrade', 'subscription', $2::text, 'plan', 'pro', 'price', $3::text, 'sessions', '')
		WHERE app_id = $1 AND kind = 'change'`, r.app.ID.String(), bought.ProviderID, price)

	r.advance(2 * time.Minute)
	r.wantOn("pro", metering.StatusActive)
	again, err := r.cashier.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, key)
	if err != nil || again.Terms.PlanKey != "pro" {
		t.Errorf("the caller who repeats the request gets %s, %v", again.Terms.PlanKey, err)
	}
	if calls := r.callsTo("POST /v1/subscriptions/"); len(calls) != 2 {
		t.Errorf("the upgrade was sent %d times", len(calls))
	}
}
