package pg

import (
	"context"
	"fmt"
)

// SetArchived stores when the transaction's application was archived, or 0 for an active
// one, and reports whether that is a change.
func (tx *Tx) SetArchived(ctx context.Context, at int64) (changed bool, err error) {
	tag, err := tx.Conn.Exec(ctx, `
		UPDATE applications SET archived_at = $3 WHERE org_id = $1 AND id = $2 AND (archived_at IS NULL) = ($3::bigint IS NOT NULL)`,
		tx.Scope.OrgID, tx.Scope.AppID, OrNull(at))
	if err != nil {
		return false, fmt.Errorf("store: archive application: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
