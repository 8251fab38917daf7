package api_test

import (
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store/storetest"
)

// February 2024, and a moment in it.
const (
	february = 1706745600000
	march    = 1709251200000
	inside   = 1707566400123
)

// subscribe puts the identity on terms that limit one feature. It goes past the
// interface, which sells no subscription of the year 2024.
func (tn *tenant) subscribe(identity, feature string, status metering.SubscriptionStatus, limit metering.Limit) {
	tn.t.Helper()
	id, err := ids.Parse(ids.Feature, tn.get("/v1/features/"+feature).is(200).text("id"))
	if err != nil {
		tn.t.Fatal(err)
	}
	limit.FeatureID, limit.FeatureKey = id, feature
	storetest.PutSubscription(tn.t, storetest.URL(tn.t), tn.app.Scope(), identity, metering.Subscription{
		ID: ids.New(), Status: status, Period: metering.Period{Start: february, End: march},
		Terms: metering.Terms{Limits: []metering.Limit{limit}},
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("chat-completion", "tokens", fields{"costNanocredits": "2500000000", "quantityPerUnit": 1000})
	tn.feature("call", "tokens", nil)
	tn.feature("quoted", "tokens", fields{"pricingMode": "callback"})
	tn.feature("daily", "tokens", fields{"deduplicationPeriod": "day"})

	t.Run("says what the use would cost and what there is", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "4997500000000")
		want := fields{
			"allowed": true, "creditKey": "tokens", "amountNanocredits": "3000000000", "balanceNanocredits": "4997500000000",
		}
		for range 3 { // and reserves nothing
			tn.ask(identity, "chat-completion", fields{"quantity": 1200}).is(200).has(want)
		}
	})
	t.Run("takes one for the quantity that is not given", func(t *testing.T) {
		tn.ask(newHolder(), "chat-completion", nil).is(200).shows(fields{"amountNanocredits": "2500000"})
	})
	t.Run("says why a use is not allowed, and is a 200", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "999")
		tn.ask(identity, "call", nil).is(200).has(fields{
			"allowed": false, "creditKey": "tokens", "amountNanocredits": "1000", "balanceNanocredits": "999", "reason": "insufficient_balance",
		})
		tn.deposit(identity, "tokens", "1")
		tn.ask(identity, "call", nil).is(200).has(fields{
			"allowed": true, "creditKey": "tokens", "amountNanocredits": "1000", "balanceNanocredits": "1000",
		})
	})
	t.Run("finds nothing in a wallet that is not there, and makes none", func(t *testing.T) {
		identity := newHolder()
		tn.ask(identity, "call", nil).is(200).has(fields{
			"allowed": false, "creditKey": "tokens", "amountNanocredits": "1000", "balanceNanocredits": "0", "reason": "insufficient_balance",
		})
		tn.ask(identity, "quoted", fields{"amountNanocredits": "0"}).is(200).has(fields{
			"allowed": true, "creditKey": "tokens", "amountNanocredits": "0", "balanceNanocredits": "0",
		})
		tn.in(t).get(walletPath(identity)).refused("wallet_not_found")
	})
	t.Run("asks for the amount of a callback, and for none with a fixed price", func(t *testing.T) {
		identity := newHolder()
		tn.ask(identity, "quoted", nil).refused("amount_required")
		tn.ask(identity, "call", fields{"amountNanocredits": "1"}).refused("amount_not_accepted")
		tn.ask(identity, "call", fields{"amountNanocredits": "0"}).refused("amount_not_accepted")
		tn.ask(identity, "quoted", fields{"amountNanocredits": "9999999999999999999", "quantity": 9}).is(200).
			shows(fields{"amountNanocredits": "9999999999999999999"})
	})
	t.Run("refuses a charge of more than 19 digits", func(t *testing.T) {
		tn.ask(newHolder(), "call", fields{"quantity": int64(9007199254740991)}).is(200).
			shows(fields{"amountNanocredits": "9007199254740991000"})
		tn.feature("expensive", "tokens", fields{"costNanocredits": "9999999999999999999"})
		tn.ask(newHolder(), "expensive", nil).is(200).shows(fields{"amountNanocredits": "9999999999999999999"})
		tn.ask(newHolder(), "expensive", fields{"quantity": 2}).refused("charge_out_of_range")
	})
	t.Run("costs nothing inside a period that is billed", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "1500")
		day := fields{"periodStart": 1707523200000, "periodEnd": 1707609600000}
		before := fields{"allowed": true, "creditKey": "tokens", "amountNanocredits": "1000", "balanceNanocredits": "1500"}
		tn.ask(identity, "daily", fields{"occurredAt": inside}).is(200).has(merged(before, day))
		tn.use(identity, "daily", fields{"occurredAt": inside}).is(201)
		after := fields{"allowed": true, "creditKey": "tokens", "amountNanocredits": "0", "balanceNanocredits": "500"}
		tn.ask(identity, "daily", fields{"occurredAt": inside + 1}).is(200).has(merged(after, day))
		tn.ask(identity, "daily", fields{"occurredAt": inside, "entityId": "other"}).is(200).
			has(merged(after, day, fields{"allowed": false, "amountNanocredits": "1000", "reason": "insufficient_balance"}))
	})
}

