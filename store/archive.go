package store

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// atMost counts the rows of a query up to one more than tenancy.ImpactLimit.
func atMost(rows string) string {
	return `(SELECT count(*) FROM (` + rows + ` LIMIT ` + strconv.Itoa(tenancy.ImpactLimit+1) + `) AS t)`
}

var (
	selectImpact = pg.Declare("select impact", `
		SELECT `+atMost(`SELECT 1 FROM api_keys k WHERE k.app_id = $1 AND NOT k.revoked AND (least(k.revoked_at, k.expires_at) <= $2) IS NOT TRUE`)+`,
			`+atMost(`SELECT 1 FROM wallets w WHERE w.app_id = $1`)+`,
			`+atMost(`SELECT 1 FROM subscriptions s WHERE s.app_id = $1 AND s.status IN `+ledger.LiveStatuses+` AND s.provider_id IS NOT NULL`)+`,
			`+atMost(`SELECT 1 FROM subscriptions f WHERE f.app_id = $1 AND f.status IN `+ledger.LiveStatuses+` AND f.provider_id IS NULL`)+`,
			`+atMost(`SELECT 1 FROM subscriptions i WHERE i.app_id = $1 AND i.status = 'incomplete' AND i.provider_id IS NOT NULL`)+`
				+ `+atMost(`SELECT 1 FROM topups p WHERE p.app_id = $1 AND p.status IN ('open', 'processing')`)+`
				+ `+atMost(`SELECT 1 FROM subscription_changes c WHERE c.app_id = $1 AND c.state IN ('requested', 'pending')`)+`
				+ `+atMost(`SELECT 1 FROM provider_ops o WHERE o.app_id = $1 AND o.state = 'running'`)+`
		FROM app_state a WHERE a.app_id = $1`)

	// Those that are revoked for good, or will be when a rotation's overlap ends, stay so.
	suspendKeys = pg.Declare("suspend keys", `
		UPDATE api_keys SET revoked = true, archived_at = $2 WHERE app_id = $1 AND NOT revoked`)

	resumeKeys = pg.Declare("resume keys", `
		UPDATE api_keys SET revoked = false, archived_at = NULL WHERE app_id = $1 AND archived_at IS NOT NULL`)
)

// Impact counts what archiving the application concerns.
func (a App) Impact(ctx context.Context, now int64) (tenancy.Impact, error) {
	return pg.FindOne(ctx, a.app, selectImpact, pgx.RowToStructByPos[tenancy.Impact], pg.ErrNoAppState, now)
}

// Archive makes the application read-only: its keys are refused and nothing that people
// do changes it. Jobs run on, so that what is on its way arrives. It is refused by the
// rule of app, whose mode never changes, and when it is archived already.
func (a App) Archive(ctx context.Context, app tenancy.Application, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		// The keys before the epoch, in the order in which retiring one takes them.
		suspended, err := tx.ExecAny(ctx, suspendKeys, now)
		if err != nil {
			return err
		}
		if _, err := tx.AdvanceEpoch(ctx); err != nil {
			return err
		}
		if err := tx.LockToArchive(ctx); err != nil {
			return err
		}
		impact, err := pg.Find(ctx, tx, selectImpact, pgx.RowToStructByPos[tenancy.Impact], pg.ErrNoAppState, now)
		if err != nil {
			return err
		}
		if err := app.CheckArchive(impact); err != nil {
			return err
		}
		err = tx.Audit(ctx, "application.archive", tx.Scope.AppID.Format(ids.Application), nil, audit.Fields{"keys": strconv.FormatInt(suspended, 10)})
		if err != nil {
			return err
		}
		// Once more behind the head of the audit log: a key that was created meanwhile is
		// before it or refused.
		if _, err := tx.ExecAny(ctx, suspendKeys, now); err != nil {
			return err
		}
		_, err = tx.SetArchived(ctx, now)
		return err
	})
}

// Restore makes an archived application active again. The keys that it suspended work
// again, unless they have expired.
func (a App) Restore(ctx context.Context) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		resumed, err := tx.ExecAny(ctx, resumeKeys)
		if err != nil {
			return err
		}
		if _, err := tx.AdvanceEpoch(ctx); err != nil {
			return err
		}
		changed, err := tx.SetArchived(ctx, 0)
		if err != nil || !changed {
			return err
		}
		// Once more behind the epoch: it may have been archived again meanwhile.
		again, err := tx.ExecAny(ctx, resumeKeys)
		if err != nil {
			return err
		}
		resumed += again
		return tx.Audit(ctx, "application.restore", tx.Scope.AppID.Format(ids.Application), nil, audit.Fields{"keys": strconv.FormatInt(resumed, 10)})
	})
}
