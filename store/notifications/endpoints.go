package notifications

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

const endpointColumns = `
	id, url, types, description, status, pause_reason, secret, previous_secret, previous_until, revision, last_seq,
	failing_since, succeeded_at, created_at, reset_after`

// MaxReset is how many deliveries one transaction resets.
const MaxReset = 1000

var (
	insertEndpoint = pg.Declare("insert webhook endpoint", pg.Insert("webhook_endpoints", `id, org_id, url, types, description, status, secret, created_at`))

	countEndpoints = pg.Declare("count webhook endpoints", `
		SELECT count(*) FROM webhook_endpoints WHERE app_id = $1`)

	listEndpoints = pg.Declare("list webhook endpoints", `
		SELECT`+endpointColumns+`
		FROM webhook_endpoints WHERE app_id = $1 ORDER BY id DESC`)

	selectEndpoint = pg.Declare("select webhook endpoint", `
		SELECT`+endpointColumns+`
		FROM webhook_endpoints WHERE app_id = $1 AND id = $2`)

	lockEndpoint = pg.Declare("lock webhook endpoint", `
		SELECT`+endpointColumns+`
		FROM webhook_endpoints WHERE app_id = $1 AND id = $2 FOR NO KEY UPDATE`)

	lockEndpoints = pg.Declare("lock webhook endpoints", `
		SELECT`+endpointColumns+`
		FROM webhook_endpoints WHERE app_id = $1 ORDER BY id FOR NO KEY UPDATE`)

	updateEndpoint = pg.Declare("update webhook endpoint", `
		UPDATE webhook_endpoints SET url = @url, types = @types, description = @description, status = @status, pause_reason = @pause_reason, revision = @revision,
			failing_since = @failing_since, succeeded_at = @succeeded_at, reset_after = @reset_after
		WHERE app_id = $1 AND id = @id`)

	updateEndpointSecrets = pg.Declare("update secrets of a webhook endpoint", `
		UPDATE webhook_endpoints SET secret = $3, previous_secret = $4, previous_until = $5, revision = $6
		WHERE app_id = $1 AND id = $2`)

	deleteEndpoint = pg.Declare("delete webhook endpoint", `
		DELETE FROM webhook_endpoints WHERE app_id = $1 AND id = $2`)

	insertDeletedEndpoint = pg.Declare("insert deleted endpoint", `
		INSERT INTO deleted_endpoints (app_id, id, org_id, deleted_at) VALUES ($1, $2, $3, $4)`)

	isDeletedEndpoint = pg.Declare("is deleted endpoint", `
		SELECT EXISTS (SELECT 1 FROM deleted_endpoints WHERE app_id = $1 AND id = $2)`)

	// Ids begin with their creation time.
	listToReset = pg.Declare("list deliveries to reset", `
		SELECT notification_id FROM deliveries
		WHERE app_id = $1 AND endpoint_id = $2 AND status <> 'delivered' AND notification_id > $3
		ORDER BY notification_id LIMIT $4`)

	// What was given up stays so: a replay sends it again.
	resetDeliveries = pg.Declare("reset deliveries", `
		UPDATE deliveries SET attempts = 0, refusals = 0, due_at = created_at
		WHERE app_id = $1 AND endpoint_id = $2 AND notification_id = ANY ($3) AND status = 'pending' AND attempts > 0`)
)

var errNoEndpoint = fault.New(fault.WebhookEndpointNotFound)

func readEndpoint(row pgx.CollectableRow) (e notify.Endpoint, err error) {
	var failing, succeeded *int64
	err = row.Scan(&e.ID, &e.URL, &e.Types, &e.Description, &e.Status, &e.PauseReason, &e.SealedSecret, &e.SealedPrevious, &e.PreviousUntil,
		&e.Revision, &e.LastSeq, &failing, &succeeded, &e.CreatedAt, &e.ResetAfter)
	e.FailingSince, e.SucceededAt = pg.OrZero(failing), pg.OrZero(succeeded)
	return e, err
}

