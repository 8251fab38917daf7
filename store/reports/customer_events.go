package reports

import (
	"cmp"
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
)

// customerEventsScanned is how many events of a wallet one page reads for its filters.
const customerEventsScanned = 10_000

var (
	listEventsOfCustomer = pg.Declare("list events of a customer", `
		SELECT`+eventFoundColumns+`
		FROM (
			SELECT`+storedEventColumns+`
			FROM (
				(SELECT`+storedEventColumns+`
				FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4)
				UNION ALL
				(SELECT`+storedEventColumns+` FROM (`+pg.PackedNewest+`) packed ORDER BY seq DESC LIMIT $4)
				ORDER BY seq DESC LIMIT $4
			) scanned
			WHERE `+ofFeature+` AND created_at >= $6 AND created_at < $7
			ORDER BY seq DESC LIMIT $8
		) e`+eventFoundJoins+`
		ORDER BY e.seq DESC`)

	customerEventsEnd = pg.Declare("find end of events scan of a customer", `
		(SELECT seq FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4 + 1)
		UNION ALL
		(SELECT seq FROM (`+pg.PackedNewest+`) packed ORDER BY seq DESC LIMIT $4 + 1)
		ORDER BY seq DESC OFFSET $4 LIMIT 1`)
)

// EventsOfCustomer lists the events of q.Identity, by feature and time if they are given.
// It returns the sequence number before which the next page begins, or 0 at the end. A page
// may be partial before the end.
func (a App) EventsOfCustomer(ctx context.Context, q EventQuery) ([]EventFound, int64, error) {
	return pg.ReturnBoth(ctx, a.snapshot, func(ctx context.Context, tx appTx) ([]EventFound, int64, error) {
		return tx.eventsOfCustomer(ctx, q)
	})
}

func (tx appTx) eventsOfCustomer(ctx context.Context, q EventQuery) (list []EventFound, next int64, err error) {
	wallets, err := tx.customer(ctx, q.Identity)
	if err != nil || len(wallets) == 0 {
		return nil, 0, err
	}
	var feature *ids.ID
	if q.FeatureKey != "" {
		if feature, err = tx.usedFeature(ctx, q.FeatureKey); err != nil || feature == nil {
			return nil, 0, err
		}
	}
	before := cmp.Or(q.BeforeSeq, math.MaxInt64)
	list, err = pg.Collect(ctx, tx, listEventsOfCustomer, readEventFound, wallets[0], before, customerEventsScanned, feature, q.From, q.to(), q.OneMore())
	if err != nil {
		return nil, 0, err
	}
	if list, more := pg.Cut(list, q.Limit); more {
		return list, list[len(list)-1].Seq, nil
	}
	end, err := pg.Collect(ctx, tx, customerEventsEnd, pgx.RowTo[int64], wallets[0], before, customerEventsScanned-1)
	if len(end) > 0 {
		next = end[0]
	}
	return list, next, err
}
