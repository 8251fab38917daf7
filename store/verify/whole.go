package verify

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// The checks of a full pass that are about no wallet. $2 is how many differences are
// listed.
var verifyCatalogChecks = []verifyCheck{
	{holds: ruleFeatures, statement: pg.Declare("verify feature prices", `
		SELECT NULL::uuid, NULL::text, 'feature ' || f.key || ' has ' || f.cost_nanocredits || ' for ' || f.quantity_per_unit || ' (' || f.pricing_mode
			|| ', revision ' || f.revision || '), but price number ' || f.price_number || ' says '
			|| coalesce(p.cost_nanocredits || ' for ' || p.quantity_per_unit || ' (' || p.pricing_mode || ', revision ' || p.revision || ')', 'nothing')
		FROM features f LEFT JOIN prices p ON p.app_id = $1 AND p.number = f.price_number
		WHERE f.app_id = $1 AND (
			(p.feature_id, p.credit_id, p.cost_nanocredits, p.quantity_per_unit, p.pricing_mode, p.revision)
				IS DISTINCT FROM (f.id, f.credit_id, f.cost_nanocredits, f.quantity_per_unit, f.pricing_mode, f.revision)
			OR EXISTS (SELECT 1 FROM prices n WHERE n.app_id = $1 AND n.feature_id = f.id AND n.number > f.price_number))
		LIMIT $2`)},

	{holds: ruleOrg, statement: pg.Declare("verify organizations of the catalog", `
		SELECT NULL::uuid, NULL::text, 'a row of ' || r.kind || ' names the organization ' || r.org_id || ', expected ' || o.org_id
		FROM app_state o CROSS JOIN LATERAL (
			SELECT DISTINCT 'credits' AS kind, x.org_id FROM credits x WHERE x.app_id = $1
			UNION SELECT 'features', x.org_id FROM features x WHERE x.app_id = $1
			UNION SELECT 'prices', x.org_id FROM prices x WHERE x.app_id = $1
			UNION SELECT 'plans', x.org_id FROM plans x WHERE x.app_id = $1
			UNION SELECT 'API keys', x.org_id FROM api_keys x WHERE x.app_id = $1
			UNION SELECT 'alert rules', x.org_id FROM alert_rules x WHERE x.app_id = $1
			UNION SELECT 'feeds', x.org_id FROM feeds x WHERE x.app_id = $1
			UNION SELECT 'webhook endpoints', x.org_id FROM webhook_endpoints x WHERE x.app_id = $1
			UNION SELECT 'deleted endpoints', x.org_id FROM deleted_endpoints x WHERE x.app_id = $1
		) r
		WHERE o.app_id = $1 AND r.org_id <> o.org_id
		LIMIT $2`)},
}

// pagedCheck is a check of a full pass over a table that grows with the customers. It
// runs on one range of ids after the other, so that no statement takes longer
// because the table is larger. ends gives the last id of the range of $3 ids that
// follows $2; the check's statement has the range between $2 and $4.
type pagedCheck struct {
	verifyCheck
	ends pg.Statement
}

