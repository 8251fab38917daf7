package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/tenancy/audit"
)

// By is the same door for a person or an API key: what they change through it is written
// into the organization's audit log, in the same transaction.
func (a App) By(actor audit.Actor) App {
	a.by = actor
	return a
}

// By is as for an application.
func (o Org) By(actor audit.Actor) Org {
	o.by = actor
	return o
}

// CommandLine is the actor of commands, which the operator of the installation runs.
func CommandLine(now int64) audit.Actor { return audit.Actor{Name: "command line", At: now} }

// audit records an action in this transaction; without an actor it does nothing. It is
// the last statement: the head of the log is locked until the commit, and a transaction
// that waits for it must not hold locks that others need.
func (tx appTx) audit(ctx context.Context, action, target string, before, after audit.Fields) error {
	if tx.by.IsZero() {
		return nil
	}
	return appendAudit(ctx, tx.conn, tx.scope.OrgID, tx.by, audit.Action{
		AppID: tx.scope.AppID, Action: action, Target: target, Before: before, After: after,
	})
}

// audit is as in a transaction of an application.
func (o Org) audit(ctx context.Context, tx peopleTx, d audit.Action) error {
	if o.by.IsZero() {
		return nil
	}
	return appendAudit(ctx, tx.conn, o.id, o.by, d)
}

// auditPeople is as audit, in a transaction on the rows of people.
func (o Org) auditPeople(ctx context.Context, tx pgx.Tx, d audit.Action) error {
	if o.by.IsZero() {
		return nil
	}
	return appendAudit(ctx, tx.Conn(), o.id, o.by, d)
}

// Two round trips while the head is locked: writes of one organization wait for it.
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

// appendAudit adds one entry behind the head, which it holds until the transaction
// ends: entries are numbered in the order in which they commit.
func appendAudit(ctx context.Context, conn *pgx.Conn, org ids.ID, by audit.Actor, d audit.Action) error {
	var head audit.Head
	var seal []byte
	if err := conn.QueryRow(ctx, lockAuditHead, org, head.Seal[:]).Scan(&head.Number, &seal); err != nil {
		return fmt.Errorf("store: lock audit head: %w", err)
	}
	copy(head.Seal[:], seal)
	e := audit.Next(org, head, by, d)
	_, err := conn.Exec(ctx, insertAuditEntry, org, e.Number, e.At, orNull(e.UserID), e.Name, e.Address,
		orNull(e.RequestID), orNull(e.AppID), e.Action, e.Target, e.Before, e.After, e.Seal[:])
	if err != nil {
		return fmt.Errorf("store: insert audit entry: %w", err)
	}
	return nil
}

// AuditPage asks for entries that are older than Before, which fit the filter.
type AuditPage struct {
	Before int64  // a number; zero asks for the newest
	Action string // the beginning of an action, such as "key."
	Actor  string // the whole name of who acted; audit.Keys for all API keys
	Limit  int
}

const auditColumns = `number, at, user_id, actor, address, request_id, application, action, target, before, after, seal`

// AuditLog lists what was done by hand, newest first, and reports whether there
// is more.
func (o Org) AuditLog(ctx context.Context, p AuditPage) (list []audit.Entry, more bool, err error) {
	rows, err := o.store.pool.Query(ctx, `
		SELECT `+auditColumns+`
		FROM audit_entries
		WHERE org_id = $1 AND ($2 = 0 OR number < $2) AND starts_with(action, $3) AND ($4 = '' OR actor = $4 OR $4 = $6 AND starts_with(actor, $6))
		ORDER BY number DESC LIMIT $5`, o.id, p.Before, p.Action, p.Actor, p.Limit+1, audit.Keys)
	if err != nil {
		return nil, false, fmt.Errorf("store: audit log: %w", err)
	}
	list, err = pgx.CollectRows(rows, o.readAudit)
	if err != nil {
		return nil, false, fmt.Errorf("store: audit log: %w", err)
	}
	list, more = cut(list, p.Limit)
	return list, more, nil
}

func (o Org) readAudit(row pgx.CollectableRow) (audit.Entry, error) {
	e := audit.Entry{OrgID: o.id}
	var user, request, application *ids.ID
	var seal []byte
	err := row.Scan(&e.Number, &e.At, &user, &e.Name, &e.Address, &request, &application, &e.Action, &e.Target, &e.Before, &e.After, &seal)
	e.UserID, e.RequestID, e.AppID = orZero(user), orZero(request), orZero(application)
	copy(e.Seal[:], seal)
	return e, err
}

// AuditVerification is what following an organization's log has found.
type AuditVerification struct {
	Head        audit.Head
	Differences []string
}

// auditStride is how many entries are read at a time.
const auditStride = 10_000

// VerifyAudit follows the organization's log from its first entry to its head. It
// reads one moment, so it may run beside a server at work.
func (o Org) VerifyAudit(ctx context.Context) (v AuditVerification, err error) {
	tx, err := o.store.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return v, fmt.Errorf("store: verify audit: %w", err)
	}
	defer func() { err = errors.Join(err, tx.Rollback(context.WithoutCancel(ctx))) }()
	var seal []byte
	err = tx.QueryRow(ctx, `SELECT number, seal FROM audit_heads WHERE org_id = $1`, o.id).Scan(&v.Head.Number, &seal)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return v, fmt.Errorf("store: audit head: %w", err)
	}
	copy(v.Head.Seal[:], seal)
	chain := audit.Chain{OrgID: o.id}
	note := func(difference string) {
		if difference != "" && len(v.Differences) < maxDifferences {
			v.Differences = append(v.Differences, difference)
		}
	}
	for last := int64(0); ; {
		rows, err := tx.Query(ctx, `
			SELECT `+auditColumns+` FROM audit_entries
			WHERE org_id = $1 AND number > $2 ORDER BY number LIMIT $3`, o.id, last, auditStride)
		if err != nil {
			return v, fmt.Errorf("store: follow audit: %w", err)
		}
		entries, err := pgx.CollectRows(rows, o.readAudit)
		if err != nil {
			return v, fmt.Errorf("store: follow audit: %w", err)
		}
		for _, e := range entries {
			note(chain.Follow(e))
			last = e.Number
		}
		if len(entries) < auditStride {
			break
		}
	}
	note(chain.End(v.Head))
	return v, nil
}
