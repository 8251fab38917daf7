package notifications

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

var (
	insertTest = pg.Declare("insert test notification", `
		INSERT INTO notifications (app_id, id, org_id, type, data, created_at, test) VALUES ($1, $2, $3, $4, $5, $6, true)`)

	// A replay of all sends also what the endpoint was never sent: notifications from
	// before it was created, and of types that it wants since.
	listReplayed = pg.Declare("list notifications to replay", `
		SELECT n.id, n.type, n.seq, d.status, d.previous_seq
		FROM notifications n LEFT JOIN deliveries d ON d.app_id = $1 AND d.endpoint_id = $2 AND d.notification_id = n.id
		WHERE n.app_id = $1 AND n.seq >= $3 AND n.seq <= $4
		ORDER BY n.seq LIMIT $5`)

	previousWanted = pg.Declare("select notification before", `
		SELECT n.seq FROM notifications n
		WHERE n.app_id = $1 AND n.seq < $2 AND n.seq >= $2 - 5000 AND (cardinality($3::text[]) = 0 OR n.type = ANY ($3))
		ORDER BY n.seq DESC LIMIT 1`)

	// Ids are about in the order of numbers, so the newest deliveries before are among these.
	previousSent = pg.Declare("select delivery before", `
		SELECT coalesce(max(d.seq), 0) FROM (
			SELECT seq FROM deliveries
			WHERE app_id = $1 AND endpoint_id = $2 AND notification_id < $3 AND seq > 0 AND seq < $4
			ORDER BY notification_id DESC LIMIT 100) d`)

	listLinks = pg.Declare("list deliveries of a notification", `
		SELECT endpoint_id, notification_id, seq, previous_seq FROM deliveries WHERE app_id = $1 AND notification_id = $2`)
)

// SendTest stores a test notification for one endpoint, due now. It is not in the feed.
func (a App) SendTest(ctx context.Context, endpoint ids.ID, n notify.Notification) error {
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		if _, err := pg.Find(ctx, tx, selectEndpoint, readEndpoint, errNoEndpoint, endpoint); err != nil {
			return err
		}
		if err := tx.Exec(ctx, insertTest, 1, n.ID, tx.Scope.OrgID, n.Type, n.Data, n.CreatedAt); err != nil {
			return err
		}
		if err := request(ctx, tx, []notify.Linked{{EndpointID: endpoint, NotificationID: n.ID}}, n.CreatedAt); err != nil {
			return err
		}
		return tx.Audit(ctx, "webhook.test", endpoint.Format(ids.WebhookEndpoint), nil, audit.Fields{"notification": n.ID.Format(ids.Notification), "type": string(n.Type)})
	})
}

// request makes deliveries due now, whatever became of them before.
func request(ctx context.Context, tx *pg.Tx, links []notify.Linked, now int64) error {
	if len(links) == 0 {
		return nil
	}
	tx.WakeNotifications()
	return tx.Exec(ctx, requestDeliveries, int64(len(links)), append(linkColumns(links), now)...)
}

// Replay is a request to send notifications to an endpoint again.
type Replay struct {
	EndpointID ids.ID
	From, To   int64 // numbers, both inclusive; To is zero for the newest
	OnlyFailed bool
	Now        int64 // by the application's clock
}

// replayed is a notification in the range of a replay.
type replayed struct {
	ID       ids.ID
	Type     notify.Type
	Seq      int64
	Status   *notify.DeliveryStatus // nil when it was never sent to the endpoint
	Previous *int64
}

// Replay makes deliveries of a range due again, at most notify.MaxReplay, and returns
// how many. What is pending stays as it is.
func (a App) Replay(ctx context.Context, r Replay) (int, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (int, error) { return replay(ctx, tx, r) })
}

