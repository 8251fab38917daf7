package verify

import "purser/store/internal/pg"

const ruleProperties = "properties belong to an event of their wallet"

var verifyProperties = pg.Declare("verify properties", `
	SELECT w.id, w.identity, 'entry ' || x.seq || ' has properties, but is no event'
	FROM event_properties x
	LEFT JOIN usage_events e ON e.app_id = $1 AND e.wallet_id = x.wallet_id AND e.seq = x.seq
	LEFT JOIN wallets w ON w.app_id = $1 AND w.id = x.wallet_id
	WHERE x.app_id = $1 AND `+onlyWallets("x.wallet_id")+` AND e.seq IS NULL
	  AND NOT EXISTS (SELECT 1 FROM packed_events p WHERE p.app_id = $1 AND p.wallet_id = x.wallet_id AND p.first_seq <= x.seq AND p.last_seq >= x.seq
		AND array_position(p.seqs, x.seq) IS NOT NULL)
	LIMIT $3`)
