package store_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
	"purser/store/storetest"
	"purser/tenancy"
)

// notifications are the types and data of the application's notifications, in order.
func (a tenant) notifications(tb testing.TB) (types []notify.Type, data []map[string]any) {
	tb.Helper()
	_, err := a.Notifications().Number(tb.Context(), moment)
	noError(tb, err)
	page, err := a.Notifications().Feed(tb.Context(), notifications.Query{After: -1, Limit: notifications.MaxPage})
	noError(tb, err)
	for _, n := range page.Notifications {
		var object map[string]any
		noError(tb, json.Unmarshal(n.Data, &object))
		types, data = append(types, n.Type), append(data, object)
	}
	return types, data
}

func TestEntriesAreAnnouncedOnce(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)
	a := newTenant(t, db)
	key, _ := a.newKey(t, "setup")
	a.newCredit(t, "tokens")
	a.newFeature(t, featureOf("messages", "tokens"))
	requested := depositOf("ann@example.com", "tokens", 1_000, "once")
	for range 2 { // the second changes nothing
		_, _, err := a.Deposit(t.Context(), requested)
		noError(t, err)
	}
	// Plain usage tells nothing.
	use := store.Usage{
		Scope: a.application.Scope(), KeyID: key.ID, Identity: "ann@example.com", FeatureKey: "messages",
		Usage: metering.Usage{TransactionID: ids.New(), EventID: "event 1", Quantity: 3},
	}
	decision, err := usage.Track(use)
	noError(t, err)
	noError(t, decision.Err())
	wallet, err := a.Wallet(t.Context(), "ann@example.com")
	noError(t, err)
	owner := newMember(t, db, a.org, "owner")
	adjustment := store.Adjustment{
		ID: ids.New(), WalletID: wallet.ID, CreditKey: "tokens", Delta: metering.Delta{Amount: 100, Out: true}, Reason: "A mistake", By: owner.UserID, Now: moment,
	}
	for range 2 {
		noError(t, a.Adjust(t.Context(), adjustment))
	}
	over := adjustment
	over.ID, over.Delta.Amount = ids.New(), 1_000_000
	if err := a.Adjust(t.Context(), over); err == nil {
		t.Error("more than the balance was taken")
	}
	_, _, err = a.Reverse(t.Context(), store.Reversal{ID: ids.New(), EventID: "event 1", Reason: "It failed", IdempotencyKey: "reversal", CreatedAt: moment})
	noError(t, err)
	types, data := a.notifications(t)
	if want := []notify.Type{notify.DepositCreated, notify.AdjustmentCreated, notify.ChargeReversed}; !slices.Equal(types, want) {
		t.Fatalf("got %v, want %v", types, want)
	}
	for i, want := range []string{
		fmt.Sprintf("map[balanceNanocredits:1000 creditKey:tokens debtNanocredits:0 deltaNanocredits:1000 id:%s idempotencyKey:once]", requested.ID.Format(ids.Deposit)),
		fmt.Sprintf("map[balanceNanocredits:879 creditKey:tokens debtNanocredits:0 deltaNanocredits:-100 id:%s reason:A mistake]", adjustment.ID.Format(ids.Transaction)),
	} {
		if got := fmt.Sprint(data[i]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if data[2]["eventId"] != "event 1" || data[2]["deltaNanocredits"] != "21" || data[2]["balanceNanocredits"] != "900" {
		t.Errorf("the reversal says %v", data[2])
	}
}

// Each change of a fixture: each journal entry is announced once.
func TestEveryEntryOfPaymentsIsAnnounced(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := newFixture(t, db, openUsage(t, db))
	types, data := h.notifications(t)
	owner := connect(t, storetest.URL(t))
	for kind, want := range map[string]notify.Type{"deposit": notify.DepositCreated, "grant": notify.GrantCreated, "top-up": notify.TopUpPaid} {
		entries := texts(t, owner, `SELECT id::text FROM journal WHERE app_id = $1 AND kind = $2`, h.application.ID, kind)
		sent := 0
		for i, each := range types {
			if each != want {
				continue
			}
			sent++
			// Its id is the one in the list of deposits.
			if id, err := ids.Parse(ids.Deposit, fmt.Sprint(data[i]["id"])); err != nil || !slices.Contains(entries, id.String()) {
				t.Errorf("the %s is announced with the id %v", kind, data[i]["id"])
			}
		}
		if sent != len(entries) || sent == 0 {
			t.Errorf("%d of %d entries of the kind %s are announced", sent, len(entries), kind)
		}
	}
}

func TestKeysAndSubscriptionsAreAnnounced(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := newFixture(t, db, openUsage(t, db))
	other, _ := h.newKey(t, "setup")
	// The application's clock is ahead.
	const tenYears = 10 * 365 * 24 * time.Hour
	owner := connect(t, storetest.URL(t))
	exec(t, owner, `UPDATE app_state SET clock_offset = $2 WHERE app_id = $1`, h.application.ID, tenYears.Milliseconds())
	for range 2 { // the second changes nothing
		_, err := h.RevokeKey(t.Context(), h.key.ID, moment)
		noError(t, err)
	}
	var rotated []keys.APIKey
	for _, overlap := range []keys.Overlap{keys.OneDay, keys.NoOverlap} { // only the second ends a key now
		old, _ := h.newKey(t, "setup")
		both, err := h.RotateKey(t.Context(), old.ID, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: overlap}, tenancy.AllPermissions(), moment, rand.Reader)
		})
		noError(t, err)
		rotated = append(rotated, both.Old, both.New)
	}
	_, err := h.RevokeKeys(t.Context(), moment)
	noError(t, err)
	types, data := h.notifications(t)
	var revoked []any
	started := 0
	for i, kind := range types {
		switch {
		case kind == notify.KeyRevoked && data[i]["id"] != "": // the fixture's own has none
			revoked = append(revoked, data[i]["id"])
		case kind == notify.SubscriptionStarted:
			started++
			if data[i]["planKey"] != "max" || data[i]["status"] != "active" {
				t.Errorf("a subscription started with %v", data[i])
			}
		}
	}
	want := []any{h.key.ID.Format(ids.APIKey), rotated[2].ID.Format(ids.APIKey)} // one by one, and then all that are left
	all := []any{other.ID.Format(ids.APIKey)}
	for _, i := range []int{0, 1, 3} {
		all = append(all, rotated[i].ID.Format(ids.APIKey))
	}
	if len(revoked) != 6 || !slices.Equal(revoked[:2], want) || slices.ContainsFunc(all, func(id any) bool { return !slices.Contains(revoked[2:], id) }) {
		t.Errorf("revoked are %v, want %v and %v", revoked, want, all)
	}
	if late := texts(t, owner, `SELECT id::text FROM notifications WHERE app_id = $1 AND type = 'key.revoked' AND data->>'id' <> '' AND created_at < $2`,
		h.application.ID, moment+tenYears.Milliseconds()/2); len(late) > 0 {
		t.Errorf("%d have the time of another clock", len(late))
	}
	if started != 1 { // a duplicate tells nothing
		t.Errorf("%d subscriptions started", started)
	}
}