func replay(ctx context.Context, tx *pg.Tx, r Replay) (int, error) {
	// The sequencer inserts deliveries under the same lock.
	held, err := lock(ctx, tx)
	if err != nil {
		return 0, err
	}
	e, err := pg.Find(ctx, tx, lockEndpoint, readEndpoint, errNoEndpoint, r.EndpointID)
	if err != nil {
		return 0, err
	}
	to := held.Last
	if r.To > 0 {
		to = min(to, r.To)
	}
	if to-r.From >= notify.MaxReplay {
		return 0, fault.Newf(fault.InvalidRequest, "A replay covers at most %d notifications. Send toSeq %d, then continue after it.",
			notify.MaxReplay, r.From+notify.MaxReplay-1)
	}
	list, err := pg.Collect(ctx, tx, listReplayed, pgx.RowToStructByPos[replayed], r.EndpointID, r.From, to, notify.MaxReplay)
	if err != nil {
		return 0, err
	}
	var previous int64
	if len(list) > 0 {
		if previous, err = previousSeq(ctx, tx, e, list[0].ID, list[0].Seq); err != nil {
			return 0, err
		}
	}
	links := r.links(e, list, previous)
	if err := request(ctx, tx, links, r.Now); err != nil {
		return 0, err
	}
	return len(links), tx.Audit(ctx, "webhook.replay", r.EndpointID.Format(ids.WebhookEndpoint), nil, audit.Fields{
		"fromSeq": strconv.FormatInt(r.From, 10), "toSeq": strconv.FormatInt(to, 10), "queued": strconv.Itoa(len(links)),
	})
}

// previousSeq is the last number before a notification that the endpoint was sent, or that
// it wants and that is among the 5,000 before. It is zero when there is none.
func previousSeq(ctx context.Context, tx *pg.Tx, e notify.Endpoint, notification ids.ID, seq int64) (int64, error) {
	sent, err := pg.Find(ctx, tx, previousSent, pgx.RowTo[int64], pgx.ErrNoRows, e.ID, notification, seq)
	if err != nil {
		return 0, err
	}
	wanted, err := pg.Collect(ctx, tx, previousWanted, pgx.RowTo[int64], seq, typeNames(e.Types))
	return slices.Max(append(wanted, sent)), err
}

// links chooses what a replay sends, each linked to the one before it that the endpoint
// wants.
func (r Replay) links(e notify.Endpoint, list []replayed, previous int64) (links []notify.Linked) {
	subscriber := notify.Subscriber{Types: e.Types}
	for _, n := range list {
		link := notify.Linked{EndpointID: e.ID, NotificationID: n.ID, Seq: n.Seq, PreviousSeq: previous}
		if n.Status != nil {
			link.PreviousSeq = *n.Previous
		}
		if n.Status != nil || subscriber.Wants(n.Type) {
			previous = n.Seq
		}
		switch {
		case n.Status == nil && (r.OnlyFailed || !subscriber.Wants(n.Type)):
		case n.Status != nil && *n.Status == notify.Pending:
		case n.Status != nil && r.OnlyFailed && *n.Status != notify.Failed:
		default:
			links = append(links, link)
		}
	}
	return links
}

// Redeliver sends a notification again: to one endpoint, or to each that it was sent to
// when the id is zero. It returns how many deliveries are due now.
func (a App) Redeliver(ctx context.Context, notification, endpoint ids.ID, now int64) (int, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (int, error) {
		return redeliver(ctx, tx, notification, endpoint, now)
	})
}

func redeliver(ctx context.Context, tx *pg.Tx, notification, endpoint ids.ID, now int64) (int, error) {
	// The retention deletes notifications under the same lock.
	if _, err := lock(ctx, tx); err != nil {
		return 0, err
	}
	n, err := pg.Find(ctx, tx, selectNotification, readNotification, fault.New(fault.NotificationNotFound), notification)
	if err != nil {
		return 0, err
	}
	sent, err := pg.Collect(ctx, tx, listLinks, pgx.RowToStructByPos[notify.Linked], notification)
	if err != nil {
		return 0, err
	}
	existing, err := pg.Collect(ctx, tx, lockEndpoints, readEndpoint)
	if err != nil {
		return 0, err
	}
	var links []notify.Linked
	for _, e := range existing {
		if !endpoint.IsZero() && e.ID != endpoint {
			continue
		}
		link := notify.Linked{EndpointID: e.ID, NotificationID: n.ID, Seq: n.Seq}
		known := false
		for _, s := range sent {
			if s.EndpointID == e.ID {
				link, known = s, true
			}
		}
		if !known {
			if endpoint.IsZero() || n.Test {
				continue
			}
			if link.PreviousSeq, err = previousSeq(ctx, tx, e, n.ID, n.Seq); err != nil {
				return 0, err
			}
		}
		links = append(links, link)
	}
	if !endpoint.IsZero() && len(links) == 0 {
		return 0, errNoEndpoint
	}
	if err := request(ctx, tx, links, now); err != nil {
		return 0, err
	}
	return len(links), tx.Audit(ctx, "notification.redeliver", notification.Format(ids.Notification), nil, audit.Fields{"queued": strconv.Itoa(len(links))})
}
