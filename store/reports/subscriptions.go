package reports

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

type SubscriptionFound struct {
	ID                ids.ID
	WalletID          ids.ID
	Identity          string
	PlanID            ids.ID
	PlanKey           string // empty when nothing names the plan
	PlanName          string
	Status            metering.SubscriptionStatus
	Period            metering.Period
	CancelAtPeriodEnd bool
	Downgrade         bool   // one waits for the renewal
	Pending           bool   // a change waits for its payment
	ProviderID        string // empty for a free one that runs here
	CreatedAt         int64
	EndedAt           int64 // 0 while it has not
}

const subscriptionFoundColumns = `
	s.id, s.wallet_id, w.identity, s.plan_id, coalesce(p.key, ''), coalesce(p.name, ''), s.status, s.period_start, s.period_end,
	s.cancel_at_period_end, s.scheduled IS NOT NULL, s.pending IS NOT NULL, coalesce(s.provider_id, ''), s.created_at, coalesce(s.ended_at, 0)`

const storedSubscriptionColumns = `id, wallet_id, plan_id, status, period_start, period_end, cancel_at_period_end, scheduled, pending, provider_id, created_at, ended_at`

// A page is cut before what its rows refer to is looked up. Left to itself, the
// planner may look it up for all subscriptions, and cut then.
const (
	subscriptionsFound = `
		SELECT` + subscriptionFoundColumns + `
		FROM (`

	withTheirPlans = `
			LIMIT $3
		) s
		JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		LEFT JOIN plans p ON p.app_id = $1 AND p.id = s.plan_id
		ORDER BY s.id `
)

func pageOfSubscriptions(name, where, order string) pg.Statement {
	return pg.Declare(name, subscriptionsFound+`
			SELECT `+storedSubscriptionColumns+`
			FROM subscriptions WHERE app_id = $1 AND `+where+`
			ORDER BY id `+order+withTheirPlans+order)
}

// pageOfPlan is for one plan. Each status has its own part of the index, and the first of
// all are among the first of each.
func pageOfPlan(name, where, order string) pg.Statement {
	return pg.Declare(name, subscriptionsFound+`
			SELECT `+pg.Prefixed("d", storedSubscriptionColumns)+`
			FROM unnest($4::text[]) AS t (status) CROSS JOIN LATERAL (
				SELECT `+storedSubscriptionColumns+`
				FROM subscriptions WHERE app_id = $1 AND plan_id = $5 AND status = t.status AND `+where+`
				ORDER BY plan_id `+order+`, status `+order+`, id `+order+` LIMIT $3
			) d
			ORDER BY d.id `+order+withTheirPlans+order)
}

// pageOfCustomer is for one wallet, of any plan or one. The two halves have an index each.
func pageOfCustomer(name, where, order string) pg.Statement {
	return pg.Declare(name, subscriptionsFound+`
			SELECT `+pg.Prefixed("d", storedSubscriptionColumns)+`
			FROM (
				SELECT `+storedSubscriptionColumns+`
				FROM subscriptions WHERE app_id = $1 AND wallet_id = $6 AND `+where+` AND status IN `+ledger.LiveStatuses+`
				UNION ALL
				SELECT `+storedSubscriptionColumns+`
				FROM subscriptions WHERE app_id = $1 AND wallet_id = $6 AND `+where+` AND status IN ('incomplete', 'canceled')
			) d
			WHERE d.status = ANY ($4) AND ($5::uuid IS NULL OR d.plan_id = $5)
			ORDER BY d.id `+order+withTheirPlans+order)
}

var (
	selectLiveSubscriptions = pg.Declare("select live subscriptions", `
		SELECT`+subscriptionFoundColumns+`
		FROM subscriptions s
		JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		LEFT JOIN plans p ON p.app_id = $1 AND p.id = s.plan_id
		WHERE s.app_id = $1 AND s.wallet_id = ANY ($2)
		  AND s.status IN `+ledger.LiveStatuses)

	listSubscriptions         = pageOfSubscriptions("list subscriptions", `id < $2`, `DESC`)
	listSubscriptionsByStatus = pageOfSubscriptions("list subscriptions by status", `status = $4 AND id < $2`, `DESC`)
	listSubscriptionsOnHold   = pageOfSubscriptions("list subscriptions on hold", `status IN ('past_due', 'unpaid') AND id < $2`, `DESC`)

	listOldestSubscriptions         = pageOfSubscriptions("list subscriptions, oldest first", `id > $2`, `ASC`)
	listOldestSubscriptionsByStatus = pageOfSubscriptions("list subscriptions by status, oldest first", `status = $4 AND id > $2`, `ASC`)
	listOldestSubscriptionsOnHold   = pageOfSubscriptions("list subscriptions on hold, oldest first", `status IN ('past_due', 'unpaid') AND id > $2`, `ASC`)

	listSubscriptionsOfPlan           = pageOfPlan("list subscriptions of a plan", `id < $2`, `DESC`)
	listOldestSubscriptionsOfPlan     = pageOfPlan("list subscriptions of a plan, oldest first", `id > $2`, `ASC`)
	listSubscriptionsOfCustomer       = pageOfCustomer("list subscriptions of a customer", `id < $2`, `DESC`)
	listOldestSubscriptionsOfCustomer = pageOfCustomer("list subscriptions of a customer, oldest first", `id > $2`, `ASC`)

	// The two halves have an index each.
	listSubscriptionsOfWallet = pg.Declare("list subscriptions of a wallet", `
		SELECT`+subscriptionFoundColumns+`
		FROM subscriptions s
		JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		LEFT JOIN plans p ON p.app_id = $1 AND p.id = s.plan_id
		WHERE s.app_id = $1 AND s.wallet_id = $2 AND s.status IN `+ledger.LiveStatuses+`
		UNION ALL
		SELECT`+subscriptionFoundColumns+`
		FROM subscriptions s
		JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		LEFT JOIN plans p ON p.app_id = $1 AND p.id = s.plan_id
		WHERE s.app_id = $1 AND s.wallet_id = $2 AND s.status IN ('incomplete', 'canceled')
		ORDER BY 1 DESC LIMIT $3`)
)

