package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

// Alert is a billing problem that needs a person's attention.
type Alert struct {
	ID ids.ID
	billing.Alert
	Identity   string // empty when it concerns no identity
	CreatedAt  int64
	ResolvedAt int64 // zero while it is open
}

var (
	insertAlert = pg.Declare("insert alert", `
		INSERT INTO alerts (app_id, kind, object_id, id, org_id, wallet_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (app_id, kind, object_id) DO NOTHING`)

	reopenAlert = pg.Declare("reopen alert", `
		UPDATE alerts SET id = $4, resolved_at = NULL, created_at = $5 WHERE app_id = $1 AND kind = $2 AND object_id = $3 AND resolved_at IS NOT NULL`)

	listAlerts = pg.Declare("list alerts", `
		SELECT l.id, l.kind, l.object_id, w.identity, l.created_at, l.resolved_at
		FROM alerts l LEFT JOIN wallets w ON w.app_id = $1 AND w.id = l.wallet_id
		WHERE l.app_id = $1 AND l.id < $2 AND ($3 OR l.resolved_at IS NULL)
		ORDER BY l.id DESC LIMIT $4`)

	resolveAlert = pg.Declare("resolve alert", `
		UPDATE alerts SET resolved_at = $3 WHERE app_id = $1 AND id = $2 AND resolved_at IS NULL RETURNING kind, object_id`)
)

// raiseAlerts stores alerts of a wallet.
func (tx appTx) raiseAlerts(ctx context.Context, walletID ids.ID, alerts []billing.Alert, now int64) error {
	for _, alert := range alerts {
		if err := tx.raise(ctx, walletID, alert, alert.Kind.Recurs(), now); err != nil {
			return err
		}
	}
	return nil
}

// raise stores an alert, once for its kind and object. With again, a resolved one becomes
// the newest that is open.
func (tx appTx) raise(ctx context.Context, walletID ids.ID, alert billing.Alert, again bool, now int64) error {
	id := ids.New()
	added, err := tx.ExecAny(ctx, insertAlert, alert.Kind, alert.ObjectID, id, tx.Scope.OrgID, pg.OrNull(walletID), now)
	if err == nil && added == 0 && again {
		_, err = tx.ExecAny(ctx, reopenAlert, alert.Kind, alert.ObjectID, id, now)
	}
	return err
}

// Raise stores an alert that concerns no identity. With again, a resolved one is opened.
func (a App) Raise(ctx context.Context, alert billing.Alert, again bool, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		return tx.raise(ctx, ids.ID{}, alert, again, now)
	})
}

// Alerts lists alerts, newest first: the open ones, or all including resolved ones. It
// reports whether there are more.
func (a App) Alerts(ctx context.Context, p pg.Page, all bool) (list []Alert, more bool, err error) {
	list, err = pg.ListAll(ctx, a.app, listAlerts, func(row pgx.CollectableRow) (l Alert, err error) {
		var identity *string
		var resolved *int64
		err = row.Scan(&l.ID, &l.Kind, &l.ObjectID, &identity, &l.CreatedAt, &resolved)
		l.Identity, l.ResolvedAt = pg.OrZero(identity), pg.OrZero(resolved)
		return l, err
	}, p.Start(), all, p.OneMore())
	list, more = pg.Cut(list, p.Limit)
	return list, more, err
}

// ResolveAlert marks an alert as resolved. One that is already resolved is not found,
// so the audit log names the first resolver.
func (a App) ResolveAlert(ctx context.Context, id ids.ID, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		about, err := pg.Find(ctx, tx, resolveAlert, pgx.RowToStructByPos[billing.Alert], fault.New(fault.PathNotFound), id, now)
		if err != nil {
			return err
		}
		return tx.Audit(ctx, "alert.resolve", id.Format(ids.Alert), nil, audit.Fields{"about": about.ObjectID, "kind": string(about.Kind)})
	})
}
