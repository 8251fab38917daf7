package queue

import (
	"context"

	"purser/store/internal/pg"
	"purser/tenancy"
	"purser/tenancy/audit"
)

// Queues has what nodes ask before an application is known, and opens the queue of one.
type Queues struct{ db *pg.DB }

func Open(db *pg.DB) Queues { return Queues{db: db} }

// App reads and writes the queue of one application.
type App struct{ app pg.App }

// App is the queue of one application.
func (q Queues) App(scope tenancy.Scope) App { return App{app: q.db.App(scope)} }

// By is the same queue for a person: what they change through it is written into the
// organization's audit log, in the same transaction.
func (a App) By(actor audit.Actor) App {
	a.app.By = actor
	return a
}

// Tx is a transaction of an application that may enqueue jobs.
type Tx struct{ *pg.Tx }

func (a App) transact(ctx context.Context, work func(context.Context, Tx) error) error {
	return a.app.Transact(ctx, in(work))
}

// attempt is transact without a second try.
func (a App) attempt(ctx context.Context, work func(context.Context, Tx) error) error {
	return a.app.Attempt(ctx, in(work))
}

// clocked is for transactions that need the database's clock.
func (a App) clocked() App {
	a.app = a.app.Clocked()
	return a
}

func in(work func(context.Context, Tx) error) func(context.Context, *pg.Tx) error {
	return func(ctx context.Context, tx *pg.Tx) error { return work(ctx, Tx{tx}) }
}