var verifyPagedChecks = []pagedCheck{
	{verifyCheck{holds: ruleReferences, statement: pg.Declare("verify references", `
		WITH holders AS (
			SELECT p.id, p.terms AS lists FROM plans p WHERE p.app_id = $1 AND p.id > $2 AND p.id <= $4
			UNION ALL
			SELECT s.id, s.terms FROM subscriptions s
			WHERE s.app_id = $1 AND s.id > $2 AND s.id <= $4 AND s.status <> 'canceled' AND NOT s.extra AND (s.sale IS NOT NULL OR s.status IN `+ledger.LiveStatuses+`)
			UNION ALL
			SELECT s.id, s.scheduled #> '{terms,lists}' FROM subscriptions s
			WHERE s.app_id = $1 AND s.id > $2 AND s.id <= $4 AND s.status <> 'canceled' AND NOT s.extra AND s.scheduled IS NOT NULL
			UNION ALL
			SELECT s.id, s.pending #> '{terms,lists}' FROM subscriptions s
			WHERE s.app_id = $1 AND s.id > $2 AND s.id <= $4 AND s.status <> 'canceled' AND NOT s.extra AND s.pending IS NOT NULL
			UNION ALL
			SELECT c.id, c.terms -> 'lists' FROM subscription_changes c
			WHERE c.app_id = $1 AND c.id > $2 AND c.id <= $4 AND c.state IN ('requested', 'pending')
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
			SELECT r.holder_id, r.feature_id, r.multiplied FROM feature_references r WHERE r.app_id = $1 AND r.holder_id > $2 AND r.holder_id <= $4
		)
		SELECT NULL::uuid, NULL::text, 'feature ' || coalesce(f.key, 'none') || ' is '
			|| CASE WHEN n.holder_id IS NULL THEN 'not named' WHEN n.multiplied THEN 'multiplied' ELSE 'limited' END || ' by ' || coalesce(n.holder_id, r.holder_id)
			|| ', but is held as ' || CASE WHEN r.holder_id IS NULL THEN 'not named' WHEN r.multiplied THEN 'multiplied' ELSE 'limited' END
		FROM named n FULL JOIN held r ON r.holder_id = n.holder_id AND r.feature_id = n.feature_id
		LEFT JOIN features f ON f.app_id = $1 AND f.id = coalesce(n.feature_id, r.feature_id)
		WHERE n.multiplied IS DISTINCT FROM r.multiplied
		LIMIT $3`)},
		pg.Declare("verify ranges of references", `
		SELECT h.id
		FROM (
			(SELECT p.id FROM plans p WHERE p.app_id = $1 AND p.id > $2 ORDER BY p.id LIMIT $3)
			UNION ALL
			(SELECT s.id FROM subscriptions s WHERE s.app_id = $1 AND s.id > $2 ORDER BY s.id LIMIT $3)
			UNION ALL
			(SELECT c.id FROM subscription_changes c WHERE c.app_id = $1 AND c.id > $2 ORDER BY c.id LIMIT $3)
			UNION ALL
			(SELECT r.holder_id FROM feature_references r WHERE r.app_id = $1 AND r.holder_id > $2 ORDER BY r.holder_id LIMIT $3)
		) h
		ORDER BY h.id OFFSET $3 - 1 LIMIT 1`)},

	{verifyCheck{holds: ruleAdjustments, statement: pg.Declare("verify adjustments", `
		SELECT w.id, w.identity, 'the adjustment ' || a.entry_id || ' is a ' || coalesce(j.kind, 'missing entry') || ' in the journal'
		FROM adjustments a
		LEFT JOIN journal j ON j.app_id = $1 AND j.id = a.entry_id
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		WHERE a.app_id = $1 AND a.entry_id > $2 AND a.entry_id <= $4 AND j.kind IS DISTINCT FROM 'adjustment'
		LIMIT $3`)},
		pg.Declare("verify ranges of adjustments", `
		SELECT a.entry_id FROM adjustments a WHERE a.app_id = $1 AND a.entry_id > $2
		ORDER BY a.entry_id OFFSET $3 - 1 LIMIT 1`)},

	verifyTransferRecords,
}

// check runs what a pass checks beyond its wallets: the feed, and in full also the rest.
func (p *verifyPass) check(ctx context.Context) error {
	if err := p.checkFeed(ctx); err != nil || !p.options.all() {
		return err
	}
	if err := p.checkOwners(ctx); err != nil {
		return err
	}
	if err := p.checkPacked(ctx); err != nil {
		return err
	}
	if _, err := p.finished(ctx, ruleLocks, p.read(ctx, p.checkLocks)); err != nil {
		return err
	}
	for _, check := range verifyCatalogChecks {
		if _, _, err := p.differences(ctx, check, maxDifferences+1); err != nil {
			return err
		}
	}
	for _, check := range verifyPagedChecks {
		if err := p.checkPages(ctx, check); err != nil {
			return err
		}
	}
	return nil
}

// lastID is at the end of the last range.
var lastID = ids.ID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// checkPages runs a check on every range. A range that did not finish is noted, and
// the next one is checked.
func (p *verifyPass) checkPages(ctx context.Context, check pagedCheck) error {
	for after := (ids.ID{}); after != lastID; {
		upto := lastID
		ends, err := list(ctx, p, check.ends, pgx.RowTo[ids.ID], after, p.options.Page)
		if len(ends) == 1 {
			upto = ends[0]
		}
		if finished, err := p.finished(ctx, check.holds, err); !finished {
			return err
		}
		if _, _, err := p.differences(ctx, check.verifyCheck, after, maxDifferences+1, upto); err != nil {
			return err
		}
		after = upto
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
	// Of wallets whose batch did not finish no event was read.
	readAll := !slices.Contains(p.result.Unfinished, ruleChain)
	var found []Difference
	for id, f := range p.catalog.features {
		switch {
		case p.catalog.used[id] && !f.locked:
			found = append(found, Difference{Check: ruleLocks, Detail: "feature " + f.key + " has charged events, but its deduplication can still be changed"})
		case readAll && !p.catalog.used[id] && before[id]:
			found = append(found, Difference{Check: ruleLocks, Detail: "feature " + f.key + " has no charged event, but its deduplication is fixed"})
		}
	}
	for _, d := range found {
		p.report(d)
	}
	return nil
}
