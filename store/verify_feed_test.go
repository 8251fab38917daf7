package store_test

import (
	"fmt"
	"strings"
	"testing"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
	"purser/store/verify"
)

// announced numbers the notifications of the books in two passes, with an endpoint for
// all, one for deposits, and one that was deleted after its deliveries.
func (b *soldBooks) announced(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	app := b.Notifications()
	var last notify.Endpoint
	for i, types := range [][]notify.Type{nil, {notify.DepositCreated}, nil} {
		last = notify.Endpoint{
			ID: ids.New(), URL: fmt.Sprintf("https://example.com/%d", i), Types: types, Status: notify.Enabled, Revision: 1, SealedSecret: []byte("sealed"), CreatedAt: moment,
		}
		noError(t, app.CreateEndpoint(ctx, last))
	}
	_, err := app.Number(ctx, moment)
	noError(t, err)
	noError(t, app.DeleteEndpoint(ctx, last.ID))
	// A replay links what the endpoint was never sent.
	later := notify.Endpoint{ID: ids.New(), URL: "https://example.com/later", Status: notify.Enabled, Revision: 1, SealedSecret: []byte("sealed"), CreatedAt: moment}
	noError(t, app.CreateEndpoint(ctx, later))
	_, err = app.Replay(ctx, notifications.Replay{EndpointID: later.ID, From: 2, To: 5, Now: moment})
	noError(t, err)
	noError(t, app.SendTest(ctx, later.ID, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment)))
	b.indebt(t, "dan")
	for i := range 3 {
		b.deposit(t, depositOf("dan", "tokens", 5, fmt.Sprint("announced ", i)))
	}
	_, err = app.Number(ctx, moment)
	noError(t, err)
}

// indebt has an identity spend what it bought, and owe it until the next deposit.
func (b *soldBooks) indebt(t *testing.T, identity string) {
	t.Helper()
	_, session := b.buy(t, identity)
	wallet, err := b.Wallet(t.Context(), identity)
	noError(t, err)
	noError(t, b.Adjust(t.Context(), store.Adjustment{ID: ids.New(), WalletID: wallet.ID, CreditKey: "tokens",
		Delta: metering.Delta{Amount: 97, Out: true}, Reason: "a test", By: ids.New(), Now: moment}))
	noError(t, b.Payments().ApplyCharge(t.Context(), b.lease(t, "identity:"+identity), billing.ProviderCharge{
		ID: session.ChargeID, Disputes: []billing.ProviderDispute{{ID: "dp_1", AmountCents: session.AmountTotal, Status: "needs_response", Movements: 1}},
	}, moment))
	b.deposit(t, depositOf(identity, "tokens", 100, "pays the debt"))
}

const (
	longAgo   = `UPDATE notifications SET id = '01000000-0000-7000-8000-000000000000' WHERE seq = 1; `
	elsewhere = `'ffffffff-0000-0000-0000-000000000000'`
)

