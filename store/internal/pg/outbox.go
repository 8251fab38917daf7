package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/notify"
	"purser/tenancy"
)

// InsertNotifications is Notify for a statement that is prepared.
var InsertNotifications = Declare("insert notifications", `
	INSERT INTO notifications (app_id, id, org_id, type, wallet_id, data, created_at)
	SELECT s.app_id, t.id, s.org_id, t.type, t.wallet_id, t.data::jsonb, t.created_at
	FROM app_state s CROSS JOIN unnest($2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::bigint[]) AS t (id, type, wallet_id, data, created_at)
	WHERE s.app_id = $1`)

// SelectLaterNotification finds the notification without a number that sorts last after
// an id: a node whose clock is ahead has made it.
var SelectLaterNotification = Declare("select later notification", `
	SELECT id FROM notifications WHERE app_id = $1 AND id > $2 AND seq IS NULL AND NOT test ORDER BY id DESC LIMIT 1`)

// Notify inserts notifications in this transaction: they exist if and only if it
// commits. They have no number yet; after the commit the node's sequencer is woken. Their
// ids, and so their numbers, come after those of all that were committed before: lock what
// they are about first. The statements lock nothing.
func (tx *Tx) Notify(ctx context.Context, list ...notify.Notification) error {
	if len(list) == 0 {
		return nil
	}
	var (
		notificationIDs []ids.ID
		types, data     []string
		wallets         []*ids.ID
		created         []int64
	)
	later, err := Collect(ctx, tx, SelectLaterNotification, pgx.RowTo[ids.ID], list[0].ID)
	if err != nil {
		return err
	}
	var last ids.ID
	if len(later) == 1 {
		last = later[0]
	}
	for _, n := range list {
		last = n.ID.After(last)
		notificationIDs, types, data = append(notificationIDs, last), append(types, string(n.Type)), append(data, string(n.Data))
		wallets, created = append(wallets, OrNull(n.WalletID)), append(created, n.CreatedAt)
	}
	tx.notified = true
	return tx.Exec(ctx, InsertNotifications, int64(len(list)), notificationIDs, types, wallets, data, created)
}

// NotifyRevoked announces keys that were revoked in this transaction, at the application's
// time.
func (tx *Tx) NotifyRevoked(ctx context.Context, revoked ...notify.KeyData) error {
	now, err := tx.AppTime(ctx)
	if err != nil {
		return err
	}
	list := make([]notify.Notification, len(revoked))
	for i, key := range revoked {
		list[i] = notify.New(notify.KeyRevoked, ids.ID{}, key, now)
	}
	return tx.Notify(ctx, list...)
}

// WakeNotifications has the node's sequencer woken after the commit, also without a new
// notification: deliveries are due.
func (tx *Tx) WakeNotifications() { tx.notified = true }

// OnNotifications has committed called after each transaction of this node that
// inserted notifications. A transaction whose outcome is unknown, or of a node that died,
// calls nothing: a periodic pass finds what it left.
func (db *DB) OnNotifications(committed func(tenancy.Scope)) { db.notifications.Store(&committed) }

// NotificationsCommitted tells the sequencer of this node that an application may have
// notifications without a number.
func (db *DB) NotificationsCommitted(scope tenancy.Scope) {
	if committed := db.notifications.Load(); committed != nil {
		(*committed)(scope)
	}
}
