package cashier_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
)

// engine is the usage engine on the tests' database, one for all of them.
func engine(t testing.TB) *store.Engine {
	t.Helper()
	s := storetest.Open(t)
	usageOnce.Do(func() { usageOpen, usageErr = s.OpenEngine(context.Background(), store.EngineOptions{}) })
	if usageErr != nil {
		t.Fatal(usageErr)
	}
	return usageOpen
}

var (
	usageOnce sync.Once
	usageOpen *store.Engine
	usageErr  error
)

// feature makes a feature that costs a token for each unit.
func (r *harness) feature(key string) {
	r.Helper()
	_, err := r.store.App(r.scope).CreateFeature(r.Context(), metering.Feature{
		ID: ids.New(), Key: key, Name: key, Unit: "use", CreditKey: "tokens", Cost: 1, QuantityPerUnit: 1,
		PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: r.now(),
	})
	r.check(err)
}

// use uses a feature for ada, as a caller would.
func (r *harness) use(feature string, quantity int64) error {
	r.Helper()
	if r.key.IsZero() {
		key, _, err := keys.New(keys.Spec{ID: ids.New(), App: r.app, Name: "Test", Preset: keys.Ingestion}, tenancy.AllPermissions(), r.now(), rand.Reader)
		r.check(err)
		r.check(r.store.App(r.scope).CreateKey(r.Context(), key))
		r.key = key.ID
	}
	decision, err := engine(r).Track(store.Usage{
		Scope: r.scope, KeyID: r.key, Identity: "ada", FeatureKey: feature,
		Usage: metering.Usage{TransactionID: ids.New(), EventID: ids.New().String(), Quantity: quantity},
	})
	r.check(err)
	return decision.Err()
}

// spend uses up tokens.
func (r *harness) spend(amount metering.Amount) {
	r.Helper()
	r.feature("spending")
	r.check(r.use("spending", int64(amount)))
}

// limits allows a number of events of a feature in each paid period.
func limits(feature string, most int64) planOption {
	return func(d *billing.PlanDraft) {
		d.Limits = append(d.Limits, metering.Limit{FeatureKey: feature, Limit: most, Period: metering.LimitBilling, Overage: metering.OverageBlock})
	}
}

func TestAllowancesFollowWhatIsPaid(t *testing.T) {
	r := shop(t)
	r.feature("reports")
	r.plan("few", 1000, limits("reports", 2))
	r.plan("many", 2900, limits("reports", 5))
	r.subscribe("few", cardAsksAlways)
	r.check(r.use("reports", 2))
	wantFault(t, r.use("reports", 1), fault.FeatureLimitExceeded)

	// An upgrade that waits for its payment allows nothing yet. The provider counts in
	// seconds, so the new period must begin in another one than the old.
	r.advance(time.Minute)
	page := r.changed("many").Pending.PaymentURL
	r.settle()
	wantFault(t, r.use("reports", 1), fault.FeatureLimitExceeded)
	r.pay(page, cardAsksAlways)
	r.settle()
	r.check(r.use("reports", 5))
	wantFault(t, r.use("reports", 1), fault.FeatureLimitExceeded)

	// Around a renewal the paid period goes on; one that fails lets it rest.
	s := r.subscription()
	r.advanceTo(s.Period.End + (30 * time.Minute).Milliseconds())
	wantFault(t, r.use("reports", 1), fault.FeatureLimitExceeded)
	r.advance(2 * time.Hour)
	r.wantOn("many", metering.StatusPastDue)
	wantFault(t, r.use("reports", 1), fault.SubscriptionInactive)

	// A feature without a limit is paid from the balance all the while.
	r.deposit(5)
	r.feature("letters")
	r.check(r.use("letters", 5))
}