func readSubscriptionFound(row pgx.CollectableRow) (s SubscriptionFound, err error) {
	var plan *ids.ID
	err = row.Scan(&s.ID, &s.WalletID, &s.Identity, &plan, &s.PlanKey, &s.PlanName, &s.Status, &s.Period.Start, &s.Period.End,
		&s.CancelAtPeriodEnd, &s.Downgrade, &s.Pending, &s.ProviderID, &s.CreatedAt, &s.EndedAt)
	s.PlanID = pg.OrZero(plan)
	return s, err
}

// SubscriptionQuery asks for subscriptions, newest first unless it says otherwise.
type SubscriptionQuery struct {
	Oldest bool                        // oldest first; Before is then the id that the page follows
	Status metering.SubscriptionStatus // any when empty
	OnHold bool                        // only those for which a payment failed

	PlanID   ids.ID // any when zero
	Identity string // of a customer, in a usual spelling; any when empty
	pg.Page
}

var allStatuses = []string{
	string(metering.StatusActive), string(metering.StatusTrialing), string(metering.StatusPastDue), string(metering.StatusUnpaid),
	string(metering.StatusPaused), string(metering.StatusIncomplete), string(metering.StatusCanceled),
}

// statuses are those that a query asks for.
func (q SubscriptionQuery) statuses() []string {
	switch {
	case q.OnHold:
		return []string{string(metering.StatusPastDue), string(metering.StatusUnpaid)}
	case q.Status != "":
		return []string{string(q.Status)}
	default:
		return allStatuses
	}
}

// FindSubscriptions answers a query, and reports whether there are more.
func (a App) FindSubscriptions(ctx context.Context, q SubscriptionQuery) (list []SubscriptionFound, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		all, byStatus, onHold, start := listSubscriptions, listSubscriptionsByStatus, listSubscriptionsOnHold, q.Start()
		if q.Oldest {
			all, byStatus, onHold, start = listOldestSubscriptions, listOldestSubscriptionsByStatus, listOldestSubscriptionsOnHold, q.Before
		}
		if q.Identity != "" || !q.PlanID.IsZero() {
			list, err = tx.someSubscriptions(ctx, q, start)
			return err
		}
		switch {
		case q.OnHold:
			list, err = pg.Collect(ctx, tx, onHold, readSubscriptionFound, start, q.OneMore())
		case q.Status != "":
			list, err = pg.Collect(ctx, tx, byStatus, readSubscriptionFound, start, q.OneMore(), string(q.Status))
		default:
			list, err = pg.Collect(ctx, tx, all, readSubscriptionFound, start, q.OneMore())
		}
		return err
	})
	list, more = pg.Cut(list, q.Limit)
	return list, more, err
}

// someSubscriptions are of a plan, a customer or both.
func (tx appTx) someSubscriptions(ctx context.Context, q SubscriptionQuery, start ids.ID) ([]SubscriptionFound, error) {
	args := []any{start, q.OneMore(), q.statuses(), pg.OrNull(q.PlanID)}
	ofPlan, ofCustomer := listSubscriptionsOfPlan, listSubscriptionsOfCustomer
	if q.Oldest {
		ofPlan, ofCustomer = listOldestSubscriptionsOfPlan, listOldestSubscriptionsOfCustomer
	}
	if q.Identity == "" {
		return pg.Collect(ctx, tx, ofPlan, readSubscriptionFound, args...)
	}
	wallets, err := tx.customer(ctx, q.Identity)
	if err != nil || len(wallets) == 0 {
		return nil, err
	}
	return pg.Collect(ctx, tx, ofCustomer, readSubscriptionFound, append(args, wallets[0])...)
}

// maxPastSubscriptions is how many subscriptions of one wallet are listed: more than a
// customer makes by hand.
const maxPastSubscriptions = 100

// SubscriptionsOf lists the latest subscriptions of a wallet, ended ones among them.
func (a App) SubscriptionsOf(ctx context.Context, walletID ids.ID) ([]SubscriptionFound, error) {
	return pg.ListAll(ctx, a.app, listSubscriptionsOfWallet, readSubscriptionFound, walletID, maxPastSubscriptions)
}
