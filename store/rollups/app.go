package rollups

import (
	"context"

	"purser/store/internal/pg"
)

// App is the usage statistics of one application.
type App struct{ app pg.App }

// Open is the usage statistics of one application.
func Open(app pg.App) App { return App{app: app} }

func (a App) transact(ctx context.Context, work func(context.Context, *pg.Tx) error) error {
	return a.app.Transact(ctx, work)
}

func (a App) snapshot(ctx context.Context, work func(context.Context, *pg.Tx) error) error {
	return a.app.Snapshot(ctx, work)
}