// CreateEndpoint stores an endpoint, up to the limit of the application.
func (a App) CreateEndpoint(ctx context.Context, e notify.Endpoint) error {
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		// The lock of the feed keeps two of them from passing the limit at once.
		if _, err := lock(ctx, tx); err != nil {
			return err
		}
		number, err := pg.Find(ctx, tx, countEndpoints, pgx.RowTo[int], pgx.ErrNoRows)
		if err != nil {
			return err
		}
		if known, err := pg.Collect(ctx, tx, selectEndpoint, readEndpoint, e.ID); err != nil {
			return err
		} else if len(known) > 0 {
			return fault.Newf(fault.AlreadyExists, "This endpoint already exists. Its secret was shown when it was created and can't be shown again.")
		}
		// Deliveries that waited for the deleted endpoint would be due for this one.
		if deleted, err := pg.Find(ctx, tx, isDeletedEndpoint, pgx.RowTo[bool], pgx.ErrNoRows, e.ID); err != nil {
			return err
		} else if deleted {
			return fault.Newf(fault.AlreadyExists, "This form was already used, and its endpoint is deleted. Open the form again from the list of webhooks.")
		}
		if number >= notify.MaxEndpoints {
			return fault.New(fault.TooManyEndpoints)
		}
		if err := tx.Exec(ctx, insertEndpoint, 1, pg.Named{
			"id": e.ID, "org_id": tx.Scope.OrgID, "url": e.URL, "types": typeNames(e.Types), "description": e.Description,
			"status": e.Status, "secret": e.SealedSecret, "created_at": e.CreatedAt,
		}); err != nil {
			return err
		}
		return tx.Audit(ctx, "webhook.create", e.ID.Format(ids.WebhookEndpoint), nil, fieldsOf(e))
	})
}

// Endpoints lists the endpoints, the newest first.
func (a App) Endpoints(ctx context.Context) ([]notify.Endpoint, error) {
	return pg.ListAll(ctx, a.app, listEndpoints, readEndpoint)
}

func (a App) Endpoint(ctx context.Context, id ids.ID) (notify.Endpoint, error) {
	return pg.FindOne(ctx, a.app, selectEndpoint, readEndpoint, errNoEndpoint, id)
}

// UpdateEndpoint applies a patch. An endpoint that becomes enabled gets what waited for
// it, the oldest first: its job calls ResetDeliveries.
func (a App) UpdateEndpoint(ctx context.Context, id ids.ID, patch notify.EndpointPatch, live bool) (notify.Endpoint, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (e notify.Endpoint, err error) {
		was, err := pg.Find(ctx, tx, lockEndpoint, readEndpoint, errNoEndpoint, id)
		if err != nil {
			return e, err
		}
		if e, err = was.Apply(patch, live); err != nil || e.Revision == was.Revision {
			return e, err
		}
		if err := storeEndpoint(ctx, tx, e); err != nil {
			return e, err
		}
		if e.ResetAfter != nil {
			tx.WakeNotifications()
		}
		return e, tx.Audit(ctx, "webhook.update", id.Format(ids.WebhookEndpoint), fieldsOf(was), fieldsOf(e))
	})
}

// ResetDeliveries makes the next MaxReset waiting deliveries of an endpoint due as if they
// had never been tried, the oldest first. The endpoint's ResetAfter is nil after the last.
func (a App) ResetDeliveries(ctx context.Context, id ids.ID) error {
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		e, err := pg.Find(ctx, tx, lockEndpoint, readEndpoint, errNoEndpoint, id)
		if err != nil || e.ResetAfter == nil {
			return err
		}
		list, err := pg.Collect(ctx, tx, listToReset, pgx.RowTo[ids.ID], id, *e.ResetAfter, MaxReset)
		if err != nil {
			return err
		}
		e.ResetAfter = nil
		if len(list) == MaxReset {
			e.ResetAfter = &list[MaxReset-1]
		}
		if _, err := tx.ExecAny(ctx, resetDeliveries, id, list); err != nil {
			return err
		}
		return storeEndpoint(ctx, tx, e)
	})
}

