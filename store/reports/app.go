package reports

import (
	"context"
	"time"

	"purser/store/internal/ledger"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// App reads the rows of one application.
type App struct {
	app  pg.App
	node *Counters
}

// App is the reads of one application.
func (s *Counters) App(scope tenancy.Scope) App { return App{app: s.db.App(scope), node: s} }

// Open makes the counters of a node, which count every committed journal entry. Failed
// requests and denials are kept for the given times.
func Open(db *pg.DB, keepFailures, keepDenials time.Duration) *Counters {
	s := newCounters()
	s.db, s.keepFailures, s.keepDenials = db, keepFailures, keepDenials
	db.OnEntries(s.recordEntries)
	return s
}

// appTx is one transaction in the name of one application.
type appTx struct{ ledger.Tx }

func (a App) transact(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.Transact(ctx, ledger.Work(work))
}

// snapshot runs work in one transaction that sees one moment, and changes nothing.
func (a App) snapshot(ctx context.Context, work func(context.Context, appTx) error) error {
	return a.app.Snapshot(ctx, ledger.Work(work))
}
