package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// verifyCheck is one thing that must hold about what was sold. Its statement gives
// the wallet, the customer and a detail for each place where it does not. $2 is the
// wallets to look at, NULL for all, and $3 how many places are listed.
//
// What a check compares is written in one transaction, so a purchase that is under
// way never looks like a difference.
type verifyCheck struct {
	holds     string
	full      bool // only when everything is verified
	statement statement
}

const (
	rulePosted       = "what payments brought and what was taken back stands in the journal"
	ruleClawback     = "what was taken back follows from the money that went back"
	ruleTopUps       = "each paid top-up was credited as it was sold"
	ruleFreeGrant    = "a free plan grants once in a period"
	ruleSubscription = "each subscription's period, state and terms follow from what was paid"
	ruleFeatures     = "each feature has the price of its latest revision"
	ruleLocks        = "a feature's deduplication is fixed from its first charged event on"
	ruleReferences   = "the features that plans, subscriptions and changes name are held fast"
	ruleAdjustments  = "each adjustment has its entry"
)

// onlyWallets restricts a check to the wallets that were read.
func onlyWallets(column string) string { return `($2::uuid[] IS NULL OR ` + column + ` = ANY ($2))` }

// leftOut is an alert that a payment's credits had no room in the balance, so that
// they were not posted.
const leftOut = `EXISTS (SELECT 1 FROM alerts a WHERE a.app_id = $1 AND a.kind = 'balance_full' AND a.object_id = p.source_id)`

// notTaken is an alert that 19 digits had no room for the rest of a refund or a
// dispute, or for what was given back after one.
const notTaken = `EXISTS (SELECT 1 FROM alerts a WHERE a.app_id = $1 AND a.object_id = p.source_id
	AND a.kind = CASE WHEN c.taken < c.due THEN 'debt_full' ELSE 'balance_full' END)`

