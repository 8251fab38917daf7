package rollups

import (
	"context"
	"time"

	"purser/store/internal/pg"
)

// App is the usage statistics of one application.
type App struct {
	app pg.App
	end time.Time // of the time for a run of RollUp; zero for none
}

// Open is the usage statistics of one application.
func Open(app pg.App) App { return App{app: app} }

// within bounds a run by half of the time that a context leaves, so that the transaction that
// passes the end is still committed.
func (a App) within(ctx context.Context) App {
	if deadline, limited := ctx.Deadline(); limited {
		now := time.Now()
		a.end = now.Add(deadline.Sub(now) / 2)
	}
	return a
}

// timeUsed reports whether a run begins no other transaction.
func (a App) timeUsed() bool { return !a.end.IsZero() && !time.Now().Before(a.end) }