func storeEndpoint(ctx context.Context, tx *pg.Tx, e notify.Endpoint) error {
	return tx.Exec(ctx, updateEndpoint, 1, pg.Named{
		"id": e.ID, "url": e.URL, "types": typeNames(e.Types), "description": e.Description, "status": e.Status,
		"pause_reason": e.PauseReason, "revision": e.Revision, "failing_since": pg.OrNull(e.FailingSince),
		"succeeded_at": pg.OrNull(e.SucceededAt), "reset_after": e.ResetAfter,
	})
}

// Rotation replaces the secret of an endpoint.
type Rotation struct {
	ExpectedRevision int64 // zero for any
	SealedSecret     []byte
	PreviousUntil    int64 // by the database's clock; the previous secret signs too until then
}

// RotateSecret replaces the secret. Only the secret before this one signs too: with an
// expected revision, a rotation sent twice doesn't replace the one that receivers have.
func (a App) RotateSecret(ctx context.Context, id ids.ID, r Rotation) (notify.Endpoint, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (e notify.Endpoint, err error) {
		if e, err = pg.Find(ctx, tx, lockEndpoint, readEndpoint, errNoEndpoint, id); err != nil {
			return e, err
		}
		if r.ExpectedRevision != 0 && r.ExpectedRevision != e.Revision {
			return e, fault.New(fault.RevisionConflict)
		}
		e.SealedPrevious, e.PreviousUntil, e.SealedSecret = e.SealedSecret, r.PreviousUntil, r.SealedSecret
		e.Revision++
		if err := storeSecrets(ctx, tx, e); err != nil {
			return e, err
		}
		return e, tx.Audit(ctx, "webhook.rotate_secret", id.Format(ids.WebhookEndpoint), nil, nil)
	})
}

func storeSecrets(ctx context.Context, tx *pg.Tx, e notify.Endpoint) error {
	return tx.Exec(ctx, updateEndpointSecrets, 1, e.ID, e.SealedSecret, e.SealedPrevious, e.PreviousUntil, e.Revision)
}

// ResealEndpoints passes each endpoint to seal, which may encrypt its secrets again and
// reports whether it did, and counts those. The rows are locked meanwhile.
func (a App) ResealEndpoints(ctx context.Context, seal func(*notify.Endpoint) (changed bool)) (int, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (changed int, err error) {
		all, err := pg.Collect(ctx, tx, lockEndpoints, readEndpoint)
		if err != nil {
			return changed, err
		}
		for _, e := range all {
			if !seal(&e) {
				continue
			}
			if err := storeSecrets(ctx, tx, e); err != nil {
				return changed, err
			}
			changed++
		}
		return changed, nil
	})
}

// DeleteEndpoint removes an endpoint. What waited for it is not sent; its deliveries stay
// as long as their notifications.
func (a App) DeleteEndpoint(ctx context.Context, id ids.ID) error {
	return a.app.Transact(ctx, func(ctx context.Context, tx *pg.Tx) error {
		was, err := pg.Find(ctx, tx, lockEndpoint, readEndpoint, errNoEndpoint, id)
		if err != nil {
			return err
		}
		if err := tx.Exec(ctx, deleteEndpoint, 1, id); err != nil {
			return err
		}
		now, err := tx.AppTime(ctx)
		if err != nil {
			return err
		}
		if err := tx.Exec(ctx, insertDeletedEndpoint, 1, id, tx.Scope.OrgID, now); err != nil {
			return err
		}
		return tx.AuditRemoval(ctx, "webhook.delete", id.Format(ids.WebhookEndpoint), fieldsOf(was), nil)
	})
}

// fieldsOf is what the audit log says of an endpoint: nothing of its secret.
func fieldsOf(e notify.Endpoint) audit.Fields {
	return audit.Fields{"url": e.URL, "types": strings.Join(typeNames(e.Types), " "), "description": e.Description, "status": string(e.Status)}
}