var verifyChecks = []verifyCheck{
	{rulePosted, false, declare("verify payments", `
		WITH posted AS (
			SELECT j.wallet_id, j.source_kind, j.source_id, j.credit_id,
				coalesce(sum(j.delta_nanocredits) FILTER (WHERE j.kind IN ('grant', 'top-up')), 0) AS brought,
				coalesce(-sum(j.delta_nanocredits) FILTER (WHERE j.kind IN ('refund', 'dispute')), 0) AS taken
			FROM journal j
			WHERE j.app_id = $1 AND j.kind IN ('grant', 'top-up', 'refund', 'dispute') AND `+onlyWallets("j.wallet_id")+`
			GROUP BY j.wallet_id, j.source_kind, j.source_id, j.credit_id
		),
		sold AS (
			SELECT p.wallet_id, c.source_kind, c.source_id, c.credit_id, c.amount_nanocredits AS brought, c.taken_back_nanocredits AS taken
			FROM provider_payments p
			JOIN payment_credits c ON c.app_id = $1 AND c.source_kind = p.source_kind AND c.source_id = p.source_id
			WHERE p.app_id = $1 AND `+onlyWallets("p.wallet_id")+`
		)
		SELECT w.id, w.identity, coalesce(j.source_kind || ' ' || j.source_id, s.source_kind || ' ' || s.source_id, 'no payment')
			|| ' brought ' || coalesce(s.brought, 0) || ' nanocredits and ' || coalesce(s.taken, 0) || ' were taken back, but the wallet''s entries say '
			|| coalesce(j.brought, 0) || ' and ' || coalesce(j.taken, 0)
		FROM posted j FULL JOIN sold s ON s.wallet_id = j.wallet_id AND s.source_kind = j.source_kind AND s.source_id = j.source_id
			AND s.credit_id = j.credit_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = coalesce(j.wallet_id, s.wallet_id)
		WHERE s.brought IS NULL OR j.brought IS NULL OR s.brought <> j.brought OR s.taken <> j.taken
		LIMIT $3`)},

	{ruleClawback, false, declare("verify clawbacks", `
		SELECT w.id, w.identity, p.source_kind || ' ' || p.source_id || ': of ' || p.amount_cents || ' cents ' || p.refunded_cents || ' were refunded and '
			|| p.disputed_cents || ' disputed, so ' || c.due || ' of ' || c.amount || ' nanocredits had to be taken back, but ' || c.taken || ' were'
		FROM provider_payments p CROSS JOIN LATERAL (
			SELECT amount_nanocredits AS amount, taken_back_nanocredits AS taken,
				CASE WHEN p.amount_cents <= 0 THEN 0
					ELSE div(amount_nanocredits * least(p.amount_cents, greatest(0, p.refunded_cents) + greatest(0, p.disputed_cents)), p.amount_cents) END AS due
			FROM payment_credits WHERE app_id = $1 AND source_kind = p.source_kind AND source_id = p.source_id) c
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = p.wallet_id
		WHERE p.app_id = $1 AND `+onlyWallets("p.wallet_id")+` AND c.taken <> c.due AND NOT `+notTaken+`
		LIMIT $3`)},

	{ruleTopUps, false, declare("verify top-ups", `
		SELECT w.id, w.identity, x.detail
		FROM (
			SELECT t.wallet_id, 'top-up ' || t.id || ' is paid with ' || coalesce(t.session_id, 'no session') || ', but there is no such payment' AS detail
			FROM topups t
			WHERE t.app_id = $1 AND t.status = 'paid' AND `+onlyWallets("t.wallet_id")+`
			  AND NOT EXISTS (SELECT 1 FROM provider_payments p WHERE p.app_id = $1 AND p.source_kind = 'session' AND p.source_id = t.session_id)
			UNION ALL
			SELECT t.wallet_id, 'top-up ' || t.id || ' was sold for ' || t.amount_cents || ' ' || t.currency || ', but its payment ' || p.source_id
				|| ' is ' || p.amount_cents || ' ' || p.currency || CASE WHEN p.wallet_id = t.wallet_id THEN '' ELSE ' of another wallet' END
			FROM topups t JOIN provider_payments p ON p.app_id = $1 AND p.source_kind = 'session' AND p.source_id = t.session_id
			WHERE t.app_id = $1 AND t.status = 'paid' AND `+onlyWallets("t.wallet_id")+`
			  AND (p.amount_cents, p.currency, p.wallet_id) IS DISTINCT FROM (t.amount_cents, t.currency, t.wallet_id)
			UNION ALL
			SELECT t.wallet_id, 'top-up ' || t.id || ' sold ' || t.amount_nanocredits || ' nanocredits, but its payment ' || p.source_id || ' brought '
				|| coalesce(c.amount_nanocredits::text, 'none of that credit')
			FROM topups t JOIN provider_payments p ON p.app_id = $1 AND p.source_kind = 'session' AND p.source_id = t.session_id
			LEFT JOIN payment_credits c ON c.app_id = $1 AND c.source_kind = 'session' AND c.source_id = t.session_id AND c.credit_id = t.credit_id
			WHERE t.app_id = $1 AND t.status = 'paid' AND `+onlyWallets("t.wallet_id")+`
			  AND c.amount_nanocredits IS DISTINCT FROM t.amount_nanocredits AND NOT `+leftOut+`
			UNION ALL
			SELECT p.wallet_id, 'the payment ' || p.source_id || ' of ' || p.amount_cents || ' ' || p.currency || ' is for a top-up, but no paid top-up has it'
			FROM provider_payments p
			WHERE p.app_id = $1 AND p.source_kind = 'session' AND `+onlyWallets("p.wallet_id")+`
			  AND NOT EXISTS (SELECT 1 FROM topups t WHERE t.app_id = $1 AND t.session_id = p.source_id AND t.status = 'paid')
		) x LEFT JOIN wallets w ON w.app_id = $1 AND w.id = x.wallet_id
		LIMIT $3`)},

	{ruleFreeGrant, false, declare("verify free grants", `
		SELECT w.id, w.identity, 'the free periods ' || a.source_id || ' and ' || b.source_id || ' of one plan overlap, and both brought credits'
		FROM provider_payments a
		JOIN provider_payments b ON b.app_id = $1 AND b.wallet_id = a.wallet_id AND b.plan_id = a.plan_id
			AND (b.source_kind, b.source_id) > (a.source_kind, a.source_id)
			AND b.period_start < a.period_end AND a.period_start < b.period_end
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = a.wallet_id
		WHERE a.app_id = $1 AND a.free AND b.free AND `+onlyWallets("a.wallet_id")+`
		  AND EXISTS (SELECT 1 FROM payment_credits c WHERE c.app_id = $1 AND c.source_kind = a.source_kind AND c.source_id = a.source_id)
		  AND EXISTS (SELECT 1 FROM payment_credits c WHERE c.app_id = $1 AND c.source_kind = b.source_kind AND c.source_id = b.source_id)
		LIMIT $3`)},

	// A subscription without a sale was put there by a program, without a plan.
	{ruleSubscription, false, declare("verify subscriptions", `
		SELECT w.id, w.identity, 'subscription ' || x.id || ' ' || x.detail
		FROM (
			SELECT s.wallet_id, s.id, 'is ' || s.status || CASE WHEN s.begun THEN '' ELSE ', but was never paid' END
				|| CASE WHEN s.extra THEN ', but was never to come into force' ELSE '' END
				|| CASE WHEN s.ended_at IS NULL THEN '' ELSE ', but has ended' END AS detail
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN `+liveStatuses+` AND `+onlyWallets("s.wallet_id")+`
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
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.begun AND s.status IN `+liveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND NOT EXISTS (SELECT 1 FROM provider_payments p WHERE p.app_id = $1 AND p.wallet_id = s.wallet_id AND p.subscription_id = s.id
				AND p.period_start = s.period_start AND p.period_end = s.period_end AND p.plan_id = s.plan_id)
			UNION ALL
			SELECT s.wallet_id, s.id, 'names the plan ' || coalesce(s.plan_id::text, 'none') || ', but was sold ' || coalesce(s.sale ->> 'planId', 'none')
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN `+liveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND s.plan_id IS DISTINCT FROM (s.sale ->> 'planId')::uuid
			UNION ALL
			SELECT s.wallet_id, s.id, 'has terms that no change asked for and no price sells'
			FROM subscriptions s
			WHERE s.app_id = $1 AND s.provider_id IS NOT NULL AND s.begun AND s.status IN `+liveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND NOT EXISTS (SELECT 1 FROM subscription_changes c WHERE c.app_id = $1 AND c.wallet_id = s.wallet_id
				AND c.terms -> 'lists' = s.terms AND c.terms -> 'sale' = s.sale)
			  AND NOT EXISTS (SELECT 1 FROM plan_prices r WHERE r.app_id = $1 AND r.price_id = s.sale ->> 'priceId'
				AND r.terms -> 'lists' = s.terms AND r.terms -> 'sale' = s.sale)
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
			WHERE s.app_id = $1 AND s.sale IS NOT NULL AND s.status IN `+liveStatuses+` AND `+onlyWallets("s.wallet_id")+`
			  AND (c.other > 0 OR c.brought > 0 AND c.brought <> g.due) AND NOT `+leftOut+`
			  AND (SELECT count(*) FROM provider_payments o WHERE o.app_id = $1 AND o.wallet_id = s.wallet_id
				AND o.subscription_id = s.id AND o.period_start = s.period_start) = 1
			UNION ALL
			SELECT p.wallet_id, p.subscription_id, 'belongs to another customer than its payment ' || p.source_id
			FROM provider_payments p JOIN subscriptions s ON s.app_id = $1 AND s.id = p.subscription_id
			WHERE p.app_id = $1 AND s.wallet_id <> p.wallet_id AND `+onlyWallets("p.wallet_id")+`
		) x LEFT JOIN wallets w ON w.app_id = $1 AND w.id = x.wallet_id
		LIMIT $3`)},

	{ruleFeatures, true, declare("verify feature prices", `
		SELECT NULL::uuid, NULL::text, 'feature ' || f.key || ' has ' || f.cost_nanocredits || ' for ' || f.quantity_per_unit || ' (' || f.pricing_mode
			|| ', revision ' || f.revision || '), but price number ' || f.price_number || ' says '
			|| coalesce(p.cost_nanocredits || ' for ' || p.quantity_per_unit || ' (' || p.pricing_mode || ', revision ' || p.revision || ')', 'nothing')
		FROM features f LEFT JOIN prices p ON p.app_id = $1 AND p.number = f.price_number
		WHERE f.app_id = $1 AND $2::uuid[] IS NULL AND (
			(p.feature_id, p.credit_id, p.cost_nanocredits, p.quantity_per_unit, p.pricing_mode, p.revision)
				IS DISTINCT FROM (f.id, f.credit_id, f.cost_nanocredits, f.quantity_per_unit, f.pricing_mode, f.revision)
			OR EXISTS (SELECT 1 FROM prices n WHERE n.app_id = $1 AND n.feature_id = f.id AND n.number > f.price_number))
		LIMIT $3`)},

	{ruleReferences, true, declare("verify references", `
		WITH holders AS (
			SELECT p.id, p.terms AS lists FROM plans p WHERE p.app_id = $1
			UNION ALL
			SELECT s.id, s.terms FROM subscriptions s
			WHERE s.app_id = $1 AND s.status <> 'canceled' AND NOT s.extra AND (s.sale IS NOT NULL OR s.status IN `+liveStatuses+`)
			UNION ALL
			SELECT s.id, s.scheduled #> '{terms,lists}' FROM subscriptions s
			WHERE s.app_id = $1 AND s.status <> 'canceled' AND NOT s.extra AND s.scheduled IS NOT NULL
			UNION ALL
			SELECT s.id, s.pending #> '{terms,lists}' FROM subscriptions s
			WHERE s.app_id = $1 AND s.status <> 'canceled' AND NOT s.extra AND s.pending IS NOT NULL
			UNION ALL
			SELECT c.id, c.terms -> 'lists' FROM subscription_changes c
			WHERE c.app_id = $1 AND c.state IN ('requested', 'pending')
		),
		named AS (
			SELECT n.holder_id, n.feature_id, bool_or(n.multiplied) AS multiplied
			FROM (
				SELECT h.id AS holder_id, (i.item ->> 'featureId')::uuid AS feature_id, false AS multiplied
				FROM holders h CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.lists -> 'limits', '[]')) AS i (item)
				UNION ALL
				SELECT h.id, (i.item ->> 'featureId')::uuid, true
				FROM holders h CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.lists -> 'multipliers', '[]')) AS i (item)
			) n
			GROUP BY n.holder_id, n.feature_id
		),
		held AS (
			SELECT r.holder_id, r.feature_id, r.multiplied FROM feature_references r WHERE r.app_id = $1
		)
		SELECT NULL::uuid, NULL::text, 'feature ' || coalesce(f.key, 'none') || ' is '
			|| CASE WHEN n.holder_id IS NULL THEN 'not named' WHEN n.multiplied THEN 'multiplied' ELSE 'limited' END || ' by ' || coalesce(n.holder_id, r.holder_id)
			|| ', but is held as ' || CASE WHEN r.holder_id IS NULL THEN 'not named' WHEN r.multiplied THEN 'multiplied' ELSE 'limited' END
		FROM named n FULL JOIN held r ON r.holder_id = n.holder_id AND r.feature_id = n.feature_id
		LEFT JOIN features f ON f.app_id = $1 AND f.id = coalesce(n.feature_id, r.feature_id)
		WHERE $2::uuid[] IS NULL AND n.multiplied IS DISTINCT FROM r.multiplied
		LIMIT $3`)},

	{ruleDebtors, true, declare("verify debtors", `
		SELECT w.id, w.identity, 'the wallet is listed as a debtor of ' || coalesce(c.key, 'a credit that does not exist') || ', but owes nothing'
		FROM debtors d
		LEFT JOIN balances b ON b.app_id = $1 AND b.wallet_id = d.wallet_id AND b.credit_id = d.credit_id
		LEFT JOIN credits c ON c.app_id = $1 AND c.id = d.credit_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = d.wallet_id
		WHERE d.app_id = $1 AND `+onlyWallets("d.wallet_id")+` AND b.wallet_id IS NULL
		LIMIT $3`)},

	{ruleAdjustments, true, declare("verify adjustments", `
		SELECT w.id, w.identity, 'the adjustment ' || a.entry_id || ' is a ' || coalesce(j.kind, 'missing entry') || ' in the journal'
		FROM adjustments a
		LEFT JOIN journal j ON j.app_id = $1 AND j.id = a.entry_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		WHERE a.app_id = $1 AND $2::uuid[] IS NULL AND j.kind IS DISTINCT FROM 'adjustment'
		LIMIT $3`)},

	{ruleOrg, true, declare("verify organizations", `
		SELECT NULL::uuid, NULL::text, 'a row of ' || r.kind || ' names the organization ' || r.org_id || ', expected ' || o.org_id
		FROM app_state o CROSS JOIN LATERAL (
			SELECT DISTINCT 'credits' AS kind, x.org_id FROM credits x WHERE x.app_id = $1
			UNION SELECT 'features', x.org_id FROM features x WHERE x.app_id = $1
			UNION SELECT 'prices', x.org_id FROM prices x WHERE x.app_id = $1
			UNION SELECT 'plans', x.org_id FROM plans x WHERE x.app_id = $1
			UNION SELECT 'API keys', x.org_id FROM api_keys x WHERE x.app_id = $1
			UNION SELECT 'subscriptions', x.org_id FROM subscriptions x WHERE x.app_id = $1
			UNION SELECT 'subscription changes', x.org_id FROM subscription_changes x WHERE x.app_id = $1
			UNION SELECT 'top-ups', x.org_id FROM topups x WHERE x.app_id = $1
			UNION SELECT 'payments', x.org_id FROM provider_payments x WHERE x.app_id = $1
			UNION SELECT 'credits of payments', x.org_id FROM payment_credits x WHERE x.app_id = $1
			UNION SELECT 'counters', x.org_id FROM counters x WHERE x.app_id = $1
			UNION SELECT 'billed periods', x.org_id FROM billed_periods x WHERE x.app_id = $1
			UNION SELECT 'debtors', x.org_id FROM debtors x WHERE x.app_id = $1
		) r
		WHERE o.app_id = $1 AND $2::uuid[] IS NULL AND r.org_id <> o.org_id
		LIMIT $3`)},
}

// check runs the checks for the wallets that were read, each in its own snapshot.
func (p *verifyPass) check(ctx context.Context) error {
	if p.options.all() {
		if err := p.checkOwners(ctx); err != nil {
			return err
		}
		if err := p.read(ctx, p.checkLocks); err != nil {
			return err
		}
		return p.checkWallets(ctx, nil, func(ids.ID) {})
	}
	return nil
}

// checkWalked checks what was sold to the wallets of a batch that were read to their
// end. One with a difference is not sealed.
func (p *verifyPass) checkWalked(ctx context.Context, walked []verifyRange) error {
	proofs := map[ids.ID]*walletProof{}
	var wallets []ids.ID
	for _, r := range walked {
		if r.proof.done {
			proofs[r.wallet] = r.proof
			wallets = append(wallets, r.wallet)
		}
	}
	if len(wallets) == 0 {
		return nil
	}
	return p.checkWallets(ctx, wallets, func(wallet ids.ID) {
		if proof := proofs[wallet]; proof != nil {
			proof.broken = true
		}
	})
}

// checkWallets runs the checks on some wallets, or on everything when there are none.
func (p *verifyPass) checkWallets(ctx context.Context, wallets []ids.ID, differs func(ids.ID)) error {
	for _, check := range verifyChecks {
		if check.full && wallets != nil {
			continue
		}
		var found []Difference
		err := p.read(ctx, func(ctx context.Context, tx appTx) (err error) {
			found, err = collect(ctx, tx, check.statement, readDifference(check.holds), wallets, maxDifferences+1)
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range found {
			p.report(d)
			differs(d.WalletID)
		}
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}

// checkLocks compares the features that were fixed when the pass began, and those
// that are now, with the events that it read in between.
func (p *verifyPass) checkLocks(ctx context.Context, tx appTx) error {
	before := p.locked
	if err := p.catalog.load(ctx, tx); err != nil {
		return err
	}
	var found []Difference
	for id, f := range p.catalog.features {
		switch {
		case p.catalog.used[id] && !f.locked:
			found = append(found, Difference{Check: ruleLocks, Detail: "feature " + f.key + " has charged events, but its deduplication can still be changed"})
		case !p.catalog.used[id] && before[id]:
			found = append(found, Difference{Check: ruleLocks, Detail: "feature " + f.key + " has no charged event, but its deduplication is fixed"})
		}
	}
	for _, d := range found {
		p.report(d)
	}
	return nil
}

func readDifference(rule string) pgx.RowToFunc[Difference] {
	return func(row pgx.CollectableRow) (Difference, error) {
		d := Difference{Check: rule}
		var wallet *ids.ID
		var identity, detail *string
		err := row.Scan(&wallet, &identity, &detail)
		d.WalletID, d.Identity, d.Detail = orZero(wallet), orZero(identity), orZero(detail)
		return d, err
	}
}
