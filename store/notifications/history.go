package notifications

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
)

const (
	// MaxWaiting is how far the waiting deliveries of an endpoint are counted.
	MaxWaiting = 1_000
	// maxShownDeliveries bounds the deliveries of one notification: endpoints that were
	// deleted have some too.
	maxShownDeliveries = 100
)

const (
	shownDelivery = deliveryColumns + `, a.status, a.error, a.started_at`

	// The newest attempt of each delivery.
	withLastAttempt = fromDeliveries + `
		LEFT JOIN LATERAL (
			SELECT t.status, t.error, t.started_at FROM delivery_attempts t
			WHERE t.app_id = $1 AND t.notification_id = d.notification_id AND t.endpoint_id = d.endpoint_id
			ORDER BY t.id DESC LIMIT 1) a ON true`
)

var (
	countWaiting = pg.Declare("count waiting deliveries", `
		SELECT e.id, (
			SELECT count(*) FROM (
				SELECT 1 FROM deliveries d
				WHERE d.app_id = $1 AND d.endpoint_id = e.id AND d.status = 'pending' LIMIT $2) w)
		FROM webhook_endpoints e WHERE e.app_id = $1`)

	listDeliveries = pg.Declare("list deliveries", `
		SELECT `+shownDelivery+withLastAttempt+`
		WHERE d.app_id = $1 AND d.endpoint_id = $2 AND d.notification_id < $3
		ORDER BY d.notification_id DESC LIMIT $4`)

	listOpenDeliveries = pg.Declare("list open deliveries", `
		SELECT `+shownDelivery+withLastAttempt+`
		WHERE d.app_id = $1 AND d.endpoint_id = $2 AND d.notification_id < $3 AND d.status = $5 AND d.status <> 'delivered'
		ORDER BY d.notification_id DESC LIMIT $4`)

	listDeliveriesOf = pg.Declare("list deliveries with their state", `
		SELECT `+shownDelivery+withLastAttempt+`
		WHERE d.app_id = $1 AND d.notification_id = $2
		ORDER BY d.endpoint_id DESC LIMIT $3`)

	readFeedBackwards = pg.Declare("read feed backwards", `
		SELECT `+notificationColumns+`
		FROM notifications n LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.seq < $2 AND n.seq >= $3 AND (cardinality($4::text[]) = 0 OR n.type = ANY ($4))
		ORDER BY n.seq DESC LIMIT $5`)

	readWalletBackwards = pg.Declare("read notifications of a wallet backwards", `
		SELECT `+notificationColumns+`
		FROM notifications n LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.wallet_id = $6 AND n.seq < $2 AND n.seq >= $3 AND (cardinality($4::text[]) = 0 OR n.type = ANY ($4))
		ORDER BY n.seq DESC LIMIT $5`)

	findScanStart = pg.Declare("find start of a scan of a wallet's notifications", `
		SELECT n.seq FROM notifications n
		WHERE n.app_id = $1 AND n.wallet_id = $2 AND n.seq < $3 AND n.seq >= $4
		ORDER BY n.seq DESC OFFSET $5 LIMIT 1`)
)

// Shown is a delivery with its newest attempt.
type Shown struct {
	Delivery
	LastStatus int    // of the answer; zero without one
	LastError  string // empty when an answer came
	LastAt     int64  // by the database's clock; zero before the first attempt
}

func readShown(row pgx.CollectableRow) (s Shown, err error) {
	var wallet *ids.ID
	var identity, failure *string
	var seq, at *int64
	var status *int
	err = row.Scan(&s.ID, &s.Type, &wallet, &identity, &s.Data, &s.CreatedAt, &seq, &s.Test,
		&s.EndpointID, &s.PreviousSeq, &s.Status, &s.Attempts, &s.DueAt, &s.RequestedAt, &status, &failure, &at)
	s.WalletID, s.Identity, s.Seq = pg.OrZero(wallet), pg.OrZero(identity), pg.OrZero(seq)
	s.LastStatus, s.LastError, s.LastAt = pg.OrZero(status), pg.OrZero(failure), pg.OrZero(at)
	return s, err
}

