package payments

import (
	"context"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/store/queue"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Handles opens the handles on one database.
type Handles struct {
	db     *pg.DB
	queues queue.Queues

	sandboxConns chan struct{} // one place for each connection that the sandbox uses
}

func Open(db *pg.DB) *Handles {
	return &Handles{db: db, queues: queue.Open(db), sandboxConns: make(chan struct{}, sandboxConns)}
}

// App reads and writes what is sold and paid in one application.
type App struct{ handle }

// App is what is sold and paid in one application.
func (h *Handles) App(scope tenancy.Scope) App { return App{handle{h.db.App(scope)}} }

// By is the same handle for a person or an API key: what they change through it is
// written into the organization's audit log, in the same transaction.
func (a App) By(actor audit.Actor) App {
	a.app.By = actor
	return a
}

// Accounts reads and writes an application's accounts at the payment provider.
type Accounts struct{ handle }

// Accounts are the accounts of one application.
func (h *Handles) Accounts(scope tenancy.Scope) Accounts { return Accounts{handle{h.db.App(scope)}} }

// By is as App's.
func (a Accounts) By(actor audit.Actor) Accounts {
	a.app.By = actor
	return a
}

// handle is the rows of one application.
type handle struct{ app pg.App }

// appTx is one transaction in the name of one application.
type appTx struct{ ledger.Tx }

func (h handle) transact(ctx context.Context, work func(context.Context, appTx) error) error {
	return h.app.Transact(ctx, ledger.Work(work))
}

// fenced is transact for the holder of a lease: nothing is stored once another has it.
func (h handle) fenced(ctx context.Context, f queue.Fence, work func(context.Context, appTx) error) error {
	return h.transact(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.VerifyFence(ctx, f); err != nil {
			return err
		}
		return work(ctx, tx)
	})
}

// snapshot runs work in one transaction that sees one moment, and changes nothing.
func (h handle) snapshot(ctx context.Context, work func(context.Context, appTx) error) error {
	return h.app.Snapshot(ctx, ledger.Work(work))
}
