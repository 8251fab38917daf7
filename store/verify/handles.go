package verify

import (
	"context"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
)

// App verifies one application.
type App struct{ app pg.App }

// Open is the verification of one application.
func Open(app pg.App) App { return App{app: app} }

// Installation verifies what concerns all applications of a database, and knows when
// each is due.
type Installation struct{ db *pg.DB }

// OpenInstallation is the verification of what concerns all applications.
func OpenInstallation(db *pg.DB) Installation { return Installation{db: db} }

// appTx is one transaction in the name of one application.
type appTx struct{ ledger.Tx }

func (a App) transact(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.Transact(ctx, ledger.Work(work))
}

// snapshot runs work in one transaction that sees one moment, and changes nothing.
func (a App) snapshot(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.Snapshot(ctx, ledger.Work(work))
}
