package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

// maxSubscribers is how far the subscribers of one plan are counted: a page with its plans
// stays fast however large one of them is.
const maxSubscribers = 1_000

// Subscribers is how many customers a plan has now.
type Subscribers struct {
	Count int64
	More  bool // the plan has more than Count
}

// Each status has its own part of the index, so ended subscriptions are not read.
var countSubscribers = pg.Declare("count subscribers of plans", `
	SELECT p.id, sum(d.subscribers)::bigint
	FROM unnest($2::uuid[]) AS p (id) CROSS JOIN unnest($3::text[]) AS t (status) CROSS JOIN LATERAL (
		SELECT count(e.id) AS subscribers FROM (
			SELECT id FROM subscriptions WHERE app_id = $1 AND plan_id = p.id AND status = t.status
			ORDER BY plan_id, status, id LIMIT $4
		) e
	) d
	GROUP BY p.id HAVING sum(d.subscribers) > 0`)

var liveStatuses = []string{
	string(metering.StatusActive), string(metering.StatusTrialing), string(metering.StatusPastDue), string(metering.StatusUnpaid), string(metering.StatusPaused),
}

// SubscribersOf counts the customers whose subscription to a plan has not ended. A plan
// without any is not in the result.
func (a App) SubscribersOf(ctx context.Context, plans []ids.ID) (map[ids.ID]Subscribers, error) {
	type counted struct {
		Plan  ids.ID
		Count int64
	}
	found, err := pg.ListAll(ctx, a.app, countSubscribers, pgx.RowToStructByPos[counted], plans, liveStatuses, maxSubscribers+1)
	if err != nil {
		return nil, err
	}
	counts := make(map[ids.ID]Subscribers, len(found))
	for _, c := range found {
		counts[c.Plan] = Subscribers{Count: min(c.Count, maxSubscribers), More: c.Count > maxSubscribers}
	}
	return counts, nil
}
