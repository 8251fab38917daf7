package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/tenancy/audit"
)

// Alert is something that a person should look at.
type Alert struct {
	ID ids.ID
	billing.Alert
	Identity   string // empty when it is about no identity
	CreatedAt  int64
	ResolvedAt int64 // zero until somebody has looked
}

var (
	insertAlert = declare("insert alert", `
		INSERT INTO alerts (app_id, kind, object_id, id, org_id, wallet_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (app_id, kind, object_id) DO NOTHING`)

	listAlerts = declare("list alerts", `
		SELECT l.id, l.kind, l.object_id, w.identity, l.created_at, l.resolved_at
		FROM alerts l LEFT JOIN wallets w ON w.app_id = $1 AND w.id = l.wallet_id
		WHERE l.app_id = $1 AND l.id < $2 AND ($3 OR l.resolved_at IS NULL)
		ORDER BY l.id DESC LIMIT $4`)

	resolveAlert = declare("resolve alert", `
		UPDATE alerts SET resolved_at = $3 WHERE app_id = $1 AND id = $2 AND resolved_at IS NULL RETURNING kind, object_id`)
)

// raise notes what a person should look at, once for each object.
func (tx appTx) raise(ctx context.Context, walletID ids.ID, alerts []billing.Alert, now int64) error {
	for _, alert := range alerts {
		if _, err := tx.execAny(ctx, insertAlert, alert.Kind, alert.ObjectID, ids.New(), tx.scope.OrgID, orNull(walletID), now); err != nil {
			return err
		}
	}
	return nil
}

// Raise notes something about no identity that a person should look at.
func (a App) Raise(ctx context.Context, alert billing.Alert, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		return tx.raise(ctx, ids.ID{}, []billing.Alert{alert}, now)
	})
}

// Alerts lists what a person should look at, newest first, with what was looked at
// when all are asked for. It reports whether there are more.
func (a App) Alerts(ctx context.Context, p Page, all bool) (list []Alert, more bool, err error) {
	err = a.transact(ctx, func(ctx context.Context, tx appTx) error {
		list, err = collect(ctx, tx, listAlerts, func(row pgx.CollectableRow) (l Alert, err error) {
			var identity *string
			var resolved *int64
			err = row.Scan(&l.ID, &l.Kind, &l.ObjectID, &identity, &l.CreatedAt, &resolved)
			l.Identity, l.ResolvedAt = orZero(identity), orZero(resolved)
			return l, err
		}, p.before(), all, p.oneMore())
		return err
	})
	list, more = cut(list, p.Limit)
	return list, more, err
}

// ResolveAlert notes that somebody has looked. One that is resolved is not found:
// who was first stays in the log.
func (a App) ResolveAlert(ctx context.Context, id ids.ID, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		about, err := find(ctx, tx, resolveAlert, pgx.RowToStructByPos[billing.Alert], fault.New(fault.PathNotFound), id, now)
		if err != nil {
			return err
		}
		return tx.audit(ctx, "alert.resolve", id.Format(ids.Alert), nil, audit.Fields{"about": about.ObjectID, "kind": string(about.Kind)})
	})
}
