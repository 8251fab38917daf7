package store

import (
	"context"

	"purser/tenancy/audit"
)

// RecordAction writes an action to the audit log that no transaction of its own stores:
// a request to the payment provider, before it is made.
func (a App) RecordAction(ctx context.Context, action, target string, fields audit.Fields) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		return tx.Audit(ctx, action, target, nil, fields)
	})
}
