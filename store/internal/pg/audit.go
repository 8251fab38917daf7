package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/fault"
	"purser/ids"
	"purser/tenancy/audit"
)

// Audit records an action in this transaction, and refuses it in an archived
// application; without an actor it does nothing. It is the last statement: the head of
// the log is locked until the commit, and a transaction that waits for it must not hold
// locks that others need.
func (tx *Tx) Audit(ctx context.Context, action, target string, before, after audit.Fields) error {
	return tx.audit(ctx, AppendActive, action, target, before, after)
}

// AuditRemoval is Audit for what takes access away: that is also done in an archived
// application.
func (tx *Tx) AuditRemoval(ctx context.Context, action, target string, before, after audit.Fields) error {
	return tx.audit(ctx, AppendAudit, action, target, before, after)
}

type appender func(context.Context, *pgx.Conn, ids.ID, audit.Actor, audit.Action) error

func (tx *Tx) audit(ctx context.Context, add appender, action, target string, before, after audit.Fields) error {
	if tx.By.IsZero() {
		return nil
	}
	return add(ctx, tx.Conn, tx.Scope.OrgID, tx.By, audit.Action{
		AppID: tx.Scope.AppID, Action: action, Target: target, Before: before, After: after,
	})
}

const (
	// The update changes nothing; it locks the row, also one that is there already.
	lockAuditHead = `
		INSERT INTO audit_heads (org_id, number, seal) VALUES ($1, 0, $2)
		ON CONFLICT (org_id) DO UPDATE SET number = audit_heads.number RETURNING number, seal`

	// AwaitAuditHead locks a head. Run by itself, it waits for the transaction that holds it.
	AwaitAuditHead = `SELECT FROM audit_heads WHERE org_id = $1 FOR NO KEY UPDATE`

	tryAuditHeads = `
		SELECT org_id FROM audit_heads WHERE org_id = ANY ($1) ORDER BY org_id FOR NO KEY UPDATE SKIP LOCKED`

	selectBusyHead = `
		SELECT org_id FROM audit_heads WHERE org_id = ANY ($1) AND org_id <> ALL ($2) LIMIT 1`

	// The statement sees what was committed before the head was locked: archiving, and the
	// removal or change of a member, append to the same log.
	insertAuditEntry = `
		WITH moved AS (UPDATE audit_heads SET number = $2, seal = $13 WHERE org_id = $1)
		INSERT INTO audit_entries (org_id, number, at, user_id, actor, address, request_id, application, action, target, before, after, seal)
		SELECT $1::uuid, $2::bigint, $3::bigint, $4::uuid, $5::text, $6::text, $7::uuid, $8::uuid, $9::text, $10::text, $11::text, $12::text, $13::bytea
		WHERE ($14 OR NOT EXISTS (SELECT FROM organizations o WHERE o.id = $1 AND o.archived_at IS NOT NULL)
				AND NOT EXISTS (SELECT FROM applications a WHERE a.org_id = $1 AND a.id = $8 AND a.archived_at IS NOT NULL))
			AND ($17 OR $4::uuid IS NULL OR EXISTS (SELECT FROM members m WHERE m.org_id = $1 AND m.user_id = $4 AND ($15 = '' OR m.role = $15 AND m.permissions @> $16::text[])))`

	selectHasAccess = `
		SELECT $2::uuid IS NULL OR EXISTS (
			SELECT FROM members m WHERE m.org_id = $1 AND m.user_id = $2 AND ($3 = '' OR m.role = $3 AND m.permissions @> $4::text[]))`
)

// AuditHeadBusy says that another transaction holds the head of an organization's log.
type AuditHeadBusy struct{ Org ids.ID }

func (AuditHeadBusy) Error() string { return "store: the audit log is in use" }

// TryAuditHeads locks the heads of several logs without waiting. With AuditHeadBusy, the
// transaction has to be rolled back: waiting with it would keep the other logs from being
// written.
func TryAuditHeads(ctx context.Context, conn *pgx.Conn, orgs []ids.ID) error {
	rows, _ := conn.Query(ctx, tryAuditHeads, orgs) // CollectRows returns its error
	held, err := pgx.CollectRows(rows, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("store: lock audit heads: %w", err)
	}
	rows, _ = conn.Query(ctx, selectBusyHead, orgs, append([]ids.ID{}, held...))
	busy, err := pgx.CollectRows(rows, pgx.RowTo[ids.ID])
	if err != nil {
		return fmt.Errorf("store: select busy audit head: %w", err)
	}
	if len(busy) > 0 {
		return AuditHeadBusy{busy[0]}
	}
	return nil
}

// AppendAudit adds one entry behind the head, which it holds until the transaction
// ends: entries are numbered in the order in which they commit.
func AppendAudit(ctx context.Context, conn *pgx.Conn, org ids.ID, by audit.Actor, d audit.Action) error {
	return appendAudit(ctx, conn, org, by, d, true, true)
}

// AppendArchived is AppendAudit for what a member may no longer do who was removed, or whose
// access was changed, while the request was under way.
func AppendArchived(ctx context.Context, conn *pgx.Conn, org ids.ID, by audit.Actor, d audit.Action) error {
	return appendAudit(ctx, conn, org, by, d, true, false)
}

// AppendActive is AppendArchived for what an archived organization or application refuses.
func AppendActive(ctx context.Context, conn *pgx.Conn, org ids.ID, by audit.Actor, d audit.Action) error {
	return appendAudit(ctx, conn, org, by, d, false, false)
}

func appendAudit(ctx context.Context, conn *pgx.Conn, org ids.ID, by audit.Actor, d audit.Action, archived, anyone bool) error {
	var head audit.Head
	var seal []byte
	if err := conn.QueryRow(ctx, lockAuditHead, org, head.Seal[:]).Scan(&head.Number, &seal); err != nil {
		return fmt.Errorf("store: lock audit head: %w", err)
	}
	copy(head.Seal[:], seal)
	e := audit.Next(org, head, by, d)
	tag, err := conn.Exec(ctx, insertAuditEntry, org, e.Number, e.At, OrNull(e.UserID), e.Name, e.Address,
		OrNull(e.RequestID), OrNull(e.AppID), e.Action, e.Target, e.Before, e.After, e.Seal[:], archived, string(by.Access.Role), by.Access.Custom.Names(), anyone)
	if err != nil {
		return fmt.Errorf("store: insert audit entry: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	var hasAccess bool
	if err := conn.QueryRow(ctx, selectHasAccess, org, OrNull(e.UserID), string(by.Access.Role), by.Access.Custom.Names()).Scan(&hasAccess); err != nil {
		return fmt.Errorf("store: select member: %w", err)
	}
	if !hasAccess {
		return fault.Newf(fault.PermissionDenied, "Your access to this organization was removed or changed. Reload the page.")
	}
	return fault.New(fault.Archived)
}
