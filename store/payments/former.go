package payments

import (
	"context"

	"github.com/jackc/pgx/v5"

	"purser/store/internal/pg"
)

// An account may have been connected and replaced more than once.
var lockFormerConnections = pg.Declare("lock former connections", `
	SELECT`+connectionColumns+`
	FROM provider_connections WHERE app_id = $1 AND account_id = $2 AND mode = 'stripe' AND replaced_at IS NOT NULL
	ORDER BY id FOR NO KEY UPDATE`)

// UsesOfAccount counts what keeps the account of c from being replaced, whichever
// connection to it that was sold through.
func (a Accounts) UsesOfAccount(ctx context.Context, c Connection) (int, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (int, error) { return tx.usesOfAccount(ctx, c) })
}

func (tx appTx) usesOfAccount(ctx context.Context, c Connection) (int, error) {
	return pg.Find(ctx, tx, countUsesOfAccount, pgx.RowTo[int], pg.ErrNoAppState, c.Mode, c.AccountID)
}

// RenewFormer gives a replaced Stripe account a new key and retries its failed jobs.
// The current account is not changed. Seal encrypts the key into each of the account's
// connections, and runs again when the transaction is retried. An account that was
// never replaced is ErrUnknown.
func (a Accounts) RenewFormer(ctx context.Context, accountID string, seal func(*Connection) error, now int64) (Connection, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (c Connection, err error) {
		former, err := pg.Collect(ctx, tx, lockFormerConnections, readConnection, accountID)
		if err != nil {
			return c, err
		}
		if len(former) == 0 {
			return c, ErrUnknown
		}
		for _, c = range former {
			was := c
			if err := seal(&c); err != nil {
				return c, err
			}
			if c, err = tx.updateConnection(ctx, was, c, now); err != nil {
				return c, err
			}
		}
		if err := tx.retryFailedNow(ctx, now); err != nil {
			return c, err
		}
		return c, tx.Audit(ctx, "provider.connect", c.AccountID, nil, connectionFields(c))
	})
}
