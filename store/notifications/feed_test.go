package notifications_test

import (
	"testing"

	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
	"purser/store/storetest"
)

// TestAFilteredPageOfAWalletReadsABoundedPart has a wallet with more notifications than a page
// reads, of which the first and the last are of the wanted type.
func TestAFilteredPageOfAWalletReadsABoundedPart(t *testing.T) {
	t.Parallel()
	scope := newScope(t)
	app := notifications.Open(newNodes(t, 1)[0].App(scope))
	const last = 2*notifications.MaxScan + 1
	wallet := ids.New()
	storetest.Exec(t, storetest.URL(t), `INSERT INTO wallets (app_id, id, org_id, identity, created_at) VALUES ($1, $2, $3, 'busy', $4)`, scope.AppID, wallet, scope.OrgID, moment)
	storetest.Exec(t, storetest.URL(t), `
		INSERT INTO notifications (app_id, id, org_id, type, wallet_id, data, created_at, seq)
		SELECT $1, gen_random_uuid(), $2, CASE WHEN n IN (1, $5) THEN 'debt.incurred' ELSE 'deposit.created' END, $3, '{}', $4, n FROM generate_series(1, $5::bigint) n`,
		scope.AppID, scope.OrgID, wallet, moment, last)
	storetest.Exec(t, storetest.URL(t), `INSERT INTO feeds (app_id, org_id, last_seq) VALUES ($1, $2, $3)`, scope.AppID, scope.OrgID, last)

	for at, want := range []struct {
		after, next int64
		found       int
	}{{0, notifications.MaxScan, 1}, {notifications.MaxScan, 2 * notifications.MaxScan, 0}, {2 * notifications.MaxScan, last, 1}} {
		page, err := app.Feed(t.Context(), notifications.Query{After: want.after, Types: []notify.Type{notify.DebtIncurred}, Identity: "busy", Limit: 10})
		noError(t, err)
		if page.NextAfter != want.next || len(page.Notifications) != want.found || page.More != (want.next < last) {
			t.Errorf("page %d has %d, next after %d, more: %t", at, len(page.Notifications), page.NextAfter, page.More)
		}
	}
	for at, want := range []struct {
		before, next int64
		found        int
	}{{0, last - notifications.MaxScan + 1, 1}, {last - notifications.MaxScan + 1, 2, 0}, {2, 0, 1}} {
		list, next, err := app.Newest(t.Context(), notifications.Backwards{Before: want.before, Types: []notify.Type{notify.DebtIncurred}, WalletID: wallet, Limit: 10})
		noError(t, err)
		if next != want.next || len(list) != want.found {
			t.Errorf("page %d backwards has %d, next %d", at, len(list), next)
		}
	}
}
