package notifications

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

const (
	// maxPrune is how many notifications one transaction deletes, and maxPrunedAttempts how
	// many attempts: a notification has some for each endpoint, and more every day that it waits.
	maxPrune          = 1000
	maxPrunedAttempts = 5000
)

var (
	listOldest = pg.Declare("list oldest notifications", `
		SELECT id, seq, created_at FROM notifications WHERE app_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3`)

	listOldTests = pg.Declare("list old test notifications", `
		SELECT id FROM notifications WHERE app_id = $1 AND test AND created_at < $2 ORDER BY created_at LIMIT $3`)

	deleteAttempts = pg.Declare("delete delivery attempts", `
		DELETE FROM delivery_attempts WHERE app_id = $1 AND id IN (
			SELECT t.id FROM delivery_attempts t WHERE t.app_id = $1 AND t.notification_id = ANY ($2) LIMIT $3)`)

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
// deliveries, a part of them in one transaction, and reports whether there may be more. The
// feed then begins later: what is kept has no gap.
func (a App) Prune(ctx context.Context, before int64) (more bool, err error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (bool, error) { return prune(ctx, tx, before) })
}

func prune(ctx context.Context, tx *pg.Tx, before int64) (more bool, err error) {
	feeds, err := pg.Collect(ctx, tx, lockFeed, pgx.RowToStructByPos[feed])
	if err != nil || len(feeds) == 0 {
		return false, err
	}
	type row struct {
		ID             ids.ID
		Seq, CreatedAt int64
	}
	oldest, err := pg.Collect(ctx, tx, listOldest, pgx.RowToStructByPos[row], feeds[0].Oldest, maxPrune)
	if err != nil {
		return false, err
	}
	start := feeds[0].Oldest
	var old []ids.ID
	for _, n := range oldest {
		if n.CreatedAt >= before {
			break // later ones are kept, in order
		}
		old, start = append(old, n.ID), n.Seq+1
	}
	tests, err := pg.Collect(ctx, tx, listOldTests, pgx.RowTo[ids.ID], before, maxPrune-len(old))
	if err != nil {
		return false, err
	}
	if old = append(old, tests...); len(old) > 0 {
		attempts, err := tx.ExecAny(ctx, deleteAttempts, old, maxPrunedAttempts)
		if err != nil || attempts == maxPrunedAttempts {
			return true, err
		}
	}
	// Before the deliveries, as the outcome of an attempt is stored.
	failing, err := pg.Collect(ctx, tx, lockFailing, pgx.RowTo[ids.ID])
	if err != nil {
		return false, err
	}
	if len(old) > 0 {
		err = deleteOld(ctx, tx, old, start)
	} else {
		_, err = tx.ExecAny(ctx, deleteOldEndpoints, before)
	}
	if err != nil || len(failing) == 0 {
		return len(old) == maxPrune, err
	}
	_, err = tx.ExecAny(ctx, forgetFailing, failing)
	return len(old) == maxPrune, err
}

// deleteOld deletes notifications with their deliveries and the last of their attempts, so that
// the feed starts later.
func deleteOld(ctx context.Context, tx *pg.Tx, old []ids.ID, start int64) error {
	if _, err := tx.ExecAny(ctx, deleteDeliveries, old); err != nil {
		return err
	}
	// Attempts that ended before the deliveries were locked.
	if _, err := tx.ExecAny(ctx, deleteAttempts, old, maxPrunedAttempts); err != nil {
		return err
	}
	if err := tx.Exec(ctx, deleteNotifications, int64(len(old)), old); err != nil {
		return err
	}
	return tx.Exec(ctx, moveFeed, 1, start)
}
