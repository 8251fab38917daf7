package notifications_test

import (
	"testing"

	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
)

// The next failure may be long after the last delivery is gone: it must not pause the
// endpoint at once.
func TestAnEndpointFailsOnlyWhileDeliveriesWait(t *testing.T) {
	t.Parallel()
	inner := newNodes(t, 1)[0].App(newScope(t))
	app := notifications.Open(inner)
	e := newEndpoint()
	noError(t, app.CreateEndpoint(t.Context(), e))
	now := moment
	send := func(n notify.Notification, status int) {
		t.Helper()
		now++
		_, err := app.Finish(t.Context(), notifications.Attempt{ID: ids.New(), EndpointID: e.ID, NotificationID: n.ID, URL: e.URL, Status: status, StartedAt: now},
			notify.Result{Status: status}, now, 0)
		noError(t, err)
	}
	want := func(failing bool, when string) {
		t.Helper()
		stored, err := app.Endpoint(t.Context(), e.ID)
		noError(t, err)
		if stored.FailingSince != 0 != failing {
			t.Errorf("%s it is failing since %d", when, stored.FailingSince)
		}
	}
	// giveUp has a delivery refused until it is given up, with others accepted between.
	giveUp := func(n notify.Notification) {
		t.Helper()
		for range notify.MaxAttempts - 1 {
			send(n, 500)
			send(number(t, inner, notify.KeyRevoked, 1)[0], 200)
		}
		send(n, 500)
	}

	list := number(t, inner, notify.KeyRevoked, 3)
	giveUp(list[0])
	want(true, "while deliveries wait")
	send(list[1], 200)
	send(list[2], 200)
	giveUp(number(t, inner, notify.KeyRevoked, 1)[0])
	want(false, "after the last was given up")

	send(number(t, inner, notify.KeyRevoked, 1)[0], 500)
	if _, err := app.Prune(t.Context(), moment); err != nil {
		t.Fatal(err)
	}
	want(true, "after a pass that deleted nothing")
	_, err := app.Prune(t.Context(), moment+1)
	noError(t, err)
	want(false, "after the last was deleted")
}
