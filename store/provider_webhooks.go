package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// WebhookEvent is a webhook that came. It only wakes somebody up, so what it says
// is not kept.
type WebhookEvent struct {
	ID         string // the provider's
	Type       string
	Object     string
	APIVersion string
	Live       bool
	ReceivedAt int64
	Outcome    string // queued or ignored
}

var (
	insertWebhook = declare("insert webhook", `
		INSERT INTO webhook_events (app_id, connection_id, event_id, id, org_id, type, object_id, api_version, live, outcome, received_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (app_id, connection_id, event_id) DO NOTHING`)

	selectUnseenWebhooks = declare("select unseen webhooks", `
		SELECT t.event_id
		FROM unnest($3::text[]) AS t (event_id)
		WHERE NOT EXISTS (SELECT 1 FROM webhook_events e WHERE e.app_id = $1 AND e.connection_id = $2 AND e.event_id = t.event_id)`)
)

// ReceiveEvent notes a webhook and asks for the work that follows from it, in one
// transaction. It reports whether the webhook is new; the work is asked for in
// either case, since it is the same work.
func (a App) ReceiveEvent(ctx context.Context, connection ids.ID, e WebhookEvent, work []Job) (first bool, err error) {
	id := ids.New()
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		made, err := tx.execAny(ctx, insertWebhook, connection, e.ID, id, a.scope.OrgID, e.Type, e.Object, e.APIVersion, e.Live, e.Outcome, e.ReceivedAt)
		if err != nil {
			return err
		}
		first = made == 1
		if len(work) == 0 {
			return nil
		}
		if err := tx.enqueue(ctx, work...); err != nil {
			return err
		}
		return tx.hint(ctx)
	})
	return first, err
}

// UnseenEvents are those of the provider's events that no webhook has brought.
func (a App) UnseenEvents(ctx context.Context, connection ids.ID, eventIDs []string) ([]string, error) {
	return listAll(ctx, a, selectUnseenWebhooks, pgx.RowTo[string], connection, eventIDs)
}
