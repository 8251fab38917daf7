package store

import (
	"context"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// App reads and writes the rows of one application.
type App struct {
	app   pg.App
	store *Store
}

// App reads and writes the catalog, wallets and keys of one application.
func (s *Store) App(scope tenancy.Scope) App { return App{app: s.db.App(scope), store: s} }

// By is App for a person or an API key: what they change through it is written to the
// organization's audit log, in the same transaction.
func (a App) By(actor audit.Actor) App {
	a.app.By = actor
	return a
}

// appTx is one transaction in the name of one application.
type appTx struct{ ledger.Tx }

// transact runs work in one transaction of the application. When Postgres gave
// it up in favour of another transaction, all of it runs again.
func (a App) transact(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.Transact(ctx, ledger.Work(work))
}

// transactInTurn is transact for what locks a wallet and is written to the audit log.
func (a App) transactInTurn(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.InTurn().Transact(ctx, ledger.Work(work))
}

// snapshot runs work in one transaction that sees one moment, and changes nothing.
func (a App) snapshot(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.Snapshot(ctx, ledger.Work(work))
}

// ClockOffset is how far the application's clock is ahead of the real one. It is
// zero but in an application whose sandbox was moved in time.
func (a App) ClockOffset(ctx context.Context) (int64, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (int64, error) { return tx.ClockOffset(ctx) })
}

// RecordAction writes an action to the audit log that no transaction of its own stores:
// a request to the payment provider, before it is made.
func (a App) RecordAction(ctx context.Context, action, target string, fields audit.Fields) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		return tx.Audit(ctx, action, target, nil, fields)
	})
}
