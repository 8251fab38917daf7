package verify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

const (
	// mixedReleases is how long after an application's first notification a release may
	// still serve it that makes none. Entries of that time need not be announced.
	mixedReleases = 7 * 24 * time.Hour
	// formAge is how long before its transaction an entry may have got its id: with the form
	// of an adjustment.
	formAge = 24 * time.Hour
	// announcedWithin is how long after its id an entry usually is announced. What is not
	// found there is looked up in its wallet.
	announcedWithin = time.Hour
)

// expected is what has to be announced of the entry j. A debt begins with an entry that
// takes at least as much as is owed after it, and ends with one that leaves less than it
// brought.
const expected = `
	SELECT 'entry' AS type, 'deltaNanocredits' AS field, j.delta_nanocredits::text AS value WHERE j.kind = ANY ($3)
	UNION ALL
	SELECT 'debt.incurred', 'debtNanocredits', j.debt_after::text
	WHERE j.delta_nanocredits < 0 AND j.debt_after > 0 AND j.debt_after <= -j.delta_nanocredits
	UNION ALL
	SELECT 'debt.cleared', 'debtNanocredits', '0'
	WHERE j.delta_nanocredits > 0 AND j.debt_after = 0 AND j.balance_after < j.delta_nanocredits`

// announces compares the notification n with what is expected.
const announces = `n.wallet_id = j.wallet_id AND n.created_at = j.created_at
	AND (n.type = x.type OR x.type = 'entry' AND n.type = ANY ($4))
	AND n.data ->> 'balanceNanocredits' = j.balance_after::text AND n.data ->> x.field = x.value`

var (
	verifyEntryRange = pg.Declare("verify range of announced entries", `
		SELECT j.id FROM journal j WHERE j.app_id = $1 AND j.id > $2 ORDER BY j.id OFFSET $3 - 1 LIMIT 1`)

	verifyAnnouncedRange = pg.Declare("verify announcements of a range", `
		SELECT DISTINCT j.id
		FROM journal j CROSS JOIN LATERAL (`+expected+`) x
		WHERE j.app_id = $1 AND j.id > $2 AND j.id <= $5 AND NOT EXISTS (
			SELECT 1 FROM notifications n WHERE n.app_id = $1 AND n.id >= $6 AND n.id < $7 AND `+announces+`)
		LIMIT $8`)

	verifyAnnouncedLate = pg.Declare("verify late announcements", `
		SELECT w.id, w.identity, CASE x.type
				WHEN 'entry' THEN 'the ' || j.kind || ' of ' || j.delta_nanocredits || ' nanocredits in entry ' || j.seq
				WHEN 'debt.incurred' THEN 'the debt of ' || j.debt_after || ' nanocredits that begins with entry ' || j.seq
				ELSE 'the end of the debt with entry ' || j.seq END || ' was never announced'
		FROM unnest($2::uuid[]) AS t (id) JOIN journal j ON j.app_id = $1 AND j.id = t.id
		CROSS JOIN LATERAL (`+expected+`) x
		LEFT JOIN wallets w ON w.app_id = $1 AND w.id = j.wallet_id
		WHERE NOT EXISTS (SELECT 1 FROM notifications n WHERE n.app_id = $1 AND `+announces+`)
		LIMIT $5`)
)

// checkAnnouncements finds entries that no notification announces. Both are written in
// one transaction.
func (p *verifyPass) checkAnnouncements(ctx context.Context, state feedState) error {
	if state.First.IsZero() {
		return nil
	}
	begin := pg.TimeOfID(state.First) + mixedReleases.Milliseconds()
	if !p.options.all() && !state.VerifiedID.IsZero() {
		begin = max(begin, pg.TimeOfID(state.VerifiedID)-formAge.Milliseconds())
	}
	kinds, types := ledger.AnnouncedKinds(), ledger.EntryTypes()
	for after := pg.IDAt(begin); after != lastID; {
		upto := lastID
		var unmatched []ids.ID
		err := p.read(ctx, func(ctx context.Context, tx appTx) error {
			upto = lastID
			ends, err := pg.Collect(ctx, tx, verifyEntryRange, pgx.RowTo[ids.ID], after, p.options.Page)
			if err != nil {
				return err
			}
			before := lastID
			if len(ends) == 1 {
				upto = ends[0]
				before = pg.IDAt(pg.TimeOfID(upto) + announcedWithin.Milliseconds())
			}
			unmatched, err = pg.Collect(ctx, tx, verifyAnnouncedRange, pgx.RowTo[ids.ID], after, kinds, types,
				upto, pg.IDAt(pg.TimeOfID(after)), before, p.options.Page)
			return err
		})
		if finished, err := p.finished(ctx, ruleAnnounced, err); !finished {
			return err
		}
		if len(unmatched) > 0 {
			late := verifyCheck{holds: ruleAnnounced, statement: verifyAnnouncedLate}
			if _, _, err := p.differences(ctx, late, unmatched, kinds, types, maxDifferences+1); err != nil {
				return err
			}
		}
		after = upto
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}
