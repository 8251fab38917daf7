package verify

import "purser/store/internal/pg"

const ruleTransfers = "each transfer has two sides of the same size"

// The entry, the record and the entry of the other wallet are compared: they are written
// in one transaction, so a transfer that is under way never looks like a difference.
var verifyTransfers = pg.Declare("verify transfers", `
	SELECT w.id, w.identity, 'the transfer of ' || j.delta_nanocredits || ' nanocredits in entry ' || j.seq || CASE
			WHEN t.other_id IS NULL THEN ' has no record of its two wallets'
			WHEN o.id IS NULL THEN ' has no entry of the same size in the other wallet'
			ELSE ' names the organization ' || t.org_id || ', expected ' || j.org_id END
	FROM journal j
	LEFT JOIN LATERAL (
		SELECT x.org_id, x.to_entry_id AS other_id, x.to_wallet_id AS other_wallet FROM transfers x
		WHERE x.app_id = $1 AND x.entry_id = j.id AND x.wallet_id = j.wallet_id AND x.amount_nanocredits = -j.delta_nanocredits
		UNION ALL
		SELECT y.org_id, y.entry_id, y.wallet_id FROM transfers y
		WHERE y.app_id = $1 AND y.to_entry_id = j.id AND y.to_wallet_id = j.wallet_id AND y.amount_nanocredits = j.delta_nanocredits
	) t ON true
	LEFT JOIN journal o ON o.app_id = $1 AND o.id = t.other_id AND o.wallet_id = t.other_wallet AND o.kind = 'transfer'
		AND o.credit_id = j.credit_id AND o.delta_nanocredits = -j.delta_nanocredits
	LEFT JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
	WHERE j.app_id = $1 AND j.kind = 'transfer' AND `+onlyWallets("j.wallet_id")+` AND (o.id IS NULL OR t.org_id <> j.org_id)
	LIMIT $3`)

// A record whose entries are of another kind is found by the records themselves.
var verifyTransferRecords = pagedCheck{verifyCheck{holds: ruleTransfers, statement: pg.Declare("verify records of transfers", `
		SELECT w.id, w.identity, 'the transfer ' || t.entry_id || ' is a ' || coalesce(j.kind, 'missing entry') || ' of the sender and a '
			|| coalesce(o.kind, 'missing entry') || ' of the receiver in the journal'
		FROM transfers t
		LEFT JOIN journal j ON j.app_id = $1 AND j.id = t.entry_id
		LEFT JOIN journal o ON o.app_id = $1 AND o.id = t.to_entry_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = t.wallet_id
		WHERE t.app_id = $1 AND t.entry_id > $2 AND t.entry_id <= $4
		  AND (j.kind IS DISTINCT FROM 'transfer' OR o.kind IS DISTINCT FROM 'transfer')
		LIMIT $3`)},
	pg.Declare("verify ranges of transfers", `
		SELECT t.entry_id FROM transfers t WHERE t.app_id = $1 AND t.entry_id > $2
		ORDER BY t.entry_id OFFSET $3 - 1 LIMIT 1`)}
