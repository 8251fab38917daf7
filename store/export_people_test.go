package store

import (
	"context"

	"purser/tenancy/audit"
)

// AuditInApp writes an entry in a transaction of the application, as methods that
// people use do.
func AuditInApp(ctx context.Context, a App, action, target string, after ...audit.Facts) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		var facts audit.Facts
		for _, f := range after {
			facts = f
		}
		return tx.audit(ctx, action, target, nil, facts)
	})
}
