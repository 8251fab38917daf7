package notifications

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
)

// Delivery is a notification for one endpoint.
type Delivery struct {
	notify.Notification
	EndpointID  ids.ID
	PreviousSeq int64
	Status      notify.DeliveryStatus
	Attempts    int   // since it was last requested
	DueAt       int64 // of a pending one, by the application's clock
	RequestedAt int64 // when the sequencer or a person requested it, by the application's clock
}

// Attempt is what one attempt of a delivery sent and got.
type Attempt struct {
	ID             ids.ID
	EndpointID     ids.ID
	NotificationID ids.ID
	URL            string
	Status         int    // of the answer; zero without one
	Error          string // empty when an answer came
	Answer         string // its beginning
	StartedAt      int64  // by the database's clock
	TookMillis     int
	Idle           int64 // see notify.Progress; not stored
}

const (
	deliveryColumns = notificationColumns + `, d.endpoint_id, d.previous_seq, d.status, d.attempts, d.due_at, d.created_at`

	fromDeliveries = `
		FROM deliveries d
		JOIN notifications n ON n.app_id = $1 AND n.id = d.notification_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id`

	attemptColumns = `id, endpoint_id, notification_id, url, status, error, answer, started_at, took_ms`
)

var (
	insertDeliveries = pg.Declare("insert deliveries", `
		INSERT INTO deliveries (app_id, endpoint_id, notification_id, org_id, seq, previous_seq, due_at, created_at)
		SELECT s.app_id, t.endpoint_id, t.notification_id, s.org_id, t.seq, t.previous_seq, $6, $6
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[]) AS t (endpoint_id, notification_id, seq, previous_seq)
		WHERE s.app_id = $1`)

	// A delivery that is requested again starts over, whatever became of it.
	requestDeliveries = pg.Declare("request deliveries", `
		INSERT INTO deliveries (app_id, endpoint_id, notification_id, org_id, seq, previous_seq, due_at, created_at)
		SELECT s.app_id, t.endpoint_id, t.notification_id, s.org_id, t.seq, t.previous_seq, $6, $6
		FROM app_state s CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[]) AS t (endpoint_id, notification_id, seq, previous_seq)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, endpoint_id, notification_id) DO UPDATE
		SET status = 'pending', attempts = 0, refusals = 0, due_at = excluded.due_at, created_at = excluded.created_at`)

	listDueDeliveries = pg.Declare("list due deliveries", `
		SELECT `+deliveryColumns+fromDeliveries+`
		WHERE d.app_id = $1 AND d.endpoint_id = $2 AND d.status = 'pending' AND d.due_at <= $3
		ORDER BY d.due_at, d.seq LIMIT $4`)

	// Like listDueDeliveries, it leaves out what could not be sent.
	nextDelivery = pg.Declare("select next delivery", `
		SELECT d.due_at FROM deliveries d JOIN notifications n ON n.app_id = $1 AND n.id = d.notification_id
		WHERE d.app_id = $1 AND d.endpoint_id = $2 AND d.status = 'pending'
		ORDER BY d.due_at, d.seq LIMIT 1`)

	listDueEndpoints = pg.Declare("list endpoints with due deliveries", `
		SELECT e.id FROM webhook_endpoints e
		WHERE e.app_id = $1 AND e.status = 'enabled' AND (e.reset_after IS NOT NULL OR EXISTS (
			SELECT 1 FROM deliveries d JOIN notifications n ON n.app_id = $1 AND n.id = d.notification_id
			WHERE d.app_id = $1 AND d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= $2))`)

	lockDelivery = pg.Declare("lock delivery", `
		SELECT attempts, refusals, tried_at FROM deliveries
		WHERE app_id = $1 AND endpoint_id = $2 AND notification_id = $3 FOR NO KEY UPDATE`)

	updateDelivery = pg.Declare("update delivery", `
		UPDATE deliveries SET status = $4, attempts = $5, refusals = $6, due_at = $7, tried_at = $8 WHERE app_id = $1 AND endpoint_id = $2 AND notification_id = $3`)

	hasWaiting = pg.Declare("has waiting deliveries", `
		SELECT EXISTS (SELECT 1 FROM deliveries WHERE app_id = $1 AND endpoint_id = $2 AND status = 'pending')`)

	insertAttempt = pg.Declare("insert delivery attempt", pg.Insert("delivery_attempts", `id, org_id, endpoint_id, notification_id, url, status, error, answer, started_at, took_ms`))

	listAttempts = pg.Declare("list delivery attempts", `
		SELECT `+attemptColumns+`
		FROM delivery_attempts WHERE app_id = $1 AND notification_id = $2 ORDER BY id DESC LIMIT $3`)
)

// DueEndpoints are the enabled endpoints that have deliveries to send or to reset.
func (a App) DueEndpoints(ctx context.Context, now int64) ([]ids.ID, error) {
	return pg.ListAll(ctx, a.app, listDueEndpoints, pgx.RowTo[ids.ID], now)
}

// DueDeliveries are deliveries of an endpoint that are to be sent now, the longest
// waiting first.
func (a App) DueDeliveries(ctx context.Context, endpoint ids.ID, now int64, most int) ([]Delivery, error) {
	return pg.ListAll(ctx, a.app, listDueDeliveries, readDelivery, endpoint, now, most)
}