// feedCorruptions are corruptions of notifications, endpoints and deliveries.
var feedCorruptions = []struct{ name, sql, want string }{
	{"a notification is missing", `DELETE FROM notifications WHERE seq = 3`, "there is no notification with the number 3"},
	{"the first notification is missing", `DELETE FROM notifications WHERE seq = 1`, "there is no notification with the number 1"},
	{"several notifications are missing", `DELETE FROM notifications WHERE seq IN (4, 5)`, "there are no notifications with the numbers 4 to 5"},
	{"the last notification is missing", `DELETE FROM notifications WHERE seq = (SELECT max(seq) FROM notifications)`, "but the highest number of a notification is"},
	{"a feed ends later than its notifications", `UPDATE feeds SET last_seq = last_seq + 1`, "the feed ends with number"},
	{"a feed is missing", `DELETE FROM feeds`, "the feed ends with number 0"},
	{"a number is far ahead", `UPDATE notifications SET seq = 1000000000000 WHERE seq = 5`, "to 999999999999"},
	{"a notification was never numbered", `UPDATE notifications SET id = '01000000-0000-7000-8000-000000000000', seq = NULL WHERE seq = 4`, "never got a number"},
	{"a delivery is of no notification", `UPDATE deliveries SET notification_id = ` + elsewhere + ` WHERE seq = 2`, "but there is no such notification"},
	{"a delivery is for no endpoint", `UPDATE deliveries SET endpoint_id = ` + elsewhere + ` WHERE seq = 2 AND endpoint_id = (SELECT id FROM webhook_endpoints WHERE url LIKE '%/0')`, "but there never was such an endpoint"},
	{"a deleted endpoint was never there", `DELETE FROM deleted_endpoints`, "but there never was such an endpoint"},
	{"a delivery is missing", `DELETE FROM deliveries WHERE seq = 2`, "the notification 2 was for the endpoint https://example.com/0, but there is no delivery of it"},
	{"the last delivery is missing", `DELETE FROM deliveries WHERE seq = (SELECT last_seq FROM feeds)`, "but there is no delivery of it"},
	{"a delivery follows one that was not sent", `UPDATE deliveries d SET previous_seq = 1 FROM webhook_endpoints e WHERE e.id = d.endpoint_id AND e.url LIKE '%/1' AND d.seq = e.last_seq`, "the notification 1 was for the endpoint https://example.com/1"},
	{"a delivery has another number", `UPDATE deliveries SET seq = 99 WHERE seq = 2`, "a delivery of the notification 2 has the number 99"},
	{"a delivery of a test has a number", `UPDATE deliveries SET seq = 99 WHERE seq = 0`, "with the number 99, but the notification has none"},
	{"an endpoint is ahead of the feed", `UPDATE webhook_endpoints SET last_seq = last_seq + 100 WHERE url LIKE '%/0'`, "which is not in the feed"},
	{"a notification says another amount", `UPDATE notifications SET data = jsonb_set(data, '{deltaNanocredits}', '"1"') WHERE type = 'deposit.created'`, "(deposit.created) says 1 nanocredits"},
	{"a notification says another balance", `UPDATE notifications SET data = jsonb_set(data, '{balanceNanocredits}', '"1"') WHERE type = 'refund.applied'`, "with a balance of 1 and"},
	{"a notification says another credit", `UPDATE notifications SET data = jsonb_set(data, '{creditKey}', '"gold"') WHERE type = 'grant.created'`, "nanocredits of gold"},
	{"a notification is of another wallet", `UPDATE notifications SET wallet_id = ` + bobsWallet + ` WHERE type = 'grant.created'`, "but its entry is a grant"},
	{"a deposit is announced as a grant", `UPDATE notifications SET type = 'deposit.created' WHERE type = 'grant.created'`, "but its entry is a grant of 1000"},
	{"a reversal is announced as an adjustment", `UPDATE notifications SET type = 'adjustment.created' WHERE type = 'charge.reversed'`, "but its entry is a reversal"},
	{"a notification is of no entry", `UPDATE notifications SET data = jsonb_set(data, '{id}', '"txn_0000000000000000000000000e"') WHERE type = 'topup.paid'`, "is of an entry that the journal doesn't have"},
	{"a notification can't be read", `UPDATE notifications SET data = '[]' WHERE type = 'topup.paid'`, "is of an entry that the journal doesn't have"},
	{"a refund was never announced", longAgo + `DELETE FROM notifications WHERE type = 'refund.applied'`, "was never announced"},
	{"a deposit was announced to another wallet only", longAgo + `UPDATE notifications SET wallet_id = ` + bobsWallet + ` WHERE type = 'deposit.created'`, "the deposit of 5 nanocredits in entry"},
	{"a debt was never announced", longAgo + `DELETE FROM notifications WHERE type = 'debt.incurred'`, "the debt of "},
	{"the end of a debt was never announced", longAgo + `DELETE FROM notifications WHERE type = 'debt.cleared'`, "the end of the debt with entry"},
	{"a notification belongs to no wallet", `UPDATE notifications SET wallet_id = ` + elsewhere + ` WHERE wallet_id = ` + annsWallet, "there are rows of the feed of this wallet, but no wallet"},
	{"a notification names another organization", `UPDATE notifications SET org_id = ` + elsewhere + ` WHERE seq = 2`, "the notification 2 names the organization"},
	{"a delivery names another organization", `UPDATE deliveries SET org_id = ` + elsewhere + ` WHERE seq = 2`, "a delivery of the notification 2 names the organization"},
	{"a feed names another organization", `UPDATE feeds SET org_id = ` + elsewhere, "a row of feeds names the organization"},
	{"an endpoint names another organization", `UPDATE webhook_endpoints SET org_id = ` + elsewhere, "a row of webhook endpoints names the organization"},
}

