package people

import (
	"context"
	"fmt"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Archive makes the organization read-only. Its applications have to be archived before.
func (o Org) Archive(ctx context.Context, now int64) error {
	return o.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		row, err := o.lock(ctx, tx)
		if err != nil {
			return err
		}
		err = o.auditActive(ctx, tx, audit.Action{
			Action: "organization.archive", Target: o.id.Format(ids.Organization), Before: audit.Fields{"name": row.Name},
		})
		if err != nil {
			return err
		}
		// Counted behind the head of the audit log: a new application is before it or refused.
		var active int64
		err = tx.conn.QueryRow(ctx, `SELECT count(*) FROM applications WHERE org_id = $1 AND archived_at IS NULL`, o.id).Scan(&active)
		if err != nil {
			return fmt.Errorf("store: active applications: %w", err)
		}
		if err := (tenancy.Organization{}).CheckArchive(active); err != nil {
			return err
		}
		return o.setArchived(ctx, tx, now)
	})
}

// Restore makes an archived organization active again. Its applications stay archived.
func (o Org) Restore(ctx context.Context) error {
	return o.handles.control(ctx, func(ctx context.Context, tx peopleTx) error {
		row, err := o.lock(ctx, tx)
		if err != nil || row.ArchivedAt == 0 {
			return err
		}
		if err := o.setArchived(ctx, tx, 0); err != nil {
			return err
		}
		return o.auditActive(ctx, tx, audit.Action{
			Action: "organization.restore", Target: o.id.Format(ids.Organization), After: audit.Fields{"name": row.Name},
		})
	})
}

func (o Org) setArchived(ctx context.Context, tx peopleTx, at int64) error {
	_, err := pg.ExecSQL(ctx, tx.conn, "archive organization", `UPDATE organizations SET archived_at = $2 WHERE id = $1`, o.id, pg.OrNull(at))
	return err
}
