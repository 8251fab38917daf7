package store

// everything is true when all entries are asked for, not only those since a moment.
const everything = `$2::uuid = '00000000-0000-0000-0000-000000000000'`

// recentWallets are the wallets that had entries since $2, each with the number of
// the first of them. All of them, from their first entry, when $2 is zero.
const recentWallets = `
	recent AS (
		SELECT wallet_id, min(seq) AS first_seq
		FROM (
			SELECT wallet_id, seq FROM journal WHERE app_id = $1 AND id >= $2
			UNION ALL
			SELECT wallet_id, seq FROM usage_events WHERE app_id = $1 AND tx_id >= $2
		) touched
		GROUP BY wallet_id
	)`

// recentEntries are the entries of those wallets from there on, charges among them.
const recentEntries = recentWallets + `,
	entries AS (
		SELECT j.wallet_id, j.seq, j.credit_id, j.delta_nanocredits AS delta, j.balance_after, j.debt_after
		FROM recent r JOIN journal j ON j.app_id = $1 AND j.wallet_id = r.wallet_id AND j.seq >= r.first_seq
		UNION ALL
		SELECT e.wallet_id, e.seq, p.credit_id, -e.amount_nanocredits, e.balance_after, coalesce(e.debt_after, 0)
		FROM recent r
		JOIN usage_events e ON e.app_id = $1 AND e.wallet_id = r.wallet_id AND e.seq >= r.first_seq
		JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
	)`

// explainedEvents are the recent events with everything their amount follows from.
const explainedEvents = `
	explained AS (
		SELECT e.wallet_id, e.event_id, e.tx_id, e.seq, e.quantity, e.amount_nanocredits AS amount, e.entity_id,
			e.period_start, e.period_end, e.deduplicated_from, e.allowance_limit, e.allowance_used,
			e.allowance_start, e.allowance_end, e.allowance_overage, e.quoted_nanocredits AS quoted,
			coalesce(e.basis_points, 10000) AS basis_points,
			p.feature_id, p.pricing_mode, p.cost_nanocredits AS cost, p.quantity_per_unit,
			CASE WHEN e.allowance_limit IS NULL THEN e.quantity
				ELSE e.quantity - least(e.quantity, greatest(0, e.allowance_limit - e.allowance_used)) END AS billable
		FROM usage_events e JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
		WHERE e.app_id = $1 AND e.tx_id >= $2
	)`

var countVerified = declare("count verified", `
	WITH `+recentEntries+`
	SELECT count(DISTINCT wallet_id), count(*) FROM entries`)

// verification is one thing that must hold. Its statement gives the wallet and a
// detail for each place where it does not.
type verification struct {
	holds     string
	statement statement
}

