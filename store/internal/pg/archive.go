package pg

import (
	"context"
	"fmt"

	"purser/fault"
)

// HoldActive refuses an archived application, and keeps an active one so until the
// transaction ends: LockToArchive waits for it.
func (tx *Tx) HoldActive(ctx context.Context) error {
	archived, err := tx.readArchived(ctx, "FOR SHARE")
	if err == nil && archived {
		err = fault.New(fault.Archived)
	}
	return err
}

// LockToArchive waits for the transactions that hold the application active: the next
// statement sees what they committed.
func (tx *Tx) LockToArchive(ctx context.Context) error {
	_, err := tx.readArchived(ctx, "FOR NO KEY UPDATE")
	return err
}

func (tx *Tx) readArchived(ctx context.Context, lock string) (archived bool, err error) {
	err = tx.Conn.QueryRow(ctx, `SELECT archived_at IS NOT NULL FROM applications WHERE org_id = $1 AND id = $2 `+lock,
		tx.Scope.OrgID, tx.Scope.AppID).Scan(&archived)
	if err != nil {
		return false, fmt.Errorf("store: lock application: %w", err)
	}
	return archived, nil
}

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
