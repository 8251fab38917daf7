package api_test

import (
	"fmt"
	"testing"
	"time"

	"purser/api"
	"purser/ids"
	"purser/store/storetest"
)

func TestTrack(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("chat-completion", "tokens", fields{"costNanocredits": "2500000000", "quantityPerUnit": 1000})
	tn.feature("call", "tokens", nil)
	tn.feature("free", "tokens", fields{"costNanocredits": "0"})

	t.Run("charges the use and shows every field", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "5000000000000")
		tn.use(identity, "chat-completion", fields{"quantity": 1200}).is(201).
			has(fields{"status": "accepted", "transactionId": idOf("txn"), "amountNanocredits": "3000000000"})
		if balance := tn.balance(identity, "tokens"); balance != "4997000000000" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("charges in proportion, rounded up once", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "9999999999999999999")
		tn.feature("thirds", "tokens", fields{"costNanocredits": "100", "quantityPerUnit": 3})
		for quantity, amount := range map[int64]string{1: "34", 2: "67", 3: "100", 4: "134", 9007199254740991: "300239975158033034"} {
			tn.use(identity, "thirds", fields{"quantity": quantity}).is(201).shows(fields{"amountNanocredits": amount})
		}
	})
	t.Run("charges nothing for the same event id, whatever the body says", func(t *testing.T) {
		identity, other, event := newHolder(), newHolder(), newName()
		tn.deposit(identity, "tokens", "10000")
		tn.deposit(other, "tokens", "10000")
		first := tn.use(identity, "call", fields{"id": event, "quantity": 2}).is(201).text("transactionId")
		again := fields{"status": "duplicate", "transactionId": first, "amountNanocredits": "2000"}
		for _, body := range []fields{
			{"id": event, "quantity": 2}, {"id": event, "quantity": 3}, {"id": event, "identity": other},
			{"id": event, "identity": newHolder()}, {"id": event, "feature": "chat-completion"}, {"id": event, "amountNanocredits": "1"},
			{"id": event, "occurredAt": 0}, {"id": event, "entityId": "x"},
		} {
			tn.use(identity, "call", body).is(200).has(again)
		}
		tn.use(identity, "unknown", fields{"id": event}).refused("feature_not_found")
		if left := [2]string{tn.balance(identity, "tokens"), tn.balance(other, "tokens")}; left != [2]string{"8000", "10000"} {
			t.Errorf("the wallets hold %v", left)
		}
	})
	t.Run("leaves no record of a refusal: its id may be tried again", func(t *testing.T) {
		identity, event := newHolder(), newName()
		for range 2 {
			tn.use(identity, "call", fields{"id": event}).refused("insufficient_balance")
		}
		tn.in(t).get(walletPath(identity)).refused("wallet_not_found")
		tn.deposit(identity, "tokens", "1000")
		tn.use(identity, "call", fields{"id": event, "quantity": 2}).refused("insufficient_balance")
		tn.use(identity, "call", fields{"id": event}).is(201).shows(fields{"status": "accepted", "amountNanocredits": "1000"})
		tn.use(identity, "call", nil).refused("insufficient_balance")
	})
	t.Run("makes the wallet with the first accepted use", func(t *testing.T) {
		identity := newHolder()
		tn.use(identity, "free", nil).is(201).shows(fields{"status": "accepted", "amountNanocredits": "0"})
		tn.in(t).get(walletPath(identity)).is(200).shows(fields{"identity": identity, "balances": []fields{}, "billingPeriodLocked": true})
	})
	t.Run("takes 19 digits exactly", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "9999999999999999999")
		tn.feature("odd", "tokens", fields{"costNanocredits": "9007199254740993"})
		tn.use(identity, "odd", nil).is(201).shows(fields{"amountNanocredits": "9007199254740993"})
		if balance := tn.balance(identity, "tokens"); balance != "9990992800745259006" {
			t.Errorf("the wallet holds %s", balance)
		}
		tn.feature("all", "tokens", fields{"costNanocredits": "9990992800745259007"})
		tn.use(identity, "all", nil).refused("insufficient_balance")
		tn.patch("/v1/features/all", fields{"costNanocredits": "9990992800745259006"}).is(200)
		tn.use(identity, "all", nil).is(201).shows(fields{"amountNanocredits": "9990992800745259006"})
		if balance := tn.balance(identity, "tokens"); balance != "0" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("takes the largest quantity at the largest price exactly", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "9999999999999999999")
		tn.feature("whole", "tokens", fields{"costNanocredits": "9999999999999999999", "quantityPerUnit": int64(9007199254740991)})
		tn.use(identity, "whole", fields{"quantity": int64(9007199254740990)}).is(201).shows(fields{"amountNanocredits": "9999999999999998889"})
		tn.use(identity, "whole", fields{"quantity": 1}).is(409)
		tn.feature("past", "tokens", fields{"costNanocredits": "9999999999999999999"})
		tn.use(identity, "past", fields{"quantity": 2}).refused("charge_out_of_range")
	})
	t.Run("takes ids of any characters, and tells near ones apart", func(t *testing.T) {
		identity := newHolder()
		for _, id := range oddIdentities() {
			tn.use(identity, "free", fields{"id": id}).is(201)
		}
		for _, id := range oddIdentities() {
			tn.use(identity, "free", fields{"id": id}).is(200).shows(fields{"status": "duplicate"})
		}
	})
	t.Run("finds the wallet of any identity", func(t *testing.T) {
		for _, identity := range oddIdentities() {
			tn.deposit(identity, "tokens", "1000")
			tn.use(identity, "call", nil).is(201)
			tn.use(identity, "call", nil).refused("insufficient_balance")
		}
	})
}