var verifications = []verification{
	{"the wallet's entries are numbered without a gap", declare("verify sequence", `
		WITH `+recentEntries+`
		SELECT n.wallet_id, 'entry ' || n.seq || ' follows ' || n.prior
		FROM (
			SELECT e.wallet_id, e.seq, coalesce(
				lag(e.seq) OVER (PARTITION BY e.wallet_id ORDER BY e.seq),
				CASE WHEN `+everything+` THEN 0 ELSE r.first_seq - 1 END) AS prior
			FROM entries e JOIN recent r ON r.wallet_id = e.wallet_id
		) n
		WHERE n.seq <> n.prior + 1
		LIMIT $3`)},

	{"each entry leaves the balance before it plus its change", declare("verify chain", `
		WITH `+recentEntries+`
		SELECT c.wallet_id, 'entry ' || c.seq || ': ' || c.before || ' and ' || c.delta || ' do not make '
			|| c.balance_after || ' with a debt of ' || c.debt_after
		FROM (
			SELECT e.wallet_id, e.seq, e.delta, e.balance_after, e.debt_after,
				coalesce(lag(e.balance_after - e.debt_after) OVER (PARTITION BY e.wallet_id, e.credit_id ORDER BY e.seq), earlier.total, 0) AS before
			FROM entries e JOIN recent r ON r.wallet_id = e.wallet_id
			LEFT JOIN LATERAL (
				SELECT o.total FROM (
					SELECT j.seq, j.balance_after - j.debt_after AS total
					FROM journal j
					WHERE j.app_id = $1 AND j.wallet_id = e.wallet_id AND j.seq < r.first_seq AND j.credit_id = e.credit_id
					UNION ALL
					SELECT u.seq, u.balance_after - coalesce(u.debt_after, 0)
					FROM usage_events u JOIN prices p ON p.app_id = $1 AND p.number = u.price_number
					WHERE u.app_id = $1 AND u.wallet_id = e.wallet_id AND u.seq < r.first_seq AND p.credit_id = e.credit_id
				) o ORDER BY o.seq DESC LIMIT 1
			) earlier ON r.first_seq > 1
		) c
		WHERE c.before + c.delta <> c.balance_after - c.debt_after
		LIMIT $3`)},

	{"the stored balance is the one after the last entry", declare("verify balances", `
		WITH `+recentEntries+`,
		last AS (
			SELECT DISTINCT ON (wallet_id, credit_id) wallet_id, credit_id, balance_after, debt_after
			FROM entries ORDER BY wallet_id, credit_id, seq DESC
		)
		SELECT l.wallet_id, 'balance ' || coalesce(b.amount_nanocredits, 0) || ' with a debt of ' || coalesce(b.debt_nanocredits, 0)
			|| ', but the journal ends at ' || l.balance_after || ' with a debt of ' || l.debt_after
		FROM last l LEFT JOIN balances b ON b.app_id = $1 AND b.wallet_id = l.wallet_id AND b.credit_id = l.credit_id
		WHERE coalesce(b.amount_nanocredits, 0) <> l.balance_after OR coalesce(b.debt_nanocredits, 0) <> l.debt_after
		LIMIT $3`)},

	{"nothing is held while in debt", declare("verify debts", `
		SELECT b.wallet_id, 'balance ' || b.amount_nanocredits || ' beside a debt of ' || b.debt_nanocredits
		FROM balances b
		WHERE b.app_id = $1 AND `+everything+` AND b.amount_nanocredits > 0 AND b.debt_nanocredits > 0
		LIMIT $3`)},

	{"a billing period is whole", declare("verify billing periods", `
		SELECT w.id, 'billing period of interval ' || coalesce(w.billing_interval, 'none') || ' and anchor ' || coalesce(w.billing_anchor::text, 'none')
		FROM wallets w
		WHERE w.app_id = $1 AND `+everything+` AND (w.billing_interval IS NULL) <> (w.billing_anchor IS NULL)
		LIMIT $3`)},

	{"what payments brought, less what was taken back, stands in the journal", declare("verify payments", `
		WITH `+recentWallets+`,
		posted AS (
			SELECT j.wallet_id, j.source_kind, j.source_id, j.credit_id, sum(j.delta_nanocredits) AS total
			FROM recent r JOIN journal j ON j.app_id = $1 AND j.wallet_id = r.wallet_id
			WHERE j.kind IN ('grant', 'top-up', 'refund', 'dispute')
			GROUP BY j.wallet_id, j.source_kind, j.source_id, j.credit_id
		),
		brought AS (
			SELECT p.wallet_id, c.source_kind, c.source_id, c.credit_id, c.amount_nanocredits - c.taken_back_nanocredits AS total
			FROM provider_payments p
			JOIN payment_credits c ON c.app_id = $1 AND c.source_kind = p.source_kind AND c.source_id = p.source_id
			WHERE p.app_id = $1 AND (`+everything+` OR p.wallet_id IN (SELECT wallet_id FROM recent))
		)
		SELECT coalesce(j.wallet_id, b.wallet_id), coalesce(j.source_kind || ' ' || j.source_id, b.source_kind || ' ' || b.source_id, 'no payment')
			|| ' stands for ' || coalesce(b.total, 0) || ', the journal has ' || coalesce(j.total, 0)
		FROM posted j FULL JOIN brought b ON b.wallet_id = j.wallet_id AND b.source_kind = j.source_kind AND b.source_id = j.source_id
			AND b.credit_id = j.credit_id
		WHERE b.total IS NULL OR j.total IS NULL OR b.total <> j.total
		LIMIT $3`)},

	{"no balance is without entries", declare("verify unexplained balances", `
		SELECT b.wallet_id, 'balance ' || b.amount_nanocredits || ' with a debt of ' || b.debt_nanocredits || ' has no entry'
		FROM balances b
		WHERE b.app_id = $1 AND `+everything+`
		  AND NOT EXISTS (SELECT 1 FROM journal j WHERE j.app_id = $1 AND j.wallet_id = b.wallet_id AND j.credit_id = b.credit_id)
		LIMIT $3`)},

	{"the wallet knows its last entry and whether it was charged", declare("verify wallets", `
		WITH `+recentEntries+`,
		last AS (SELECT wallet_id, max(seq) AS seq FROM entries GROUP BY wallet_id)
		SELECT w.id, 'last entry ' || coalesce(l.seq, 0) || ', stored as ' || w.last_seq || CASE WHEN w.charged THEN ', charged' ELSE '' END
		FROM wallets w LEFT JOIN last l ON l.wallet_id = w.id
		WHERE w.app_id = $1 AND (l.seq IS NOT NULL OR `+everything+`)
		  AND (w.last_seq <> coalesce(l.seq, 0) OR w.charged <> EXISTS (
			SELECT 1 FROM usage_events u WHERE u.app_id = $1 AND u.wallet_id = w.id AND u.deduplicated_from IS NULL))
		LIMIT $3`)},

	{"each amount follows from the price, the quantity and the allowance", declare("verify amounts", `
		WITH `+explainedEvents+`
		SELECT x.wallet_id, 'event ' || x.tx_id || ' charged ' || x.amount || ', its terms make ' || x.due
		FROM (
			SELECT wallet_id, tx_id, amount,
				CASE
					WHEN deduplicated_from IS NOT NULL THEN 0
					WHEN pricing_mode = 'callback' AND quoted IS NULL THEN amount
					WHEN pricing_mode = 'callback' THEN div(quoted * billable + quantity - 1, quantity)
					ELSE div(cost * billable * basis_points + quantity_per_unit::numeric * 10000 - 1, quantity_per_unit::numeric * 10000)
				END AS due
			FROM explained
		) x
		WHERE x.amount <> x.due
		LIMIT $3`)},

	{"a blocking allowance is never passed", declare("verify allowances", `
		WITH `+explainedEvents+`
		SELECT wallet_id, 'event ' || tx_id || ' took ' || quantity || ' of a limit of ' || allowance_limit || ' with ' || allowance_used || ' used'
		FROM explained
		WHERE deduplicated_from IS NULL AND allowance_overage = 'block' AND quantity > greatest(0, allowance_limit - allowance_used)
		LIMIT $3`)},

	{"each counter is the sum of what was used in its period", declare("verify counters", `
		WITH `+recentWallets+`,
		used AS (
			SELECT e.wallet_id, p.feature_id, e.allowance_start, e.allowance_end, sum(e.quantity) AS used
			FROM recent r
			JOIN usage_events e ON e.app_id = $1 AND e.wallet_id = r.wallet_id
			JOIN prices p ON p.app_id = $1 AND p.number = e.price_number
			WHERE e.allowance_limit IS NOT NULL AND e.deduplicated_from IS NULL
			GROUP BY e.wallet_id, p.feature_id, e.allowance_start, e.allowance_end
		),
		stored AS (
			SELECT c.wallet_id, c.feature_id, c.period_start, c.period_end, c.used
			FROM counters c WHERE c.app_id = $1
			  AND (`+everything+` OR c.wallet_id IN (SELECT wallet_id FROM recent))
		)
		SELECT coalesce(u.wallet_id, s.wallet_id), 'counter ' || coalesce(s.used, 0) || ', events sum to ' || coalesce(u.used, 0)
		FROM used u FULL JOIN stored s ON s.wallet_id = u.wallet_id AND s.feature_id = u.feature_id
			AND s.period_start = u.allowance_start AND s.period_end = u.allowance_end
		WHERE coalesce(s.used, 0) <> coalesce(u.used, 0)
		LIMIT $3`)},

	{"each period is billed by exactly one charged event", declare("verify billed periods", `
		WITH `+explainedEvents+`
		SELECT x.wallet_id, 'event ' || x.tx_id || CASE WHEN x.deduplicated_from IS NULL
			THEN ' was charged for a period that ' || coalesce(b.tx_id::text, 'nothing') || ' is billed for'
			ELSE ' names ' || x.deduplicated_from || ', the period was billed by ' || coalesce(b.tx_id::text, 'nothing') END
		FROM explained x LEFT JOIN billed_periods b ON b.app_id = $1 AND b.wallet_id = x.wallet_id AND b.feature_id = x.feature_id
			AND b.period_start = x.period_start AND b.period_end = x.period_end AND b.entity_id = coalesce(x.entity_id, '')
		WHERE x.period_start IS NOT NULL AND b.tx_id IS DISTINCT FROM coalesce(x.deduplicated_from, x.tx_id)
		LIMIT $3`)},

	{"no billed period is without its event", declare("verify unexplained billed periods", `
		SELECT b.wallet_id, 'billed by ' || b.tx_id || ', which is no event of the wallet'
		FROM billed_periods b
		WHERE b.app_id = $1 AND b.tx_id >= $2
		  AND NOT EXISTS (SELECT 1 FROM usage_events e WHERE e.app_id = $1 AND e.wallet_id = b.wallet_id AND e.tx_id = b.tx_id)
		LIMIT $3`)},

	{"every row names the organization of its application", declare("verify organizations", `
		SELECT r.wallet_id, 'a row of ' || r.kind || ' names another organization'
		FROM app_state s CROSS JOIN LATERAL (
			SELECT w.id AS wallet_id, w.org_id, 'wallets' AS kind FROM wallets w WHERE w.app_id = $1
			UNION ALL
			SELECT b.wallet_id, b.org_id, 'balances' FROM balances b WHERE b.app_id = $1
			UNION ALL
			SELECT j.wallet_id, j.org_id, 'journal' FROM journal j WHERE j.app_id = $1 AND j.id >= $2
			UNION ALL
			SELECT e.wallet_id, e.org_id, 'usage_events' FROM usage_events e WHERE e.app_id = $1 AND e.tx_id >= $2
		) r
		WHERE s.app_id = $1 AND r.org_id <> s.org_id
		LIMIT $3`)},

	{"an event id stands in a wallet that exists", declare("verify owners", `
		SELECT e.wallet_id, 'event ' || e.tx_id || ' has no wallet'
		FROM usage_events e
		WHERE e.app_id = $1 AND e.tx_id >= $2
		  AND NOT EXISTS (SELECT 1 FROM wallets w WHERE w.app_id = $1 AND w.id = e.wallet_id)
		LIMIT $3`)},
}
