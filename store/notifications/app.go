package notifications

import (
	"context"

	"purser/store/internal/pg"
)

// App reads and writes the notifications of one application.
type App struct {
	app pg.App
}

// Open is the notifications of an application.
func Open(app pg.App) App { return App{app: app} }

// transact runs work in one transaction of the application.
func (a App) transact(ctx context.Context, work func(context.Context, *pg.Tx) error) error {
	return a.app.Transact(ctx, work)
}
