package notifications

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/notify"
	"purser/store/internal/pg"
)

var (
	ensureFeed = pg.Declare("ensure feed", `
		INSERT INTO feeds (app_id, org_id)
		SELECT s.app_id, s.org_id FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id) DO NOTHING`)

	lockFeed = pg.Declare("lock feed", `
		SELECT last_seq, oldest_seq FROM feeds WHERE app_id = $1 FOR NO KEY UPDATE`)

	// An id sorts after those of all notifications that were committed before it was
	// inserted, so what is about one locked object is numbered in its order.
	listUnnumbered = pg.Declare("list notifications to number", `
		SELECT id, type FROM notifications WHERE app_id = $1 AND seq IS NULL AND NOT test ORDER BY id LIMIT $2`)

	numberNotifications = pg.Declare("number notifications", `
		UPDATE notifications n SET seq = t.seq
		FROM unnest($2::uuid[], $3::bigint[]) AS t (id, seq)
		WHERE n.app_id = $1 AND n.id = t.id AND n.seq IS NULL`)

	setLastSeqs = pg.Declare("set last notifications of endpoints", `
		UPDATE webhook_endpoints e SET last_seq = t.seq
		FROM unnest($2::uuid[], $3::bigint[]) AS t (id, seq)
		WHERE e.app_id = $1 AND e.id = t.id`)

	advanceFeed = pg.Declare("advance feed", `
		UPDATE feeds SET last_seq = $2 WHERE app_id = $1`)
)

// feed is the row that numbers are given under.
type feed struct {
	Last   int64
	Oldest int64
}

// Number gives numbers to notifications that have none, at most notify.MaxBatch, and
// returns how many it numbered. When it returns notify.MaxBatch there may be more. Their
// deliveries are due now, by the application's clock.
func (a App) Number(ctx context.Context, now int64) (int, error) {
	return pg.Return(ctx, a.app.Transact, func(ctx context.Context, tx *pg.Tx) (int, error) { return number(ctx, tx, now) })
}

// number reads again after the lock, by a statement of its own: it sees all that the
// previous holder of the lock has numbered, and nothing that is not committed.
func number(ctx context.Context, tx *pg.Tx, now int64) (int, error) {
	if waiting, err := unnumbered(ctx, tx, 1); err != nil || len(waiting) == 0 {
		return 0, err
	}
	held, err := lock(ctx, tx)
	if err != nil {
		return 0, err
	}
	list, err := unnumbered(ctx, tx, notify.MaxBatch)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	endpoints, err := pg.Collect(ctx, tx, lockEndpoints, readEndpoint)
	if err != nil {
		return 0, err
	}
	subscribers := make([]notify.Subscriber, len(endpoints))
	for i, e := range endpoints {
		subscribers[i] = notify.Subscriber{EndpointID: e.ID, Types: e.Types, LastSeq: e.LastSeq}
	}
	links, end := notify.Sequence(held.Last, list, subscribers)
	rows, seqs := make([]ids.ID, len(list)), make([]int64, len(list))
	for i, n := range list {
		rows[i], seqs[i] = n.ID, held.Last+int64(i)+1
	}
	if err := tx.Exec(ctx, numberNotifications, int64(len(list)), rows, seqs); err != nil {
		return 0, err
	}
	if err := tx.Exec(ctx, advanceFeed, 1, end); err != nil || len(links) == 0 {
		return len(list), err
	}
	if err := tx.Exec(ctx, insertDeliveries, int64(len(links)), append(linkColumns(links), now)...); err != nil {
		return 0, err
	}
	return len(list), advanceEndpoints(ctx, tx, subscribers)
}

// advanceEndpoints stores which notification is the newest for each endpoint.
func advanceEndpoints(ctx context.Context, tx *pg.Tx, subscribers []notify.Subscriber) error {
	rows, seqs := make([]ids.ID, len(subscribers)), make([]int64, len(subscribers))
	for i, s := range subscribers {
		rows[i], seqs[i] = s.EndpointID, s.LastSeq
	}
	return tx.Exec(ctx, setLastSeqs, int64(len(subscribers)), rows, seqs)
}

func unnumbered(ctx context.Context, tx *pg.Tx, most int) ([]notify.Unnumbered, error) {
	return pg.Collect(ctx, tx, listUnnumbered, pgx.RowToStructByPos[notify.Unnumbered], most)
}

// lock locks the feed, created first when it is missing.
func lock(ctx context.Context, tx *pg.Tx) (feed, error) {
	held, err := pg.Collect(ctx, tx, lockFeed, pgx.RowToStructByPos[feed])
	if err != nil {
		return feed{}, err
	}
	if len(held) == 1 {
		return held[0], nil
	}
	if _, err := tx.ExecAny(ctx, ensureFeed); err != nil {
		return feed{}, err
	}
	return pg.Find(ctx, tx, lockFeed, pgx.RowToStructByPos[feed], pg.ErrNoAppState)
}
