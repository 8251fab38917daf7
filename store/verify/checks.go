package verify

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// verifyCheck is one rule about what was sold to wallets. $2 of its statement is the
// wallets to check and $3 the maximum number of rows: each is a difference with its
// wallet, its customer and a detail.
//
// What a check compares is written in one transaction, so a purchase that is under
// way never looks like a difference.
type verifyCheck struct {
	holds     string
	full      bool // only when everything is verified
	statement pg.Statement
	read      pgx.RowToFunc[Difference] // for rows of another shape; without a detail there is no difference
}

const (
	rulePosted       = "credits granted and clawed back for payments match the journal"
	ruleClawback     = "what was taken back follows from the money that went back"
	ruleTopUps       = "each paid top-up was credited as it was sold"
	ruleFreeGrant    = "a free plan grants once in a period"
	ruleSubscription = "each subscription's period, state and terms follow from what was paid"
	ruleFeatures     = "each feature has the price of its latest revision"
	ruleLocks        = "a feature's deduplication is fixed from its first charged event on"
	ruleReferences   = "features used by plans, subscriptions and changes are locked"
	ruleAdjustments  = "each adjustment has its entry"
)

// onlyWallets restricts a check to the wallets that were read.
func onlyWallets(column string) string { return column + ` = ANY ($2::uuid[])` }

// leftOut is an alert that a payment's credits had no room in the balance, so that
// they were not posted.
const leftOut = `EXISTS (SELECT 1 FROM alerts a WHERE a.app_id = $1 AND a.kind = 'balance_full' AND a.object_id = p.source_id)`

// notTaken is an alert that 19 digits had no room for the rest of a refund or a
// dispute, or for what was given back after one.
const notTaken = `EXISTS (SELECT 1 FROM alerts a WHERE a.app_id = $1 AND a.object_id = p.source_id
	AND a.kind = CASE WHEN c.taken < c.due THEN 'debt_full' ELSE 'balance_full' END)`

