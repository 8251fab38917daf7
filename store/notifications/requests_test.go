package notifications_test

import (
	"context"
	"testing"

	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
	"purser/store/notifications"
)

// number commits notifications of a type and numbers them.
func number(t *testing.T, inner pg.App, kind notify.Type, count int) (list []notify.Notification) {
	t.Helper()
	for range count {
		list = append(list, notify.Notification{ID: ids.New(), Type: kind, Data: []byte(`{}`), CreatedAt: moment})
	}
	noError(t, inner.Transact(t.Context(), func(ctx context.Context, tx *pg.Tx) error { return tx.Notify(ctx, list...) }))
	for numbered, n := 0, 0; numbered < count; numbered += n {
		var err error
		n, err = notifications.Open(inner).Number(t.Context(), moment)
		noError(t, err)
	}
	return list
}

// previousSeqs are the links of an endpoint's deliveries, by their numbers.
func previousSeqs(t *testing.T, app notifications.App, endpoint ids.ID) map[int64]int64 {
	t.Helper()
	due, err := app.DueDeliveries(t.Context(), endpoint, moment, 2*notify.MaxReplay)
	noError(t, err)
	links := make(map[int64]int64, len(due))
	for _, d := range due {
		links[d.Seq] = d.PreviousSeq
	}
	return links
}

func TestARedeliveryIsLinkedToTheOneBefore(t *testing.T) {
	t.Parallel()
	inner := newNodes(t, 1)[0].App(newScope(t))
	app := notifications.Open(inner)
	e, other := newEndpoint(), newEndpoint()
	e.Types = []notify.Type{notify.KeyRevoked}
	noError(t, app.CreateEndpoint(t.Context(), e))
	number(t, inner, notify.KeyRevoked, 2)                    // 1 and 2
	unwanted := number(t, inner, notify.DepositCreated, 2)[1] // 3 and 4
	noError(t, app.SendTest(t.Context(), e.ID, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment)))
	noError(t, app.CreateEndpoint(t.Context(), other)) // wants all, and was sent nothing yet
	for name, c := range map[string]struct {
		endpoint ids.ID
		want     int64
	}{"the one before that was sent": {e.ID, 2}, "the one before that is wanted": {other.ID, 3}} {
		queued, err := app.Redeliver(t.Context(), unwanted.ID, c.endpoint, moment)
		noError(t, err)
		if got, sent := previousSeqs(t, app, c.endpoint)[4]; !sent || got != c.want || queued != 1 {
			t.Errorf("%s: previousSeq is %d, want %d", name, got, c.want)
		}
	}
}

func TestAReplayIsLinkedToOneFarBefore(t *testing.T) {
	t.Parallel()
	inner := newNodes(t, 1)[0].App(newScope(t))
	app := notifications.Open(inner)
	e := newEndpoint()
	e.Types = []notify.Type{notify.KeyRevoked}
	noError(t, app.CreateEndpoint(t.Context(), e))
	number(t, inner, notify.KeyRevoked, 2)
	number(t, inner, notify.DepositCreated, 5001)
	number(t, inner, notify.PlanSynced, 1)
	_, err := app.UpdateEndpoint(t.Context(), e.ID, notify.EndpointPatch{Types: &[]notify.Type{notify.KeyRevoked, notify.PlanSynced}}, true)
	noError(t, err)
	_, err = app.Replay(t.Context(), notifications.Replay{EndpointID: e.ID, From: 5004, Now: moment})
	noError(t, err)
	if got, sent := previousSeqs(t, app, e.ID)[5004]; !sent || got != 2 {
		t.Errorf("previousSeq is %d, want 2", got)
	}
}