// Each kind of corruption of the feed is found by a pass over all and, when it concerns
// what no recorded pass has verified, by one over what is new. None is recorded.
func TestVerifyNewFindsWhatIsNewInTheFeed(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	pass := func() (found string) {
		t.Helper()
		v, err := b.Verification().Verify(t.Context(), verify.Options{New: true, Record: true, Now: moment, Page: 2})
		noError(t, err)
		for _, d := range v.Differences {
			found += d.Check + ": " + d.Detail + "\n"
		}
		return found
	}
	verified := func() string { return texts(t, b.conn, `SELECT verified_seq::text FROM feeds`)[0] }
	before := verified()
	b.deposit(t, depositOf("ann", "tokens", 5, "new"))
	_, err := b.Notifications().Number(t.Context(), moment)
	noError(t, err)
	last := texts(t, b.conn, `SELECT last_seq::text FROM feeds`)[0]
	for _, c := range []struct{ sql, undo, want string }{
		{`UPDATE feeds SET last_seq = last_seq + 1`, `UPDATE feeds SET last_seq = last_seq - 1`, "the feed ends with number"},
		{`UPDATE notifications SET seq = seq + 7 WHERE seq = ` + last, `UPDATE notifications SET seq = ` + last + ` WHERE seq = ` + last + ` + 7`, "there are no notifications"},
		{`CREATE TABLE kept.one AS SELECT * FROM deliveries WHERE seq = ` + last + `; DELETE FROM deliveries WHERE seq = ` + last, `INSERT INTO deliveries SELECT * FROM kept.one`, "there is no delivery of it"},
		{`UPDATE notifications SET data = jsonb_set(data, '{deltaNanocredits}', '"7"') WHERE seq = ` + last, `UPDATE notifications SET data = jsonb_set(data, '{deltaNanocredits}', '"5"') WHERE seq = ` + last, "says 7 nanocredits"},
	} {
		for statement := range strings.SplitSeq(c.sql, ";") {
			exec(t, b.conn, statement)
		}
		for range 2 { // it is found until it is repaired
			if found := pass(); !strings.Contains(found, c.want) {
				t.Errorf("%s: %q was not found in:\n%s", c.sql, c.want, found)
			}
		}
		if got := verified(); got != before {
			t.Errorf("%s: verified up to %s, before %s", c.sql, got, before)
		}
		exec(t, b.conn, c.undo)
	}
	if found := pass(); found != "" || verified() != last {
		t.Errorf("the repaired feed is verified up to %s of %s, and differs:\n%s", verified(), last, found)
	}
	// What was verified is left to a full pass.
	exec(t, b.conn, `DELETE FROM deliveries WHERE seq = 2`)
	if found := pass(); found != "" {
		t.Errorf("a pass over what is new finds:\n%s", found)
	}
}

// What the retention has deleted is no gap.
func TestVerifyAcceptsAPrunedFeed(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	for _, keep := range []string{"last_seq / 2", "last_seq"} {
		exec(t, b.conn, `UPDATE notifications n SET created_at = 1 FROM feeds f WHERE n.seq <= `+keep+` OR n.test`)
		old := texts(t, b.conn, `SELECT id::text FROM notifications WHERE created_at = 1`)
		_, err := b.Notifications().Prune(t.Context(), 2)
		noError(t, err)
		left := texts(t, b.conn, `SELECT id::text FROM notifications WHERE created_at = 1`)
		_, err = b.Notifications().Prune(t.Context(), 2)
		noError(t, err)
		if v, err := b.Verification().Verify(t.Context(), verify.Options{}); err != nil || len(v.Differences) > 0 || len(old) == 0 || len(left) > 0 {
			t.Errorf("after %d of %d were deleted: %v, %v", len(old)-len(left), len(old), v.Differences, err)
		}
	}
	if _, err := b.Notifications().Prune(t.Context(), max(moment, b.db.Clock().Now())+1); err != nil {
		t.Fatal(err)
	}
	if left := texts(t, b.conn, `SELECT id::text FROM deleted_endpoints`); len(left) > 0 {
		t.Errorf("deleted endpoints without deliveries stay: %v", left)
	}
}