func TestTrackCallback(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("quoted", "tokens", fields{"pricingMode": "callback", "costNanocredits": "77", "quantityPerUnit": 5})
	tn.feature("call", "tokens", nil)
	identity := newHolder()
	tn.deposit(identity, "tokens", "9999999999999999999")

	t.Run("charges the amount that comes with the use, once", func(t *testing.T) {
		for _, amount := range []string{"0", "1", "9007199254740993"} {
			tn.use(identity, "quoted", fields{"amountNanocredits": amount, "quantity": 1000}).is(201).shows(fields{"amountNanocredits": amount})
		}
		if balance := tn.balance(identity, "tokens"); balance != "9990992800745259005" {
			t.Errorf("the wallet holds %s", balance)
		}
		rich := newHolder()
		tn.deposit(rich, "tokens", "9999999999999999999")
		tn.use(rich, "quoted", fields{"amountNanocredits": "9999999999999999999"}).is(201).shows(fields{"amountNanocredits": "9999999999999999999"})
	})
	t.Run("needs the amount, and a fixed price takes none", func(t *testing.T) {
		tn.use(identity, "quoted", nil).refused("amount_required")
		tn.use(identity, "call", fields{"amountNanocredits": "1000"}).refused("amount_not_accepted")
	})
	t.Run("refuses every other form of an amount", func(t *testing.T) {
		for _, amount := range []any{"", "-1", "+1", "01", "1.0", "1e3", " 1", "1 ", "0x1", "٣", "10000000000000000000", 1, nil, true} {
			tn.use(identity, "quoted", fields{"amountNanocredits": amount}).refused("invalid_request")
		}
	})
}

