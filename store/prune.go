package store

import (
	"context"
	"time"

	"purser/store/internal/pg"
	"purser/store/reports"
)

const (
	// webhookLife is how long webhook ids are kept for deduplication: Stripe retries
	// for some days and lists events for 30. An older webhook is harmless, since a
	// payment is never credited twice.
	webhookLife = 90 * 24 * time.Hour
	// leaseLife is how long a lease row is kept after it was last held. A slower holder
	// still stores nothing: the next number is higher.
	leaseLife = 7 * 24 * time.Hour
)

var (
	pruneWebhooks = pg.Declare("prune webhooks", `
		DELETE FROM webhook_events WHERE app_id = $1 AND id IN (
			SELECT e.id FROM webhook_events e WHERE e.app_id = $1 AND e.id < $2 ORDER BY e.id LIMIT $3)`)

	pruneLeases = pg.Declare("prune leases", `
		DELETE FROM leases WHERE app_id = $1 AND held_until < $2 AND name IN (
			SELECT l.name FROM leases l WHERE l.app_id = $1 AND l.held_until < $2 LIMIT $3)`)
)

// Prune deletes expired rows, at most the given number of each kind, and reports
// whether there may be more.
func (a App) Prune(ctx context.Context, most int) (bool, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (more bool, err error) {
		now, err := tx.DatabaseClock(ctx)
		if err != nil {
			return false, err
		}
		for _, expired := range []struct {
			delete pg.Statement
			before any
		}{
			{pruneWebhooks, pg.IDAt(now - webhookLife.Milliseconds())},
			{pruneLeases, now - leaseLife.Milliseconds()},
			{reports.PruneFailures, a.store.Stats().OldestFailure()},
			{reports.PruneDenials, a.store.Stats().OldestDenial()},
		} {
			deleted, err := tx.ExecAny(ctx, expired.delete, expired.before, most)
			if err != nil {
				return false, err
			}
			more = more || deleted == int64(most)
		}
		return more, nil
	})
}
