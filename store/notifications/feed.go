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
	// MaxPage is how many notifications a page of the feed has at most.
	MaxPage = 200
	// maxScan bounds how many notifications a page that is filtered by types reads.
	maxScan = 5_000
)

const notificationColumns = `n.id, n.type, n.wallet_id, w.identity, n.data, n.created_at, n.seq, n.test`

var (
	selectFeed = pg.Declare("select feed", `
		SELECT last_seq, oldest_seq FROM feeds WHERE app_id = $1`)

	readFeed = pg.Declare("read feed", `
		SELECT `+notificationColumns+`
		FROM notifications n LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.seq > $2 AND n.seq <= $3 AND (cardinality($4::text[]) = 0 OR n.type = ANY ($4))
		ORDER BY n.seq LIMIT $5`)

	readWalletFeed = pg.Declare("read feed of a wallet", `
		SELECT `+notificationColumns+`
		FROM notifications n JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.wallet_id = (SELECT i.id FROM wallets i WHERE i.app_id = $1 AND i.identity = $6)
		  AND n.seq > $2 AND n.seq <= $3 AND (cardinality($4::text[]) = 0 OR n.type = ANY ($4))
		ORDER BY n.seq LIMIT $5`)

	findScanEnd = pg.Declare("find end of a scan of a wallet's notifications", `
		SELECT n.seq FROM notifications n
		WHERE n.app_id = $1 AND n.wallet_id = (SELECT i.id FROM wallets i WHERE i.app_id = $1 AND i.identity = $2) AND n.seq > $3 AND n.seq <= $4
		ORDER BY n.seq OFFSET $5 LIMIT 1`)

	selectNotification = pg.Declare("select notification", `
		SELECT `+notificationColumns+`
		FROM notifications n LEFT JOIN wallets w ON w.app_id = $1 AND w.id = n.wallet_id
		WHERE n.app_id = $1 AND n.id = $2 AND (n.seq IS NOT NULL OR n.test)`)
)

// Query asks for a part of the feed.
type Query struct {
	After    int64         // only later ones; negative for all that are kept
	Types    []notify.Type // all when empty
	Identity string        // all when empty
	Limit    int
}

// Page is a part of the feed, in the order of the numbers.
type Page struct {
	Notifications []notify.Notification
	NextAfter     int64 // where the next page begins
	More          bool  // there are later ones now
	Oldest        int64 // the lowest number that is kept
	Last          int64 // the highest number, with any filter
}

// Feed reads a part of the feed. A filtered page may be empty and have more behind it.
func (a App) Feed(ctx context.Context, q Query) (Page, error) {
	return pg.Return(ctx, a.app.Snapshot, func(ctx context.Context, tx *pg.Tx) (Page, error) { return feedPage(ctx, tx, q) })
}

func feedPage(ctx context.Context, tx *pg.Tx, q Query) (Page, error) {
	held := feed{Oldest: 1}
	feeds, err := pg.Collect(ctx, tx, selectFeed, pgx.RowToStructByPos[feed])
	if err != nil {
		return Page{}, err
	}
	if len(feeds) == 1 {
		held = feeds[0]
	}
	if q.After < 0 {
		q.After = held.Oldest - 1
	}
	if q.After < held.Oldest-1 {
		return Page{}, fault.Newf(fault.FeedExpired, "Notifications up to %d have been deleted. Note the feed's last number, copy the current state, then continue after that number.",
			held.Oldest-1)
	}
	// The numbers have no gap, so a range of them bounds what is read.
	end := min(q.After+maxScan, held.Last)
	statement, args := readFeed, []any{q.After, end, typeNames(q.Types), q.Limit}
	if q.Identity != "" {
		end = held.Last // the index has the notifications of the wallet alone
		if len(q.Types) > 0 {
			if end, err = scanEnd(ctx, tx, findScanEnd, end, q.Identity, q.After, end); err != nil {
				return Page{}, err
			}
		}
		statement, args = readWalletFeed, []any{q.After, end, typeNames(q.Types), q.Limit, q.Identity}
	}
	page := Page{NextAfter: max(q.After, end), Oldest: held.Oldest, Last: held.Last}
	if page.Notifications, err = pg.Collect(ctx, tx, statement, readNotification, args...); err != nil {
		return Page{}, err
	}
	if n := len(page.Notifications); n == q.Limit {
		page.NextAfter = page.Notifications[n-1].Seq
	}
	page.More = page.NextAfter < held.Last
	return page, nil
}

// scanEnd is where a page of one wallet ends that reads maxScan of its notifications, or the
// given end when there are fewer.
func scanEnd(ctx context.Context, tx *pg.Tx, statement pg.Statement, end int64, args ...any) (int64, error) {
	found, err := pg.Collect(ctx, tx, statement, pgx.RowTo[int64], append(args, maxScan-1)...)
	if err != nil || len(found) == 0 {
		return end, err
	}
	return found[0], nil
}

// Last is the highest number, or zero before the first.
func (a App) Last(ctx context.Context) (int64, error) {
	feeds, err := pg.ListAll(ctx, a.app, selectFeed, pgx.RowToStructByPos[feed])
	if err != nil || len(feeds) == 0 {
		return 0, err
	}
	return feeds[0].Last, nil
}

// Notification reads one by its id. One without a number is not there yet.
func (a App) Notification(ctx context.Context, id ids.ID) (notify.Notification, error) {
	return pg.FindOne(ctx, a.app, selectNotification, readNotification, fault.New(fault.NotificationNotFound), id)
}

func typeNames(types []notify.Type) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return names
}

func readNotification(row pgx.CollectableRow) (n notify.Notification, err error) {
	var wallet *ids.ID
	var identity *string
	var seq *int64
	err = row.Scan(&n.ID, &n.Type, &wallet, &identity, &n.Data, &n.CreatedAt, &seq, &n.Test)
	n.WalletID, n.Identity, n.Seq = pg.OrZero(wallet), pg.OrZero(identity), pg.OrZero(seq)
	return n, err
}
