package cashier

import (
	"context"

	"purser/ids"
	"purser/store/payments"
	"purser/tenancy"
)

// Reseal encrypts the secrets of all the application's connections with the vault's
// current key and counts the connections that changed. It may be repeated. A secret
// that no configured key opens stays as it is; its connection is counted as lost and
// logged.
func (c *Cashier) Reseal(ctx context.Context, scope tenancy.Scope) (sealed, lost int, err error) {
	unreadable := map[ids.ID]bool{}
	sealed, err = c.options.Store.PaymentAccounts(scope).ResealConnections(ctx, func(connection *payments.Connection) (changed bool) {
		reseal := func(purpose string, text *[]byte) {
			again, isNew, err := c.options.Vault.Rewrap(place(scope, connection.ID, purpose), *text)
			if err != nil {
				unreadable[connection.ID] = true
				c.options.Log.Error("a stored secret cannot be opened", "purpose", purpose, "account", connection.AccountID,
					"app", scope.AppID.Format(ids.Application), "cause", err)
				return
			}
			*text, changed = again, changed || isNew
		}
		if connection.SealedKey != nil {
			reseal(keyPurpose, &connection.SealedKey)
		}
		for i := range connection.Secrets {
			reseal(secretPurpose, &connection.Secrets[i].Sealed)
		}
		return changed
	})
	return sealed, len(unreadable), err
}
