package store_test

import (
	"context"
	"testing"

	"purser/ids"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
)

// notified gives a household something in each table of notifications.
func (h *household) notified(tb testing.TB) {
	tb.Helper()
	for range 2 {
		h.notify(tb, notify.DepositCreated)
		_, err := h.Notifications().Number(tb.Context())
		noError(tb, err)
	}
	h.notify(tb, notify.DepositCreated) // which has no number
}

func (h household) notify(tb testing.TB, kind notify.Type) ids.ID {
	tb.Helper()
	id := ids.New()
	noError(tb, store.Notify(tb.Context(), h.App, notify.Notification{
		ID: id, Type: kind, WalletID: h.walletID, Data: []byte(`{"id": "` + id.Format(ids.Notification) + `"}`), CreatedAt: moment,
	}))
	return id
}

var notificationCalls = []call[notifications.App]{
	{"Number", "", "", "", "", func(ctx context.Context, a notifications.App, _ household) (any, error) {
		return a.Number(ctx)
	}},
}
