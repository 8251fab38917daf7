package notifications

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// MaxPrune is how many notifications one transaction deletes.
const MaxPrune = 1000

var (
	listOldest = pg.Declare("list oldest notifications", `
		SELECT id, seq, created_at FROM notifications WHERE app_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3`)

	listOldTests = pg.Declare("list old test notifications", `
		SELECT id FROM notifications WHERE app_id = $1 AND test AND created_at < $2 ORDER BY created_at LIMIT $3`)

	deleteAttempts = pg.Declare("delete delivery attempts", `
		DELETE FROM delivery_attempts WHERE app_id = $1 AND notification_id = ANY ($2)`)

	deleteDeliveries = pg.Declare("delete deliveries", `
		DELETE FROM deliveries WHERE app_id = $1 AND notification_id = ANY ($2)`)

	deleteNotifications = pg.Declare("delete notifications", `
		DELETE FROM notifications WHERE app_id = $1 AND id = ANY ($2)`)

	lockFailing = pg.Declare("lock failing webhook endpoints", `
		SELECT id FROM webhook_endpoints
		WHERE app_id = $1 AND status = 'enabled' AND failing_since IS NOT NULL ORDER BY id FOR NO KEY UPDATE`)

	// The time would count until the next failure, however long after that is.
	forgetFailing = pg.Declare("forget since when endpoints without waiting deliveries fail", `
		UPDATE webhook_endpoints e SET failing_since = NULL
		WHERE e.app_id = $1 AND e.id = ANY ($2)
		AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.app_id = $1 AND d.endpoint_id = e.id AND d.status = 'pending')`)

	// The newest delivery of a deleted endpoint is older than its deletion.
	deleteOldEndpoints = pg.Declare("forget deleted endpoints", `
		DELETE FROM deleted_endpoints x WHERE x.app_id = $1 AND x.deleted_at < $2
		AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.app_id = $1 AND d.endpoint_id = x.id)`)

	moveFeed = pg.Declare("move start of feed", `
		UPDATE feeds SET oldest_seq = $2 WHERE app_id = $1`)
)

// Prune deletes notifications from before a time of the application's clock, with their
// deliveries, at most MaxPrune, and returns how many. The feed then begins later: what
// is kept has no gap.
func (a App) Prune(ctx context.Context, before int64) (int, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx *pg.Tx) (int, error) { return prune(ctx, tx, before) })
}

func prune(ctx context.Context, tx *pg.Tx, before int64) (int, error) {
	feeds, err := pg.Collect(ctx, tx, lockFeed, pgx.RowToStructByPos[feed])
	if err != nil || len(feeds) == 0 {
		return 0, err
	}
	type row struct {
		ID             ids.ID
		Seq, CreatedAt int64
	}
	oldest, err := pg.Collect(ctx, tx, listOldest, pgx.RowToStructByPos[row], feeds[0].Oldest, MaxPrune)
	if err != nil {
		return 0, err
	}
	start := feeds[0].Oldest
	var old []ids.ID
	for _, n := range oldest {
		if n.CreatedAt >= before {
			break // later ones are kept, in order
		}
		old, start = append(old, n.ID), n.Seq+1
	}
	tests, err := pg.Collect(ctx, tx, listOldTests, pgx.RowTo[ids.ID], before, MaxPrune-len(old))
	if err != nil {
		return 0, err
	}
	// Before the deliveries, as the outcome of an attempt is stored.
	failing, err := pg.Collect(ctx, tx, lockFailing, pgx.RowTo[ids.ID])
	if err != nil {
		return 0, err
	}
	if old = append(old, tests...); len(old) > 0 {
		err = deleteOld(ctx, tx, old, start)
	} else {
		_, err = tx.ExecAny(ctx, deleteOldEndpoints, before)
	}
	if err != nil || len(failing) == 0 {
		return len(old), err
	}
	_, err = tx.ExecAny(ctx, forgetFailing, failing)
	return len(old), err
}

// deleteOld deletes notifications with what was sent of them, so that the feed starts later.
func deleteOld(ctx context.Context, tx *pg.Tx, old []ids.ID, start int64) error {
	for _, s := range []pg.Statement{deleteAttempts, deleteDeliveries} {
		if _, err := tx.ExecAny(ctx, s, old); err != nil {
			return err
		}
	}
	if err := tx.Exec(ctx, deleteNotifications, int64(len(old)), old); err != nil {
		return err
	}
	return tx.Exec(ctx, moveFeed, 1, start)
}
