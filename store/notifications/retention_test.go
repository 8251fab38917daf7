package notifications_test

import (
	"context"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
	"purser/store/notifications"
)

func TestOldNotificationsAreDeletedFromTheStart(t *testing.T) {
	t.Parallel()
	inner := newNodes(t, 1)[0].App(newScope(t))
	app := notifications.Open(inner)
	if n, err := app.Prune(t.Context(), moment); n != 0 || err != nil {
		t.Errorf("an application without a feed: %d, %v", n, err)
	}
	endpoint := notify.Endpoint{ID: ids.New(), URL: "https://example.com", Status: notify.Paused, SealedSecret: []byte("sealed"), CreatedAt: moment}
	noError(t, app.CreateEndpoint(t.Context(), endpoint))
	for i := range int64(6) {
		noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
			return tx.Notify(ctx, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment+i))
		}))
	}
	_, err := app.Number(t.Context(), moment)
	noError(t, err)
	noError(t, app.SendTest(t.Context(), endpoint.ID, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment)))
	if n, err := app.Prune(t.Context(), moment+4); n != 5 || err != nil { // four, and the test
		t.Errorf("deleted %d, %v", n, err)
	}
	if n, err := app.Prune(t.Context(), moment+4); n != 0 || err != nil {
		t.Errorf("deleted %d again, %v", n, err)
	}
	page, err := app.Feed(t.Context(), notifications.Query{After: -1, Limit: 10})
	noError(t, err)
	if len(page.Notifications) != 2 || page.Notifications[0].Seq != 5 || page.Oldest != 5 || page.NextAfter != 6 {
		t.Errorf("the feed is %+v", page)
	}
	if _, err := app.Feed(t.Context(), notifications.Query{After: 3, Limit: 10}); !fault.Is(err, fault.FeedExpired) {
		t.Errorf("reading what was deleted: %v", err)
	}
	if _, err := app.Feed(t.Context(), notifications.Query{After: 4, Limit: 10}); err != nil {
		t.Errorf("reading from the start: %v", err)
	}
	if due, err := app.DueDeliveries(t.Context(), endpoint.ID, moment+10, 10); err != nil || len(due) != 2 {
		t.Errorf("%d deliveries are left, %v", len(due), err)
	}
	// The numbers go on.
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		return tx.Notify(ctx, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment+9))
	}))
	_, err = app.Number(t.Context(), moment)
	noError(t, err)
	if page, err = app.Feed(t.Context(), notifications.Query{After: 6, Limit: 10}); err != nil || len(page.Notifications) != 1 || page.Notifications[0].Seq != 7 {
		t.Errorf("the feed goes on with %+v, %v", page, err)
	}
}
