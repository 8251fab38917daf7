package identities

import (
	"context"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// App changes identities of one application.
type App struct{ app pg.App }

// Open changes identities of the application.
func Open(app pg.App) App { return App{app: app} }

// transaction is one transaction in the name of one application.
type transaction struct{ ledger.Tx }

// transact runs work in one transaction. Those of people and API keys lock wallets and wait
// for the head of the audit log, so they take turns.
func (a App) transact(ctx context.Context, work func(context.Context, transaction) error) error {
	return a.app.InTurn().Transact(ctx, ledger.Work(work))
}