func TestCheckFeatureNames(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("call", "tokens", nil)
	tn.feature(repeated("a", 80), "tokens", nil)
	for name, path := range map[string]string{"a check": "/v1/check", "an event": "/v1/events"} {
		body := func(feature string) fields {
			b := fields{"identity": newHolder(), "feature": feature}
			if path == "/v1/events" {
				b["id"] = newName()
			}
			return b
		}
		t.Run(name+" of an unknown feature is a 404, whatever its name", func(t *testing.T) {
			for _, feature := range []string{
				"x", "Call", "call ", " ", "c\u0301all", repeated("a", 79), repeated("a", 81), repeated("a", 100), repeated("😀", 100), "../call", "%63all", "call\u0001",
			} {
				tn.in(t).post(path, body(feature)).refused("feature_not_found")
			}
		})
		t.Run(name+" needs a name of 1 to 100 characters", func(t *testing.T) {
			for _, feature := range []string{"", repeated("a", 101), repeated("😀", 101), "call\x00"} {
				tn.in(t).post(path, body(feature)).refused("invalid_request")
			}
		})
	}
	t.Run("finds a feature with the longest key", func(t *testing.T) {
		tn.ask(newHolder(), repeated("a", 80), nil).is(200)
	})
}

func TestCheckLimits(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("call", "tokens", nil)
	limit := func(used, remaining int, overage string) fields {
		return fields{"limit": 10, "used": used, "remaining": remaining, "periodStart": february, "periodEnd": march, "overage": overage}
	}
	at := fields{"occurredAt": inside}

	t.Run("shows the allowance, and refuses what does not fit whole", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "999000")
		tn.subscribe(identity, "call", metering.StatusActive, metering.Limit{Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock})
		shown := fields{"creditKey": "tokens", "balanceNanocredits": "999000", "amountNanocredits": "0", "allowed": true}
		tn.ask(identity, "call", merged(at, fields{"quantity": 10})).is(200).has(merged(shown, fields{"limit": limit(0, 10, "block")}))
		tn.use(identity, "call", merged(at, fields{"quantity": 7})).is(201).shows(fields{"amountNanocredits": "0"})
		tn.ask(identity, "call", merged(at, fields{"quantity": 3})).is(200).has(merged(shown, fields{"limit": limit(7, 3, "block")}))
		refused := tn.ask(identity, "call", merged(at, fields{"quantity": 4})).is(200)
		refused.shows(fields{"allowed": false, "reason": "feature_limit_exceeded", "limit": limit(7, 3, "block"), "balanceNanocredits": "999000"})
		tn.use(identity, "call", merged(at, fields{"quantity": 4})).refused("feature_limit_exceeded")
		tn.use(identity, "call", merged(at, fields{"quantity": 3})).is(201)
		tn.use(identity, "call", at).refused("feature_limit_exceeded")
	})
	t.Run("charges what the allowance does not cover", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "3500")
		tn.subscribe(identity, "call", metering.StatusTrialing, metering.Limit{Limit: 10, Period: metering.LimitBilling, Overage: metering.OverageCredits})
		tn.ask(identity, "call", merged(at, fields{"quantity": 13})).is(200).has(fields{
			"allowed": true, "creditKey": "tokens", "amountNanocredits": "3000", "balanceNanocredits": "3500", "limit": limit(0, 10, "credits"),
		})
		tn.use(identity, "call", merged(at, fields{"quantity": 13})).is(201).shows(fields{"amountNanocredits": "3000"})
		tn.ask(identity, "call", at).is(200).has(fields{
			"allowed": false, "creditKey": "tokens", "amountNanocredits": "1000", "balanceNanocredits": "500",
			"limit": limit(13, 0, "credits"), "reason": "insufficient_balance",
		})
		tn.use(identity, "call", at).refused("insufficient_balance")
	})
	t.Run("refuses what rests with the subscription, and pays for the rest", func(t *testing.T) {
		tn.feature("other", "tokens", nil)
		for _, status := range []metering.SubscriptionStatus{metering.StatusPastDue, metering.StatusUnpaid, metering.StatusPaused} {
			identity := newHolder()
			tn.deposit(identity, "tokens", "5000")
			tn.subscribe(identity, "call", status, metering.Limit{Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageCredits})
			tn.ask(identity, "call", at).is(200).shows(fields{"allowed": false, "reason": "subscription_inactive", "limit": limit(0, 10, "credits")})
			tn.use(identity, "call", at).refused("subscription_inactive")
			tn.use(identity, "other", at).is(201).shows(fields{"amountNanocredits": "1000"})
		}
	})
	t.Run("pays from the balance where there is no subscription any more", func(t *testing.T) {
		for _, status := range []metering.SubscriptionStatus{metering.StatusIncomplete, metering.StatusCanceled} {
			identity := newHolder()
			tn.deposit(identity, "tokens", "1000")
			tn.subscribe(identity, "call", status, metering.Limit{Limit: 10, Period: metering.LimitMonth, Overage: metering.OverageBlock})
			tn.ask(identity, "call", at).is(200).has(fields{
				"allowed": true, "creditKey": "tokens", "amountNanocredits": "1000", "balanceNanocredits": "1000",
			})
		}
	})
}

// merged is the objects in one, the later over the earlier.
func merged(objects ...fields) fields {
	all := fields{}
	for _, object := range objects {
		for name, value := range object {
			all[name] = value
		}
	}
	return all
}
