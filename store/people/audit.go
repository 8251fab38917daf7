package people

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

// By is as for an application.
func (o Org) By(actor audit.Actor) Org {
	o.by = actor
	return o
}

// CommandLine is the actor of commands, which the operator of the installation runs.
func CommandLine(now int64) audit.Actor { return audit.Actor{Name: "command line", At: now} }

// audit is as in a transaction of an application.
func (o Org) audit(ctx context.Context, tx peopleTx, d audit.Action) error {
	if o.by.IsZero() {
		return nil
	}
	return pg.AppendAudit(ctx, tx.conn, o.id, o.by, d)
}

// auditArchived is as audit, and refuses an actor whose access has changed meanwhile.
func (o Org) auditArchived(ctx context.Context, tx peopleTx, d audit.Action) error {
	if o.by.IsZero() {
		return nil
	}
	return pg.AppendArchived(ctx, tx.conn, o.id, o.by, d)
}

// auditActive is as auditArchived, and refuses a change of what is archived. What takes access
// away is never refused.
func (o Org) auditActive(ctx context.Context, tx peopleTx, d audit.Action) error {
	if o.by.IsZero() {
		return nil
	}
	return pg.AppendActive(ctx, tx.conn, o.id, o.by, d)
}

// auditPeople is as audit, in a transaction on the rows of people.
func (o Org) auditPeople(ctx context.Context, tx pgx.Tx, d audit.Action) error {
	if o.by.IsZero() {
		return nil
	}
	return pg.AppendAudit(ctx, tx.Conn(), o.id, o.by, d)
}

// AuditPage asks for entries that are older than Before, which fit the filter.
type AuditPage struct {
	Before int64  // a number; zero asks for the newest
	Action string // the beginning of an action, such as "key."
	Actor  string // the whole name of who acted; audit.Keys for all API keys
	Limit  int
}

const auditColumns = `number, at, user_id, actor, address, request_id, application, action, target, before, after, seal`

// AuditLog lists what people, API keys and the command line changed, newest first. next is
// where the list continues; zero at its end. A filtered page may be shorter than its limit
// and continue.
func (o Org) AuditLog(ctx context.Context, p AuditPage) (list []audit.Entry, next int64, err error) {
	newest, err := pg.FindSQL(ctx, o.handles.pool, "newest audit entry", pgx.RowTo[int64], `SELECT coalesce(max(number), 0) FROM audit_entries WHERE org_id = $1`, o.id)
	if err != nil {
		return nil, 0, err
	}
	if p.Before == 0 || p.Before > newest {
		p.Before = newest + 1
	}
	// The numbers have no gap, so a range of them bounds what is read.
	start := max(p.Before-auditStride, 1)
	list, err = pg.CollectSQL(ctx, o.handles.pool, "audit log", o.readAudit, `
		SELECT `+auditColumns+`
		FROM audit_entries
		WHERE org_id = $1 AND number < $2 AND number >= $7 AND starts_with(action, $3) AND ($4 = '' OR actor = $4 OR $4 = $6 AND starts_with(actor, $6))
		ORDER BY number DESC LIMIT $5`, o.id, p.Before, p.Action, p.Actor, p.Limit+1, audit.Keys, start)
	if err != nil {
		return nil, 0, err
	}
	list, more := pg.Cut(list, p.Limit)
	switch {
	case more:
		next = list[len(list)-1].Number
	case start > 1:
		next = start
	}
	return list, next, nil
}

func (o Org) readAudit(row pgx.CollectableRow) (audit.Entry, error) {
	e := audit.Entry{OrgID: o.id}
	var user, request, application *ids.ID
	var seal []byte
	err := row.Scan(&e.Number, &e.At, &user, &e.Name, &e.Address, &request, &application, &e.Action, &e.Target, &e.Before, &e.After, &seal)
	e.UserID, e.RequestID, e.AppID = pg.OrZero(user), pg.OrZero(request), pg.OrZero(application)
	copy(e.Seal[:], seal)
	return e, err
}

// AuditVerification is what following an organization's log has found.
type AuditVerification struct {
	Head        audit.Head
	Differences []string
}

// maxAuditDifferences is how many differences of a log are listed.
const maxAuditDifferences = 100

const (
	// auditStride is how many entries one statement looks through.
	auditStride = 10_000
	// auditPortion is how many entries are verified at once: each may have 60 KB.
	auditPortion = 250
)

// VerifyAudit follows the organization's log from its first entry to its head. It
// reads one moment, so it may run beside a server at work.
func (o Org) VerifyAudit(ctx context.Context) (v AuditVerification, err error) {
	tx, err := o.handles.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
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
		if difference != "" && len(v.Differences) < maxAuditDifferences {
			v.Differences = append(v.Differences, difference)
		}
	}
	for last := int64(0); ; {
		entries, err := pg.CollectSQL(ctx, tx, "follow audit", o.readAudit, `
			SELECT `+auditColumns+` FROM audit_entries
			WHERE org_id = $1 AND number > $2 ORDER BY number LIMIT $3`, o.id, last, auditPortion)
		if err != nil {
			return v, err
		}
		for _, e := range entries {
			note(chain.Follow(e))
			last = e.Number
		}
		if len(entries) < auditPortion {
			break
		}
	}
	note(chain.End(v.Head))
	return v, nil
}
