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

func (a App) transact(ctx context.Context, work func(context.Context, transaction) error) error {
	return a.app.Transact(ctx, ledger.Work(work))
}
