package verify

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

var (
	// A subscription without a sale was put there by a program, without a plan.
	verifySubscriptions = pg.Declare("verify subscriptions", `
		SELECT w.id, w.identity, 'subscription ' || x.id || ' ' || x.detail
		FROM (
			SELECT s.wallet_id, s.id, 'is ' || s.status || CASE WHEN s.begun THEN '' ELSE ', but was never paid' END
				|| CASE WHEN s.extra THEN ', but was never to come into force' ELSE '' END
				|| CASE WHEN s.ended_at IS NULL THEN '' ELSE ', but has ended' END AS detail
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN `+ledger.LiveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND (NOT s.begun OR s.extra OR s.ended_at IS NOT NULL)
			UNION ALL
			SELECT s.wallet_id, s.id, 'is ' || s.status || CASE WHEN s.begun THEN ', has begun' ELSE ', has not begun' END
				|| CASE WHEN s.ended_at IS NULL THEN ' and has no end' ELSE ' and has ended' END
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN ('incomplete', 'canceled') AND `+onlyWallets("s.wallet_id")+`
			  AND (s.status = 'incomplete' AND (s.begun OR s.ended_at IS NOT NULL) OR s.status = 'canceled' AND s.ended_at IS NULL)
			UNION ALL
			SELECT s.wallet_id, s.id, 'is ' || s.status || ' for ' || s.period_start || ' to ' || s.period_end || ' on plan '
				|| coalesce(s.sale ->> 'planKey', 'none') || ', but no payment is for that plan and period'
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.begun AND s.status IN `+ledger.LiveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND NOT EXISTS (SELECT 1 FROM provider_payments p WHERE p.app_id = $1 AND p.wallet_id = s.wallet_id AND p.subscription_id = s.id
				AND p.period_start = s.period_start AND p.period_end = s.period_end AND p.plan_id = s.plan_id)
			UNION ALL
			SELECT s.wallet_id, s.id, 'names the plan ' || coalesce(s.plan_id::text, 'none') || ', but was sold ' || coalesce(s.sale ->> 'planId', 'none')
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN `+ledger.LiveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND s.plan_id IS DISTINCT FROM (s.sale ->> 'planId')::uuid
			UNION ALL
			SELECT s.wallet_id, s.id, 'grants something else in its terms than its payment ' || p.source_id || ' brought'
			FROM subscriptions s JOIN provider_payments p ON p.app_id = $1 AND p.wallet_id = s.wallet_id AND p.subscription_id = s.id
				AND p.period_start = s.period_start AND p.period_end = s.period_end AND p.plan_id = s.plan_id
			CROSS JOIN LATERAL (
				SELECT count(*) AS brought, count(*) FILTER (WHERE NOT EXISTS (
					SELECT 1 FROM jsonb_array_elements(coalesce(s.sale -> 'grants', '[]')) AS g (item)
					WHERE g.item ->> 'creditId' = c.credit_id::text AND (g.item ->> 'amountNanocredits')::numeric = c.amount_nanocredits)) AS other
				FROM payment_credits c WHERE c.app_id = $1 AND c.source_kind = p.source_kind AND c.source_id = p.source_id) c
			CROSS JOIN LATERAL (
				SELECT count(*) AS due FROM jsonb_array_elements(coalesce(s.sale -> 'grants', '[]')) AS g (item)
				WHERE (g.item ->> 'amountNanocredits')::numeric > 0) g
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN `+ledger.LiveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND (c.other > 0 OR c.brought > 0 AND c.brought <> g.due) AND NOT `+leftOut+`
			  AND (SELECT count(*) FROM provider_payments o WHERE o.app_id = $1 AND o.wallet_id = s.wallet_id
				AND o.subscription_id = s.id AND o.period_start = s.period_start) = 1
			UNION ALL
			SELECT p.wallet_id, p.subscription_id, 'belongs to another customer than its payment ' || p.source_id
			FROM provider_payments p JOIN subscriptions s ON s.app_id = $1 AND s.id = p.subscription_id
			WHERE p.app_id = $1 AND s.wallet_id <> p.wallet_id AND `+onlyWallets("p.wallet_id")+`
		) x LEFT JOIN wallets w ON w.app_id = $1 AND w.id = x.wallet_id
		LIMIT $3`)

	// Terms that equal those of a change or a price value by value are not listed. The
	// others are compared by what they mean.
	verifySubscriptionTerms = pg.Declare("verify terms of subscriptions", `
		SELECT w.id, w.identity, s.id, s.terms::text, s.sale::text, ARRAY (
			(SELECT c.terms::text FROM subscription_changes c
			WHERE c.app_id = $1 AND c.wallet_id = s.wallet_id AND c.terms IS NOT NULL
			ORDER BY c.id DESC LIMIT 1000)
			UNION ALL
			SELECT r.terms::text FROM plan_prices r WHERE r.app_id = $1 AND r.price_id = s.sale ->> 'priceId')
		FROM subscriptions s LEFT JOIN wallets w ON w.app_id = $1 AND w.id = s.wallet_id
		WHERE s.app_id = $1 AND s.provider_id IS NOT NULL AND s.begun AND s.status IN `+ledger.LiveStatuses+` AND `+onlyWallets("s.wallet_id")+`
		  AND NOT EXISTS (SELECT 1 FROM subscription_changes c WHERE c.app_id = $1 AND c.wallet_id = s.wallet_id
			AND c.terms -> 'lists' = s.terms AND c.terms -> 'sale' = s.sale)
		  AND NOT EXISTS (SELECT 1 FROM plan_prices r WHERE r.app_id = $1 AND r.price_id = s.sale ->> 'priceId'
			AND r.terms -> 'lists' = s.terms AND r.terms -> 'sale' = s.sale)
		LIMIT $3`)
)

// readTermsDifference decodes the terms of a subscription and of everything it may
// have been sold by, so that another order of a list, or a field that a later
// version of Purser stores, is no difference.
func readTermsDifference(row pgx.CollectableRow) (d Difference, err error) {
	var wallet *ids.ID
	var identity *string
	var id ids.ID
	var lists, sale []byte
	var sold [][]byte
	if err := row.Scan(&wallet, &identity, &id, &lists, &sale, &sold); err != nil {
		return d, err
	}
	d.WalletID, d.Identity = pg.OrZero(wallet), pg.OrZero(identity)
	terms, err := ledger.DecodeSale(lists, sale)
	if err != nil {
		d.Detail = "subscription " + id.String() + " has terms that cannot be read"
		return d, nil
	}
	if !slices.ContainsFunc(sold, func(text []byte) bool {
		other, err := ledger.ThawTerms(text)
		return err == nil && reflect.DeepEqual(inOrder(terms), inOrder(other))
	}) {
		d.Detail = "subscription " + id.String() + " has terms that no change asked for and no price sells"
	}
	return d, nil
}

// inOrder sorts the lists of terms, whose order says nothing.
func inOrder(t billing.Terms) billing.Terms {
	t.Grants = sortedBy(t.Grants, func(g billing.Grant) ids.ID { return g.CreditID })
	t.Limits = sortedBy(t.Limits, func(l metering.Limit) ids.ID { return l.FeatureID })
	t.Multipliers = sortedBy(t.Multipliers, func(m metering.Multiplier) ids.ID { return m.FeatureID })
	return t
}

// sortedBy copies a list in the order of ids. An empty list is nil.
func sortedBy[T any](list []T, id func(T) ids.ID) []T {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b T) int {
		x, y := id(a), id(b)
		return cmp.Compare(string(x[:]), string(y[:]))
	})
	return list
}
