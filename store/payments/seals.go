package payments

import (
	"context"

	"purser/store/internal/pg"
)

var (
	lockConnections = pg.Declare("lock connections", `
		SELECT`+connectionColumns+`
		FROM provider_connections WHERE app_id = $1 ORDER BY id FOR NO KEY UPDATE`)

	allConnections = pg.Declare("all connections", `
		SELECT`+connectionColumns+`
		FROM provider_connections WHERE app_id = $1 ORDER BY id`)

	resealConnection = pg.Declare("reseal connection", `
		UPDATE provider_connections SET api_key = $3, webhook_secrets = $4, webhook_secrets_until = $5 WHERE app_id = $1 AND id = $2`)
)

// ResealConnections passes every account that the application ever had to seal, which
// may encrypt its secrets again and reports whether it did, and counts those. The rows
// are locked, so that a secret entered meanwhile is not overwritten. Seal runs again
// when the transaction is retried.
func (a Accounts) ResealConnections(ctx context.Context, seal func(*Connection) (changed bool)) (int, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (changed int, err error) {
		all, err := pg.Collect(ctx, tx, lockConnections, readConnection)
		if err != nil {
			return changed, err
		}
		for _, c := range all {
			if !seal(&c) {
				continue
			}
			secrets, until := c.secrets()
			if err := tx.Exec(ctx, resealConnection, 1, c.ID, c.SealedKey, secrets, until); err != nil {
				return changed, err
			}
			changed++
		}
		return changed, nil
	})
}

// SealedSecrets passes the sealed secrets of every account that the application ever
// had to see.
func (a Accounts) SealedSecrets(ctx context.Context, see func(sealed []byte)) error {
	connections, err := pg.ListAll(ctx, a.app, allConnections, readConnection)
	for _, c := range connections {
		see(c.SealedKey)
		for _, s := range c.Secrets {
			see(s.Sealed)
		}
	}
	return err
}
