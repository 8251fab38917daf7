package api_test

import (
	"fmt"
	"testing"
)

func TestCreateWallet(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)

	t.Run("shows every field of the new wallet", func(t *testing.T) {
		identity := newHolder()
		made := tn.in(t).post("/v1/wallets", fields{"identity": identity}).is(201).has(fields{
			"id": idOf("wal"), "identity": identity, "billingPeriod": nil, "billingPeriodLocked": false,
			"createdAt": recent(tn.node), "balances": []fields{},
		})
		tn.in(t).get(walletPath(identity)).is(200).has(made.object())
	})
	t.Run("gives the wallet that is there", func(t *testing.T) {
		c, identity := tn.in(t), newHolder()
		made := c.post("/v1/wallets", fields{"identity": identity}).is(201).object()
		for range 3 {
			c.post("/v1/wallets", fields{"identity": identity}).is(200).has(made)
		}
	})
	t.Run("takes nothing but the identity", func(t *testing.T) {
		for _, body := range []string{
			`{}`, `{"identity":""}`, `{"identity":null}`, `{"identity":1}`, `{"Identity":"x"}`,
			`{"identity":"x","billingPeriod":{"interval":"day","anchor":0}}`, `{"identity":"x","balances":[]}`, `{"identity":"x","appId":"y"}`,
		} {
			tn.in(t).post("/v1/wallets", body).refused("invalid_request")
		}
	})
}

func TestGetWallet(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for _, credit := range []string{"silver", "gold", "bronze"} {
		tn.credit(credit)
	}
	t.Run("answers 404 for an identity without a wallet", func(t *testing.T) {
		tn.in(t).get(walletPath(newHolder())).refused("wallet_not_found")
	})
	t.Run("shows the balances that are stored, in the order of their keys", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "silver", "0")
		tn.deposit(identity, "bronze", "9999999999999999999")
		tn.deposit(identity, "gold", "9007199254740993") // a float would lose the last digit
		tn.in(t).get(walletPath(identity)).is(200).has(fields{
			"id": idOf("wal"), "identity": identity, "billingPeriod": nil, "billingPeriodLocked": false, "createdAt": recent(tn.node),
			"balances": []fields{
				{"creditKey": "bronze", "amountNanocredits": "9999999999999999999"},
				{"creditKey": "gold", "amountNanocredits": "9007199254740993"},
				{"creditKey": "silver", "amountNanocredits": "0"},
			},
		})
	})
}

func TestListWalletsShowsBalances(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	var want []any
	for i := range 3 {
		identity := newHolder()
		tn.deposit(identity, "gold", fmt.Sprint(i))
		want = append([]any{tn.get(walletPath(identity)).is(200).object()}, want...)
	}
	tn.get("/v1/wallets").is(200).has(fields{"data": want, "cursor": nil})
}

func period(interval string, anchor int64) fields {
	return fields{"billingPeriod": fields{"interval": interval, "anchor": anchor}}
}

func TestSetBillingPeriod(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	tn.feature("free", "gold", fields{"costNanocredits": "0"})

	t.Run("sets it and shows the whole wallet", func(t *testing.T) {
		c, identity := tn.in(t), newHolder()
		now := c.post("/v1/wallets", fields{"identity": identity}).is(201).object()
		for _, anchor := range []int64{0, 1, 1767225600000, 253402300799999} {
			for _, interval := range []string{"day", "week", "month"} {
				now["billingPeriod"] = fields{"interval": interval, "anchor": anchor}
				c.patch(walletPath(identity)+"/billing-period", period(interval, anchor)).is(200).has(now)
			}
		}
		c.get(walletPath(identity)).is(200).has(now)
	})
	t.Run("answers 404 for an identity without a wallet, and makes none", func(t *testing.T) {
		identity := newHolder()
		tn.in(t).patch(walletPath(identity)+"/billing-period", period("day", 0)).refused("wallet_not_found")
		tn.in(t).get(walletPath(identity)).refused("wallet_not_found")
	})
	t.Run("refuses every other form", func(t *testing.T) {
		identity := newHolder()
		tn.post("/v1/wallets", fields{"identity": identity}).is(201)
		for _, body := range []string{
			`{}`, `{"billingPeriod":null}`, `{"billingPeriod":{}}`, `{"billingPeriod":[]}`, `{"billingPeriod":"day"}`,
			`{"billingPeriod":{"interval":"day"}}`, `{"billingPeriod":{"anchor":0}}`, `{"interval":"day","anchor":0}`,
			`{"billingPeriod":{"interval":"year","anchor":0}}`, `{"billingPeriod":{"interval":"Day","anchor":0}}`,
			`{"billingPeriod":{"interval":"day","anchor":-1}}`, `{"billingPeriod":{"interval":"day","anchor":253402300800000}}`,
			`{"billingPeriod":{"interval":"day","anchor":"0"}}`, `{"billingPeriod":{"interval":"day","anchor":0.5}}`,
			`{"billingPeriod":{"interval":"day","anchor":0,"zone":"UTC"}}`, `{"billingPeriod":{"interval":"day","anchor":0},"identity":"x"}`,
		} {
			tn.in(t).patch(walletPath(identity)+"/billing-period", body).refused("invalid_request")
		}
		tn.in(t).get(walletPath(identity)).is(200).shows(fields{"billingPeriod": nil})
	})
	for name, feature := range map[string]string{"a charge": "chat", "a use that costs nothing": "free"} {
		t.Run("is locked by "+name, func(t *testing.T) {
			c, identity := tn.in(t), newHolder()
			path := walletPath(identity) + "/billing-period"
			tn.deposit(identity, "gold", "5000")
			c.patch(path, period("day", 7)).is(200).shows(fields{"billingPeriodLocked": false})
			tn.ask(identity, feature, nil).is(200)
			tn.use(identity, "chat", fields{"quantity": 6}).refused("insufficient_balance")
			c.patch(path, period("week", 7)).is(200).shows(fields{"billingPeriodLocked": false}) // neither locked it
			tn.use(identity, feature, nil).is(201)
			for _, other := range []fields{period("day", 7), period("week", 8), period("month", 7)} {
				c.patch(path, other).refused("billing_period_locked")
			}
			want := fields{"billingPeriodLocked": true, "billingPeriod": fields{"interval": "week", "anchor": 7}}
			c.patch(path, period("week", 7)).is(200).shows(want)
			c.get(walletPath(identity)).is(200).shows(want)
		})
	}
	t.Run("cannot be set after the first charge either", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "gold", "1000")
		tn.use(identity, "chat", nil).is(201)
		tn.in(t).patch(walletPath(identity)+"/billing-period", period("day", 0)).refused("billing_period_locked")
		tn.in(t).get(walletPath(identity)).is(200).shows(fields{"billingPeriod": nil, "billingPeriodLocked": true})
	})
}