// Waiting counts the pending deliveries of each endpoint, up to MaxWaiting.
func (a App) Waiting(ctx context.Context) (map[ids.ID]int, error) {
	type row struct {
		Endpoint ids.ID
		Waiting  int
	}
	rows, err := pg.ListAll(ctx, a.app, countWaiting, pgx.RowToStructByPos[row], MaxWaiting)
	counts := make(map[ids.ID]int, len(rows))
	for _, r := range rows {
		counts[r.Endpoint] = r.Waiting
	}
	return counts, err
}

// Deliveries lists the deliveries of an endpoint, the newest notification first: those in
// the given state, pending or failed, or all when it is empty.
func (a App) Deliveries(ctx context.Context, endpoint ids.ID, status notify.DeliveryStatus, p pg.Page) (list []Shown, more bool, err error) {
	statement, args := listDeliveries, []any{endpoint, p.Start(), p.OneMore()}
	if status != "" {
		statement, args = listOpenDeliveries, append(args, status)
	}
	list, err = pg.ListAll(ctx, a.app, statement, readShown, args...)
	list, more = pg.Cut(list, p.Limit)
	return list, more, err
}

// History is a notification with what was sent of it.
type History struct {
	Notification notify.Notification
	Deliveries   []Shown
	Attempts     []Attempt // the newest first
}

// History reads a notification with its deliveries and their newest attempts.
func (a App) History(ctx context.Context, id ids.ID, most int) (History, error) {
	return pg.Return(ctx, a.app.Snapshot, func(ctx context.Context, tx *pg.Tx) (h History, err error) {
		if h.Notification, err = pg.Find(ctx, tx, selectNotification, readNotification, fault.New(fault.NotificationNotFound), id); err != nil {
			return h, err
		}
		if h.Deliveries, err = pg.Collect(ctx, tx, listDeliveriesOf, readShown, id, maxShownDeliveries); err != nil {
			return h, err
		}
		h.Attempts, err = pg.Collect(ctx, tx, listAttempts, readAttempt, id, most)
		return h, err
	})
}

// Backwards asks for notifications, the newest first.
type Backwards struct {
	Before   int64         // only earlier ones; zero for all
	Types    []notify.Type // all when empty
	WalletID ids.ID        // all when zero
	Limit    int
}

// Newest lists notifications, the newest first. next is where the list continues; zero at
// its end. A filtered page may be shorter than its limit and continue.
func (a App) Newest(ctx context.Context, q Backwards) ([]notify.Notification, int64, error) {
	return pg.ReturnBoth(ctx, a.app.Snapshot, func(ctx context.Context, tx *pg.Tx) ([]notify.Notification, int64, error) {
		return newest(ctx, tx, q)
	})
}

func newest(ctx context.Context, tx *pg.Tx, q Backwards) (list []notify.Notification, next int64, err error) {
	feeds, err := pg.Collect(ctx, tx, selectFeed, pgx.RowToStructByPos[feed])
	if err != nil || len(feeds) == 0 {
		return nil, 0, err
	}
	held := feeds[0]
	if q.Before == 0 || q.Before > held.Last+1 {
		q.Before = held.Last + 1
	}
	// The numbers have no gap, so a range of them bounds what is read.
	start := max(q.Before-maxScan, held.Oldest)
	statement, args := readFeedBackwards, []any{q.Before, start, typeNames(q.Types), q.Limit}
	if !q.WalletID.IsZero() {
		start = held.Oldest // the index has the notifications of the wallet alone
		if len(q.Types) > 0 {
			if start, err = scanEnd(ctx, tx, findScanStart, start, q.WalletID, q.Before, start); err != nil {
				return nil, 0, err
			}
		}
		statement, args = readWalletBackwards, []any{q.Before, start, typeNames(q.Types), q.Limit, q.WalletID}
	}
	if list, err = pg.Collect(ctx, tx, statement, readNotification, args...); err != nil {
		return nil, 0, err
	}
	switch n := len(list); {
	case n == q.Limit && list[n-1].Seq > held.Oldest:
		next = list[n-1].Seq
	case n < q.Limit && start > held.Oldest:
		next = start
	}
	return list, next, nil
}
