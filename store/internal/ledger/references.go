package ledger

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
)

var (
	deleteReferences = pg.Declare("delete references", `
		DELETE FROM feature_references WHERE app_id = $1 AND holder_id = $2`)

	insertReferences = pg.Declare("insert references", `
		INSERT INTO feature_references (app_id, org_id, holder_id, feature_id, multiplied)
		SELECT s.app_id, s.org_id, $2, t.feature_id, t.multiplied
		FROM app_state s CROSS JOIN unnest($3::uuid[], $4::boolean[]) AS t (feature_id, multiplied)
		WHERE s.app_id = $1`)
)

// Refer makes the holder, a plan, a subscription or a change, name exactly the
// features of these terms.
func (tx Tx) Refer(ctx context.Context, holder ids.ID, terms ...metering.Terms) error {
	multiplied := make(map[ids.ID]bool)
	for _, t := range terms {
		for _, l := range t.Limits {
			if !multiplied[l.FeatureID] {
				multiplied[l.FeatureID] = false
			}
		}
		for _, m := range t.Multipliers {
			multiplied[m.FeatureID] = true
		}
	}
	var named []ids.ID
	var inMultiplier []bool
	for id, m := range multiplied {
		named = append(named, id)
		inMultiplier = append(inMultiplier, m)
	}
	if _, err := tx.ExecAny(ctx, deleteReferences, holder); err != nil {
		return err
	}
	if len(named) == 0 {
		return nil
	}
	return tx.Exec(ctx, insertReferences, int64(len(named)), holder, named, inMultiplier)
}