func TestTrackDeduplicates(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	for _, p := range []string{"day", "week", "month", "billing"} {
		tn.feature(p, "tokens", fields{"deduplicationPeriod": p})
	}

	t.Run("charges the first use of an entity in a period, and no later one", func(t *testing.T) {
		identity, event := newHolder(), newName()
		tn.deposit(identity, "tokens", "2000")
		feb := fields{"periodStart": february, "periodEnd": march}
		at := fields{"occurredAt": inside}
		first := tn.use(identity, "month", at).is(201).
			has(merged(feb, fields{"status": "accepted", "transactionId": idOf("txn"), "amountNanocredits": "1000"})).text("transactionId")
		late := tn.use(identity, "month", fields{"id": event, "occurredAt": march - 1}).is(200).has(merged(feb, fields{
			"status": "deduplicated", "transactionId": idOf("txn"), "amountNanocredits": "0", "deduplicatedFrom": first,
		}))
		if late.text("transactionId") == first {
			t.Error("the second use has the first one's transaction")
		}
		again := late.object()
		again["status"] = "duplicate"
		tn.use(identity, "month", fields{"id": event, "occurredAt": 0}).is(200).has(again)
		tn.use(identity, "month", merged(at, fields{"entityId": "a"})).is(201)
		tn.use(identity, "month", merged(at, fields{"entityId": "a", "quantity": 5})).is(200).shows(fields{"status": "deduplicated", "amountNanocredits": "0"})
		tn.use(identity, "month", merged(at, fields{"entityId": "A"})).refused("insufficient_balance")
		tn.use(identity, "month", fields{"occurredAt": march}).refused("insufficient_balance")
		tn.use(identity, "month", fields{"occurredAt": february - 1}).refused("insufficient_balance")
		if balance := tn.balance(identity, "tokens"); balance != "0" {
			t.Errorf("the wallet holds %s", balance)
		}
	})
	t.Run("takes a moment from the first to the last that there is", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "99000")
		const last, day = 9007199254740991, 86_400_000
		lastDay := int64(last / day * day)
		monday := lastDay - (lastDay/day+3)%7*day
		then := time.UnixMilli(last).UTC()
		month := time.Date(then.Year(), then.Month(), 1, 0, 0, 0, 0, time.UTC)
		for _, c := range []struct {
			feature    string
			at         int64
			start, end int64
		}{
			{"day", 0, 0, day}, {"week", 0, -3 * day, 4 * day}, {"month", 0, 0, 31 * day},
			{"day", last, lastDay, lastDay + day}, {"week", last, monday, monday + 7*day},
			{"month", last, month.UnixMilli(), month.AddDate(0, 1, 0).UnixMilli()},
		} {
			shown := fields{"periodStart": c.start, "periodEnd": c.end}
			tn.ask(identity, c.feature, fields{"occurredAt": c.at}).is(200).shows(shown)
			tn.use(identity, c.feature, fields{"occurredAt": c.at}).is(201).shows(shown)
			tn.use(identity, c.feature, fields{"occurredAt": c.at}).is(200).shows(merged(shown, fields{"status": "deduplicated"}))
		}
	})
	t.Run("needs a billing period for a feature that is billed by it", func(t *testing.T) {
		identity := newHolder()
		tn.deposit(identity, "tokens", "9000")
		tn.ask(identity, "billing", nil).refused("billing_period_missing")
		tn.use(identity, "billing", nil).refused("billing_period_missing")
		tn.in(t).patch(walletPath(identity)+"/billing-period", period("month", 1706659200000)).is(200) // 31 January 2024
		at := fields{"occurredAt": inside}
		shown := fields{"periodStart": 1706659200000, "periodEnd": 1709164800000} // to 29 February
		tn.ask(identity, "billing", at).is(200).shows(shown)
		tn.use(identity, "billing", at).is(201).shows(shown)
		tn.use(identity, "billing", at).is(200).shows(merged(shown, fields{"status": "deduplicated"}))
		tn.use(identity, "billing", fields{"occurredAt": 1709164800000}).is(201).
			shows(fields{"periodStart": 1709164800000, "periodEnd": 1711843200000}) // to 31 March
	})
}

func TestEventsOfACustomerByFeature(t *testing.T) {
	t.Parallel()
	tn, identity := newTenant(t), newHolder()
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	tn.post("/v1/wallets", fields{"identity": identity}).is(201)
	for _, who := range []string{identity, newHolder()} {
		tn.get("/v1/events?identity=" + who + "&feature=typo").refused("feature_not_found")
		if page := tn.get("/v1/events?identity=" + who + "&feature=chat").is(200).object(); len(page["data"].([]any)) != 0 {
			t.Errorf("a feature that was never used has %v", page)
		}
	}
}

// Statistics are written to rows that others may hold, such as another node's flush.
func TestEventsAreReadWhileStatisticsCannotBeWritten(t *testing.T) {
	t.Parallel()
	storetest.AvoidEndOf(t, time.Hour) // the counts are of one hour, whose row is locked
	tn := newTenantAt(t, newNode(t, api.Options{}, &clock{}), "Org "+ids.New().String(), false)
	tn.credit("tokens")
	tn.feature("free", "tokens", fields{"costNanocredits": "0"})
	tn.use(newHolder(), "free", nil).is(201)
	if err := tn.node.store.Stats().WriteStats(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := storetest.Session(t, storetest.URL(t))
	run(`BEGIN`)
	run(fmt.Sprintf(`SELECT FROM activity_hours WHERE app_id = '%s' FOR UPDATE`, tn.app.ID))
	id := newName()
	tn.use(newHolder(), "free", fields{"id": id}).is(201) // its counts wait
	if got := tn.get("/v1/events/" + id).is(200).text("id"); got != id {
		t.Errorf("the event is %s", got)
	}
	if got := tn.get("/v1/events").is(200).object()["data"].([]any); len(got) != 2 {
		t.Errorf("the list has %d events", len(got))
	}
}
