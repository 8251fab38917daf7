package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/tenancy/audit"
)

// Audit records an action in this transaction; without an actor it does nothing. It is
// the last statement: the head of the log is locked until the commit, and a transaction
// that waits for it must not hold locks that others need.
func (tx *Tx) Audit(ctx context.Context, action, target string, before, after audit.Fields) error {
	if tx.By.IsZero() {
		return nil
	}
	return AppendAudit(ctx, tx.Conn, tx.Scope.OrgID, tx.By, audit.Action{
		AppID: tx.Scope.AppID, Action: action, Target: target, Before: before, After: after,
	})
}

const (
	// The update changes nothing; it locks the row, also one that is there already.
	lockAuditHead = `
		INSERT INTO audit_heads (org_id, number, seal) VALUES ($1, 0, $2)
		ON CONFLICT (org_id) DO UPDATE SET number = audit_heads.number RETURNING number, seal`

	insertAuditEntry = `
		WITH moved AS (UPDATE audit_heads SET number = $2, seal = $13 WHERE org_id = $1)
		INSERT INTO audit_entries (org_id, number, at, user_id, actor, address, request_id, application, action, target, before, after, seal)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
)

// AppendAudit adds one entry behind the head, which it holds until the transaction
// ends: entries are numbered in the order in which they commit.
func AppendAudit(ctx context.Context, conn *pgx.Conn, org ids.ID, by audit.Actor, d audit.Action) error {
	var head audit.Head
	var seal []byte
	if err := conn.QueryRow(ctx, lockAuditHead, org, head.Seal[:]).Scan(&head.Number, &seal); err != nil {
		return fmt.Errorf("store: lock audit head: %w", err)
	}
	copy(head.Seal[:], seal)
	e := audit.Next(org, head, by, d)
	_, err := conn.Exec(ctx, insertAuditEntry, org, e.Number, e.At, OrNull(e.UserID), e.Name, e.Address,
		OrNull(e.RequestID), OrNull(e.AppID), e.Action, e.Target, e.Before, e.After, e.Seal[:])
	if err != nil {
		return fmt.Errorf("store: insert audit entry: %w", err)
	}
	return nil
}