var verifyChecks = []verifyCheck{
	// Both sides are written in one transaction. It goes from month to month along the primary
	// key, whose second column the month is: only within a month does it serve a set of wallets.
	{holds: ruleUsageMonth, full: true, statement: pg.Declare("verify usage by month", `
		WITH RECURSIVE months AS (
			(SELECT t.month FROM usage_months t WHERE t.app_id = $1 ORDER BY t.month LIMIT 1)
			UNION ALL
			SELECT (SELECT t.month FROM usage_months t WHERE t.app_id = $1 AND t.month > n.month ORDER BY t.month LIMIT 1)
			FROM months n WHERE n.month IS NOT NULL
		)
		SELECT w.id, w.identity, 'the month ' || coalesce(m.month, h.month) || ' has ' || coalesce(m.events, 0) || ' events and ' || coalesce(m.charged, 0)
			|| ' nanocredits, its hours have ' || coalesce(h.events, 0) || ' and ' || coalesce(h.charged, 0)
		FROM (
			SELECT x.wallet_id, x.credit_id, (extract(epoch FROM date_trunc('month', to_timestamp(x.hour / 1000), 'UTC')) * 1000)::bigint AS month,
				sum(x.events)::bigint AS events, sum(x.charged_nanocredits) AS charged
			FROM usage_hours x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` GROUP BY 1, 2, 3
		) h FULL JOIN (
			SELECT y.wallet_id, y.credit_id, y.month, y.events, y.charged
			FROM months n CROSS JOIN LATERAL (
				SELECT z.wallet_id, z.credit_id, z.month, z.events, z.charged_nanocredits AS charged
				FROM usage_months z WHERE z.app_id = $1 AND z.month = n.month AND `+onlyWallets("z.wallet_id")+` OFFSET 0
			) y
		) m ON m.wallet_id = h.wallet_id AND m.credit_id = h.credit_id AND m.month = h.month
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = coalesce(m.wallet_id, h.wallet_id)
		WHERE m.events IS DISTINCT FROM h.events OR m.charged IS DISTINCT FROM h.charged
		LIMIT $3`)},

	{holds: rulePosted, statement: pg.Declare("verify payments", `
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

	{holds: ruleClawback, statement: pg.Declare("verify clawbacks", `
		SELECT w.id, w.identity, p.source_kind || ' ' || p.source_id || ': of ' || p.amount_cents + p.balance_cents || ' cents ' || p.refunded_cents || ' were refunded and '
			|| p.disputed_cents || ' disputed, so ' || c.due || ' of ' || c.amount || ' nanocredits had to be taken back, but ' || c.taken || ' were'
		FROM provider_payments p CROSS JOIN LATERAL (
			SELECT amount_nanocredits AS amount, taken_back_nanocredits AS taken,
				CASE WHEN p.amount_cents + p.balance_cents <= 0 THEN 0
					ELSE div(amount_nanocredits * least(p.amount_cents + p.balance_cents, greatest(0, p.refunded_cents) + greatest(0, p.disputed_cents)),
						p.amount_cents + p.balance_cents) END AS due
			FROM payment_credits WHERE app_id = $1 AND source_kind = p.source_kind AND source_id = p.source_id) c
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = p.wallet_id
		WHERE p.app_id = $1 AND `+onlyWallets("p.wallet_id")+` AND c.taken <> c.due AND NOT `+notTaken+`
		LIMIT $3`)},

	{holds: ruleTopUps, statement: pg.Declare("verify top-ups", `
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

	{holds: ruleFreeGrant, statement: pg.Declare("verify free grants", `
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

	{holds: ruleReversals, statement: verifyReversals},
	{holds: ruleTransfers, statement: verifyTransfers},
	{holds: ruleProperties, full: true, statement: verifyProperties},
	{holds: ruleSubscription, statement: verifySubscriptions},
	{holds: ruleSubscription, statement: verifySubscriptionTerms, read: readTermsDifference},

	{holds: ruleDebtors, statement: pg.Declare("verify debtors", `
		SELECT w.id, w.identity, 'the wallet is listed as a debtor of ' || coalesce(c.key, 'a credit that does not exist') || ', but owes nothing'
		FROM debtors d
		LEFT JOIN balances b ON b.app_id = $1 AND b.wallet_id = d.wallet_id AND b.credit_id = d.credit_id
		LEFT JOIN credits c ON c.app_id = $1 AND c.id = d.credit_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = d.wallet_id
		WHERE d.app_id = $1 AND `+onlyWallets("d.wallet_id")+` AND b.wallet_id IS NULL
		LIMIT $3`)},

	// Rows of these tables are not read otherwise, so only a full pass does.
	{holds: ruleOrg, full: true, statement: pg.Declare("verify organizations", `
		SELECT w.id, w.identity, 'a row of ' || r.kind || ' names the organization ' || r.org_id || ', expected ' || o.org_id
		FROM app_state o CROSS JOIN LATERAL (
			SELECT 'subscriptions' AS kind, x.wallet_id, x.org_id FROM subscriptions x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.status IN `+ledger.LiveStatuses+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'subscriptions' AS kind, x.wallet_id, x.org_id FROM subscriptions x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.status IN ('incomplete', 'canceled') AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'subscription changes' AS kind, x.wallet_id, x.org_id FROM subscription_changes x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'top-ups' AS kind, x.wallet_id, x.org_id FROM topups x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'payments' AS kind, x.wallet_id, x.org_id FROM provider_payments x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'counters' AS kind, x.wallet_id, x.org_id FROM counters x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'billed periods' AS kind, x.wallet_id, x.org_id FROM billed_periods x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'reversals' AS kind, x.wallet_id, x.org_id FROM reversals x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'properties' AS kind, x.wallet_id, x.org_id FROM event_properties x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'debtors' AS kind, x.wallet_id, x.org_id FROM debtors x WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND x.org_id <> o.org_id
			UNION ALL
			SELECT 'credits of payments', p.wallet_id, x.org_id
			FROM provider_payments p JOIN payment_credits x ON x.app_id = $1 AND x.source_kind = p.source_kind AND x.source_id = p.source_id
			WHERE p.app_id = $1 AND `+onlyWallets("p.wallet_id")+` AND x.org_id <> o.org_id
		) r LEFT JOIN wallets w ON w.app_id = $1 AND w.id = r.wallet_id
		WHERE o.app_id = $1
		LIMIT $3`)},
}

// checkWalked checks what was sold to the wallets of a batch that were read to their
// end. One with a difference, or with a check that did not finish, is not sealed.
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
	// At most one row a wallet is without a difference.
	limit := maxDifferences + 1 + len(wallets)
	for _, check := range verifyChecks {
		if check.full && !p.options.all() {
			continue
		}
		found, finished, err := p.differences(ctx, check, wallets, limit)
		if err != nil {
			return err
		}
		for _, d := range found {
			if proof := proofs[d.WalletID]; proof != nil {
				proof.broken = true
			}
		}
		if !finished {
			for _, proof := range proofs {
				proof.broken = true
			}
		}
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}

// differences runs one check in a snapshot of its own and reports what it found. A
// statement that the database canceled leaves the check unfinished and the pass
// continues with the next one.
func (p *verifyPass) differences(ctx context.Context, check verifyCheck, args ...any) (found []Difference, finished bool, err error) {
	read := check.read
	if read == nil {
		read = readDifference
	}
	found, err = list(ctx, p, check.statement, read, args...)
	if finished, err = p.finished(ctx, check.holds, err); !finished {
		return nil, false, err
	}
	found = slices.DeleteFunc(found, func(d Difference) bool { return d.Detail == "" })
	for i := range found {
		found[i].Check = check.holds
		p.report(found[i])
	}
	return found, true, nil
}

// finished reports whether a part of the pass ended. A statement that was canceled,
// by its time limit or by an administrator, is noted; any other error is returned.
func (p *verifyPass) finished(ctx context.Context, rule string, err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil || pg.SQLState(err) != pg.QueryCanceled {
		return false, err
	}
	if !slices.Contains(p.result.Unfinished, rule) {
		p.result.Unfinished = append(p.result.Unfinished, rule)
	}
	return false, nil
}

func readDifference(row pgx.CollectableRow) (d Difference, err error) {
	var wallet *ids.ID
	var identity, detail *string
	err = row.Scan(&wallet, &identity, &detail)
	d.WalletID, d.Identity, d.Detail = pg.OrZero(wallet), pg.OrZero(identity), pg.OrZero(detail)
	return d, err
}
