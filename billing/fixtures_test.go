package billing

import (
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
)

const (
	second = int64(1000)
	hour   = int64(time.Hour / time.Millisecond)
	day    = 24 * hour
)

func moment(t testing.TB, text string) int64 {
	t.Helper()
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixMilli()
		}
	}
	t.Fatalf("%q is not a moment", text)
	return 0
}

func span(t testing.TB, start, end string) metering.Period {
	return metering.Period{Start: moment(t, start), End: moment(t, end)}
}

// named makes an id that is the same for the same name.
func named(name string) (id ids.ID) {
	copy(id[:], name)
	return id
}

// sold is a plan that can be bought: synced, active, in dollars, with as many
// tokens as it costs cents.
func sold(key string, cents int64, interval Interval) Plan {
	return Plan{
		ID:            named(key),
		Key:           key,
		Name:          key,
		Price:         Price{cents, "usd", interval},
		Limits:        []metering.Limit{{FeatureID: named("calls"), FeatureKey: "calls", Limit: cents + 1, Period: metering.LimitBilling, Overage: metering.OverageBlock}},
		Grants:        []Grant{tokens(metering.Amount(cents + 1))},
		TopupsEnabled: true,
		Active:        true,
		Revision:      1,
		Sync:          Sync{Status: SyncDone, ProductID: "prod_" + key, PriceID: "price_" + key, Version: 1, PriceNumber: 1},
	}
}

func tokens(amount metering.Amount) Grant {
	return Grant{CreditID: named("tokens"), CreditKey: "tokens", Amount: amount}
}

// on is a live subscription to the plan.
func on(plan Plan) *Subscription {
	return &Subscription{
		ID:         named("subscription"),
		Identity:   "ada",
		ProviderID: "sub_1",
		Status:     metering.StatusActive,
		Begun:      true,
		Period:     metering.Period{Start: 0, End: 30 * day},
		Terms:      plan.Terms(),
	}
}

func wantFault(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if code == "" && err != nil || code != "" && !fault.Is(err, code) {
		t.Errorf("got %v, want %q", err, code)
	}
}

func total(payments []Payment) (sum metering.Amount) {
	for _, p := range payments {
		for _, g := range p.Credits {
			sum += g.Amount
		}
	}
	return sum
}
