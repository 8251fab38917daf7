package store_test

import (
	"context"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
)

// notified gives a fixture something in each table of notifications.
func (h *fixture) notified(tb testing.TB) {
	tb.Helper()
	endpoint := notify.Endpoint{
		ID: ids.New(), URL: "https://example.com/hooks", Status: notify.Enabled, Revision: 1, SealedSecret: []byte("sealed"), CreatedAt: moment,
	}
	deleted := endpoint
	deleted.ID = ids.New()
	for _, e := range []notify.Endpoint{endpoint, deleted} {
		noError(tb, h.Notifications().CreateEndpoint(tb.Context(), e))
	}
	noError(tb, h.Notifications().DeleteEndpoint(tb.Context(), deleted.ID))
	h.endpoint = endpoint.ID
	_, err := h.Notifications().Number(tb.Context(), moment)
	noError(tb, err)
	page, err := h.Notifications().Feed(tb.Context(), notifications.Query{After: -1, Limit: 1})
	noError(tb, err)
	h.notification = page.Notifications[0].ID
	_, err = h.Notifications().Finish(tb.Context(), h.attempt(), notify.Result{Status: 500}, moment, 0)
	noError(tb, err)
	noError(tb, store.Notify(tb.Context(), h.App, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment))) // without a number
}

func (h fixture) attempt() notifications.Attempt {
	return notifications.Attempt{
		ID: ids.New(), EndpointID: h.endpoint, NotificationID: h.notification, URL: "https://example.com/hooks", Status: 500, StartedAt: moment, TookMillis: 1,
	}
}

const (
	noEndpoint     = fault.WebhookEndpointNotFound
	noNotification = fault.NotificationNotFound
)

var notificationCalls = []call[notifications.App]{
	{"Number", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.Number(ctx, moment)
	}},
	{"Feed", "", "", "", "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Feed(ctx, notifications.Query{After: -1, Identity: h.deposit.Identity, Limit: 100})
	}},
	{"Last", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.Last(ctx)
	}},
	{"Notification", "", noNotification, noNotification, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Notification(ctx, h.notification)
	}},
	{"Attempts", "", noNotification, noNotification, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Attempts(ctx, h.notification, 10)
	}},
	{"Endpoints", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.Endpoints(ctx)
	}},
	{"Endpoint", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Endpoint(ctx, h.endpoint)
	}},
	{"CreateEndpoint", "its id", "", "", anyError, func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return nil, a.CreateEndpoint(ctx, notify.Endpoint{ID: h.endpoint, URL: "https://example.com", Status: notify.Enabled, SealedSecret: []byte("x")})
	}},
	{"By", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.By(actor).Endpoints(ctx)
	}},
	{"UpdateEndpoint", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.UpdateEndpoint(ctx, h.endpoint, notify.EndpointPatch{Status: new(notify.Paused)}, true)
	}},
	{"ResetDeliveries", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return nil, a.ResetDeliveries(ctx, h.endpoint)
	}},
	{"RotateSecret", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.RotateSecret(ctx, h.endpoint, notifications.Rotation{SealedSecret: []byte("new"), PreviousUntil: moment})
	}},
	{"ResealEndpoints", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		var seen []notify.Endpoint
		_, err := a.ResealEndpoints(ctx, func(e *notify.Endpoint) bool { seen = append(seen, *e); return true })
		return seen, err
	}},
	{"Unmailed", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.Unmailed(ctx, notify.Types(), 0)
	}},
	{"FinishMailing", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return nil, a.FinishMailing(ctx, notifications.Unmailed{Upto: 1}, nil, moment)
	}},
	{"DeleteEndpoint", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return nil, a.DeleteEndpoint(ctx, h.endpoint)
	}},
	{"DueEndpoints", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.DueEndpoints(ctx, moment)
	}},
	{"DueDeliveries", "", "", "", "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.DueDeliveries(ctx, h.endpoint, moment, 100)
	}},
	{"NextDelivery", "", "", "", "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.NextDelivery(ctx, h.endpoint)
	}},
	{"Finish", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Finish(ctx, h.attempt(), notify.Result{Status: 200}, moment, 0)
	}},
	{"Prune", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.Prune(ctx, moment+1)
	}},
	{"SendTest", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return nil, a.SendTest(ctx, h.endpoint, notify.New(notify.KeyRevoked, ids.ID{}, notify.KeyData{}, moment))
	}},
	{"Replay", "", noEndpoint, noEndpoint, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Replay(ctx, notifications.Replay{EndpointID: h.endpoint, From: 1, Now: moment})
	}},
	{"Waiting", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		return a.Waiting(ctx)
	}},
	{"Deliveries", "", "", "", "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return page(a.Deliveries(ctx, h.endpoint, "", store.Page{Limit: 100}))
	}},
	{"Deliveries", "that wait", "", "", "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return page(a.Deliveries(ctx, h.endpoint, notify.Pending, store.Page{Limit: 100}))
	}},
	{"History", "", noNotification, noNotification, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.History(ctx, h.notification, 100)
	}},
	{"Newest", "", "", "", "", func(ctx context.Context, a notifications.App, _ fixture) (any, error) {
		list, _, err := a.Newest(ctx, notifications.Backwards{Limit: 100})
		return list, err
	}},
	{"Newest", "of a wallet", "", "", "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		list, _, err := a.Newest(ctx, notifications.Backwards{WalletID: h.walletID, Limit: 100})
		return list, err
	}},
	{"Redeliver", "", noNotification, noNotification, "", func(ctx context.Context, a notifications.App, h fixture) (any, error) {
		return a.Redeliver(ctx, h.notification, h.endpoint, moment)
	}},
}
