package notifications_test

import (
	"bytes"
	"context"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
	"purser/store/notifications"
)

func newEndpoint() notify.Endpoint {
	return notify.Endpoint{ID: ids.New(), URL: "https://example.com", Status: notify.Enabled, SealedSecret: []byte("first"), CreatedAt: moment}
}

func TestADeletedEndpointsIDIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	app := notifications.Open(newNodes(t, 1)[0].App(newScope(t)))
	e := newEndpoint()
	noError(t, app.CreateEndpoint(t.Context(), e))
	noError(t, app.SendTest(t.Context(), e.ID, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment)))
	noError(t, app.DeleteEndpoint(t.Context(), e.ID))
	e.URL = "https://example.org"
	if err := app.CreateEndpoint(t.Context(), e); !fault.Is(err, fault.AlreadyExists) {
		t.Errorf("a deleted endpoint is created again: %v", err)
	}
	if _, err := app.Endpoint(t.Context(), e.ID); !fault.Is(err, fault.WebhookEndpointNotFound) {
		t.Errorf("the deleted endpoint: %v", err)
	}
}

// TestARotationOfAnotherRevisionIsRefused is a form sent twice at once: the second may not
// make the first's secret the previous one, which no receiver has.
func TestARotationOfAnotherRevisionIsRefused(t *testing.T) {
	t.Parallel()
	app := notifications.Open(newNodes(t, 1)[0].App(newScope(t)))
	e := newEndpoint()
	noError(t, app.CreateEndpoint(t.Context(), e))
	rotate := func(expected int64, secret string) error {
		_, err := app.RotateSecret(t.Context(), e.ID, notifications.Rotation{ExpectedRevision: expected, SealedSecret: []byte(secret), PreviousUntil: moment})
		return err
	}
	noError(t, rotate(1, "second"))
	if err := rotate(1, "third"); !fault.Is(err, fault.RevisionConflict) {
		t.Errorf("the same revision again: %v", err)
	}
	stored, err := app.Endpoint(t.Context(), e.ID)
	noError(t, err)
	if !bytes.Equal(stored.SealedSecret, []byte("second")) || !bytes.Equal(stored.SealedPrevious, []byte("first")) {
		t.Errorf("the secrets are %s and %s", stored.SealedSecret, stored.SealedPrevious)
	}
	noError(t, rotate(0, "third"))
}

// However many deliveries wait, enabling an endpoint is one short statement, and each
// transaction of its job a bounded one.
func TestWaitingDeliveriesStartOverInParts(t *testing.T) {
	t.Parallel()
	inner := newNodes(t, 1)[0].App(newScope(t))
	app := notifications.Open(inner)
	e := newEndpoint()
	e.Status = notify.Paused
	noError(t, app.CreateEndpoint(t.Context(), e))
	list := make([]notify.Notification, notifications.MaxReset+3)
	for i := range list {
		list[i] = notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment)
	}
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error { return tx.Notify(ctx, list...) }))
	for numbered, n := 0, 0; numbered < len(list); numbered += n {
		var err error
		n, err = app.Number(t.Context(), moment)
		noError(t, err)
	}
	const later = moment + 1_000_000
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error {
		for _, change := range []string{
			`SET attempts = 3, due_at = due_at + 1000000 WHERE app_id = $1 AND seq > 1`, // the first was never tried
			`SET status = 'delivered' WHERE app_id = $1 AND seq = 2`,
			`SET status = 'failed', due_at = 0 WHERE app_id = $1 AND seq = 3`,
		} {
			if _, err := tx.Conn.Exec(ctx, `UPDATE deliveries `+change, tx.Scope.AppID); err != nil {
				return err
			}
		}
		return nil
	}))
	waiting := func() (due int) {
		t.Helper()
		got, err := app.DueDeliveries(t.Context(), e.ID, later-1, 2*notifications.MaxReset)
		noError(t, err)
		for _, d := range got {
			if d.Attempts != 0 || d.DueAt != moment {
				t.Errorf("%d was tried %d times and is due at %d", d.Seq, d.Attempts, d.DueAt)
			}
		}
		return len(got)
	}
	enabled, err := app.UpdateEndpoint(t.Context(), e.ID, notify.EndpointPatch{Status: new(notify.Enabled)}, true)
	noError(t, err)
	if due := waiting(); due != 1 || enabled.ResetAfter == nil {
		t.Errorf("%d are due before the job runs: %+v", due, enabled)
	}
	if found, err := app.DueEndpoints(t.Context(), 0); err != nil || len(found) != 1 { // nothing is due by then
		t.Errorf("%v have something to do, %v", found, err)
	}
	for part, want := range []int{notifications.MaxReset - 1, notifications.MaxReset + 1} { // without the delivered and the failed
		noError(t, app.ResetDeliveries(t.Context(), e.ID))
		stored, err := app.Endpoint(t.Context(), e.ID)
		noError(t, err)
		if due := waiting(); due != want || (stored.ResetAfter == nil) != (part == 1) {
			t.Errorf("%d are due after part %d, want %d: %+v", due, part, want, stored)
		}
	}
	if found, err := app.DueEndpoints(t.Context(), 0); err != nil || len(found) != 0 {
		t.Errorf("%v have something to do, %v", found, err)
	}
}