// NextDelivery is when an endpoint's next delivery is due; zero for none.
func (a App) NextDelivery(ctx context.Context, endpoint ids.ID) (int64, error) {
	next, err := pg.ListAll(ctx, a.app, nextDelivery, pgx.RowTo[int64], endpoint)
	if err != nil || len(next) == 0 {
		return 0, err
	}
	return next[0], nil
}

// Finish stores an attempt and what follows from it, for the delivery and its endpoint.
// An endpoint that is paused by it says so in a notification. What was deleted meanwhile
// is left alone, and so is an endpoint that has another URL by now: the delivery is sent
// there, unless the receiver at the previous one has it.
func (a App) Finish(ctx context.Context, attempt Attempt, result notify.Result, now int64, random uint64) (notify.Endpoint, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (notify.Endpoint, error) {
		return finish(ctx, tx, attempt, result, now, random)
	})
}

func finish(ctx context.Context, tx *pg.Tx, attempt Attempt, result notify.Result, now int64, random uint64) (notify.Endpoint, error) {
	e, err := pg.Find(ctx, tx, lockEndpoint, readEndpoint, errNoEndpoint, attempt.EndpointID)
	if err != nil {
		return e, err
	}
	progress := notify.Progress{FailingSince: e.FailingSince, SucceededAt: e.SucceededAt, Idle: attempt.Idle}
	_, err = pg.Find(ctx, tx, lockDelivery, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&progress.Attempts, &progress.Refusals, &progress.TriedBefore)
	}, ErrNoDelivery, attempt.EndpointID, attempt.NotificationID)
	if err != nil {
		return e, err
	}
	if err := tx.Exec(ctx, insertAttempt, 1, pg.Named{
		"id": attempt.ID, "org_id": tx.Scope.OrgID, "endpoint_id": attempt.EndpointID, "notification_id": attempt.NotificationID,
		"url": attempt.URL, "status": pg.OrNull(attempt.Status), "error": attempt.Error, "answer": attempt.Answer,
		"started_at": attempt.StartedAt, "took_ms": attempt.TookMillis,
	}); err != nil {
		return e, err
	}
	outdated := attempt.URL != e.URL
	if outdated && !result.Accepted() {
		return e, nil
	}
	progress.Attempts++
	verdict := notify.Judge(progress, result, now, random)
	err = tx.Exec(ctx, updateDelivery, 1, attempt.EndpointID, attempt.NotificationID, verdict.Status, progress.Attempts, verdict.Refusals, verdict.DueAt, now)
	if err != nil || outdated {
		return e, err
	}
	e.FailingSince, e.SucceededAt = verdict.FailingSince, verdict.SucceededAt
	if verdict.Status == notify.Failed { // without one that waits, the next failure may be long after
		waiting, err := pg.Find(ctx, tx, hasWaiting, pgx.RowTo[bool], pgx.ErrNoRows, e.ID)
		if err != nil {
			return e, err
		}
		if !waiting {
			e.FailingSince = 0
		}
	}
	if verdict.Pause != "" && e.Status == notify.Enabled {
		e.Status, e.PauseReason = verdict.Pause, verdict.Reason
		e.Revision++
		paused := notify.PausedData{ID: e.ID.Format(ids.WebhookEndpoint), URL: e.URL, Status: e.Status, Reason: e.PauseReason, FailingSince: e.FailingSince}
		if err := tx.Notify(ctx, notify.New(notify.WebhookPaused, ids.ID{}, paused, now)); err != nil {
			return e, err
		}
	}
	return e, storeEndpoint(ctx, tx, e)
}

// ErrNoDelivery means that the delivery was deleted while it was sent.
var ErrNoDelivery = errors.New("store: the delivery was deleted")

// Attempts lists the attempts to deliver a notification, the newest first.
func (a App) Attempts(ctx context.Context, notification ids.ID, most int) ([]Attempt, error) {
	return pg.Return(ctx, a.app.Snapshot, func(ctx context.Context, tx *pg.Tx) ([]Attempt, error) {
		if _, err := pg.Find(ctx, tx, selectNotification, readNotification, fault.New(fault.NotificationNotFound), notification); err != nil {
			return nil, err
		}
		return pg.Collect(ctx, tx, listAttempts, readAttempt, notification, most)
	})
}

func readDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var wallet *ids.ID
	var identity *string
	var seq *int64
	err = row.Scan(&d.ID, &d.Type, &wallet, &identity, &d.Data, &d.CreatedAt, &seq, &d.Test,
		&d.EndpointID, &d.PreviousSeq, &d.Status, &d.Attempts, &d.DueAt, &d.RequestedAt)
	d.WalletID, d.Identity, d.Seq = pg.OrZero(wallet), pg.OrZero(identity), pg.OrZero(seq)
	return d, err
}

func readAttempt(row pgx.CollectableRow) (a Attempt, err error) {
	var status *int
	err = row.Scan(&a.ID, &a.EndpointID, &a.NotificationID, &a.URL, &status, &a.Error, &a.Answer, &a.StartedAt, &a.TookMillis)
	a.Status = pg.OrZero(status)
	return a, err
}

// linkColumns are deliveries as columns.
func linkColumns(links []notify.Linked) []any {
	var endpoints, notificationIDs []ids.ID
	var seqs, previous []int64
	for _, l := range links {
		endpoints, notificationIDs = append(endpoints, l.EndpointID), append(notificationIDs, l.NotificationID)
		seqs, previous = append(seqs, l.Seq), append(previous, l.PreviousSeq)
	}
	return []any{endpoints, notificationIDs, seqs, previous}
}
