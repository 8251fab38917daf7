package notifications

import (
	"purser/store/internal/pg"
	"purser/tenancy/audit"
)

// App reads and writes the notifications of one application.
type App struct {
	app pg.App
}

// Open is the notifications of an application.
func Open(app pg.App) App { return App{app: app} }

// By is the same for a person or an API key: what they change is written into the
// organization's audit log, in the same transaction.
func (a App) By(actor audit.Actor) App {
	a.app.By = actor
	return a
}
