package notifications_test

import (
	"bytes"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/notify"
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
