package store

import (
	"context"
	"log/slog"

	"purser/store/internal/pg"
)

// Restore is a restore in progress.
type Restore = pg.Restore

// Prepare makes a database ready to serve, or refuses it: see pg.Prepare.
func Prepare(ctx context.Context, address string, log *slog.Logger) error {
	return pg.Prepare(ctx, address, log)
}

// Distribute spreads the tables of applications over the nodes of a Citus cluster.
func Distribute(ctx context.Context, ownerURL string) error { return pg.Distribute(ctx, ownerURL) }

// CheckBackup refuses a database that pg_dump could not dump completely with this login,
// and returns the major version of the server.
func CheckBackup(ctx context.Context, address string, log *slog.Logger) (major int, err error) {
	return pg.CheckBackup(ctx, address, log)
}

// BeginRestore marks an empty database as one that a restore of an archive fills.
func BeginRestore(ctx context.Context, address string, sum []byte, log *slog.Logger) (*Restore, error) {
	return pg.BeginRestore(ctx, address, sum, log)
}

// Reason is why a node cannot serve, in one sentence without the server's own words.
func Reason(err error) string { return pg.Reason(err) }

// Connections compares this node's need with what the database has.
func (s *Store) Connections(ctx context.Context) (pg.Connections, error) {
	places, err := s.db.Places(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return pg.Connections{}, err
	}
	return s.db.Capacity(ctx, int(s.db.Pool.Config().MaxConns)+s.usageConns(places.Count()))
}

// CheckDurable refuses a server that may lose what it has acknowledged.
func (s *Store) CheckDurable(ctx context.Context) error { return s.db.CheckDurable(ctx) }
