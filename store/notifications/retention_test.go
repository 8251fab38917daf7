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
	if more, err := app.Prune(t.Context(), moment); more || err != nil {
		t.Errorf("an application without a feed: %t, %v", more, err)
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
	for range 2 {
		if more, err := app.Prune(t.Context(), moment+4); more || err != nil { // four, and the test
			t.Errorf("there is more: %t, %v", more, err)
		}
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

// Numbering waits while a part is deleted, so each is small, however often a notification
// was tried.
func TestOldAttemptsAreDeletedInParts(t *testing.T) {
	t.Parallel()
	node := newNodes(t, 1)[0]
	inner := node.App(newScope(t))
	endpoint, notification := announced(t, inner)
	count := func(query string) (n int) {
		t.Helper()
		noError(t, inner.Attempt(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
			return tx.Conn.QueryRow(ctx, `SELECT count(*) FROM `+query+` WHERE app_id = $1`, tx.Scope.AppID).Scan(&n)
		}))
		return n
	}
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		_, err := tx.Conn.Exec(ctx, `
			INSERT INTO delivery_attempts (app_id, id, org_id, endpoint_id, notification_id, url, error, answer, started_at, took_ms)
			SELECT $1, gen_random_uuid(), $2, $3, $4, '', '', '', 0, 0 FROM generate_series(1, $5)`,
			tx.Scope.AppID, tx.Scope.OrgID, endpoint, notification, 2*notifications.MaxPrunedAttempts+1)
		return err
	}))
	app := notifications.Open(inner)
	for part, left := range []int{notifications.MaxPrunedAttempts + 1, 1, 0} {
		more, err := app.Prune(t.Context(), moment+1)
		if err != nil || more != (left > 0) || count("delivery_attempts") != left || (count("notifications") > 0) != more || (count("deliveries") > 0) != more {
			t.Errorf("after part %d there is more: %t, with %d attempts, %v", part, more, count("delivery_attempts"), err)
		}
	}
}

// announced is a numbered notification of an application with an endpoint.
func announced(t *testing.T, inner pg.App) (endpoint, notification ids.ID) {
	t.Helper()
	app := notifications.Open(inner)
	e := newEndpoint()
	noError(t, app.CreateEndpoint(t.Context(), e))
	n := notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment)
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error { return tx.Notify(ctx, n) }))
	_, err := app.Number(t.Context(), moment)
	noError(t, err)
	return e.ID, n.ID
}

// The outcome of an attempt may be stored while its notification is deleted. It would stay for
// ever, with what the receiver answered.
func TestAnAttemptThatEndsDuringTheRetentionIsDeleted(t *testing.T) {
	t.Parallel()
	node := newNodes(t, 1)[0]
	inner := node.App(newScope(t))
	endpoint, notification := announced(t, inner)
	result := make(chan error, 1)
	noError(t, inner.Attempt(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		if _, err := notifications.FinishIn(ctx, tx, notifications.Attempt{
			ID: ids.New(), EndpointID: endpoint, NotificationID: notification, URL: newEndpoint().URL, Status: 500, Answer: "no", StartedAt: moment,
		}, notify.Result{Status: 500}, moment, 0); err != nil {
			return err
		}
		var holder int
		if err := tx.Conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&holder); err != nil {
			return err
		}
		go func() {
			_, err := notifications.Open(inner).Prune(t.Context(), moment+1)
			result <- err
		}()
		for waits := false; !waits; {
			if err := node.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, holder).Scan(&waits); err != nil {
				return err
			}
		}
		return nil
	}))
	noError(t, <-result)
	var left int
	noError(t, inner.Attempt(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		return tx.Conn.QueryRow(ctx, `SELECT count(*) FROM delivery_attempts WHERE app_id = $1`, tx.Scope.AppID).Scan(&left)
	}))
	if left > 0 {
		t.Errorf("%d attempts have no notification", left)
	}
}

// A delivery that is requested while its notification is deleted would stay without one.
func TestARedeliveryWaitsForTheRetention(t *testing.T) {
	t.Parallel()
	node := newNodes(t, 1)[0]
	inner := node.App(newScope(t))
	endpoint, notification := announced(t, inner)
	result := make(chan error, 1)
	noError(t, inner.Attempt(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		if _, err := notifications.PruneIn(ctx, tx, moment+1); err != nil {
			return err
		}
		var holder int
		if err := tx.Conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&holder); err != nil {
			return err
		}
		go func() {
			_, err := notifications.Open(inner).Redeliver(t.Context(), notification, endpoint, moment)
			result <- err
		}()
		for waits := false; !waits; {
			if err := node.Pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))`, holder).Scan(&waits); err != nil {
				return err
			}
		}
		return nil
	}))
	if err := <-result; !fault.Is(err, fault.NotificationNotFound) {
		t.Errorf("a deleted notification is sent again: %v", err)
	}
}

// The job of an endpoint runs again when its next delivery is due: one that can't be sent
// would be due for ever.
func TestADeliveryWithoutNotificationIsNotDue(t *testing.T) {
	t.Parallel()
	inner := newNodes(t, 1)[0].App(newScope(t))
	endpoint, notification := announced(t, inner)
	app := notifications.Open(inner)
	if next, err := app.NextDelivery(t.Context(), endpoint); next != moment || err != nil {
		t.Errorf("the next delivery is at %d, %v", next, err)
	}
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		_, err := tx.Conn.Exec(ctx, `DELETE FROM notifications WHERE app_id = $1 AND id = $2`, tx.Scope.AppID, notification)
		return err
	}))
	if next, err := app.NextDelivery(t.Context(), endpoint); next != 0 || err != nil {
		t.Errorf("the next delivery is at %d, %v", next, err)
	}
	if due, err := app.DueEndpoints(t.Context(), moment+1); len(due) > 0 || err != nil {
		t.Errorf("endpoints %v are due, %v", due, err)
	}
}
