package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/queue"
)

// WebhookEvent is a received webhook. It only triggers a refresh, so its payload is not
// stored.
type WebhookEvent struct {
	ID         string // the provider's event id
	Type       string
	Object     string
	APIVersion string
	Live       bool
	ReceivedAt int64
	Outcome    string // queued or ignored
}

var (
	insertWebhook = pg.Declare("insert webhook", pg.Insert("webhook_events", `connection_id, event_id, id, org_id, type, object_id, api_version, live, outcome, received_at`)+`
		ON CONFLICT (app_id, connection_id, event_id) DO NOTHING`)

	selectUnseenWebhooks = pg.Declare("select unseen webhooks", `
		SELECT t.event_id
		FROM unnest($3::text[]) AS t (event_id)
		WHERE NOT EXISTS (SELECT 1 FROM webhook_events e WHERE e.app_id = $1 AND e.connection_id = $2 AND e.event_id = t.event_id)`)
)

// ReceiveEvent stores a webhook and enqueues its jobs in one transaction. A repeated webhook
// enqueues them again: they are idempotent.
func (a Accounts) ReceiveEvent(ctx context.Context, connection ids.ID, e WebhookEvent, jobs []queue.Job) error {
	id := ids.New()
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		_, err := tx.ExecAny(ctx, insertWebhook, pg.Named{
			"connection_id": connection, "event_id": e.ID, "id": id, "org_id": a.app.Scope.OrgID, "type": e.Type,
			"object_id": e.Object, "api_version": e.APIVersion, "live": e.Live, "outcome": e.Outcome,
			"received_at": e.ReceivedAt,
		})
		if err != nil || len(jobs) == 0 {
			return err
		}
		if err := tx.Enqueue(ctx, jobs...); err != nil {
			return err
		}
		return tx.ScheduleWake(ctx)
	})
}

// UnseenEvents returns the provider's events that no webhook has delivered.
func (a Accounts) UnseenEvents(ctx context.Context, connection ids.ID, eventIDs []string) ([]string, error) {
	return pg.ListAll(ctx, a.app, selectUnseenWebhooks, pgx.RowTo[string], connection, eventIDs)
}
