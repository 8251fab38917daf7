package store

import (
	"context"
	"log/slog"

	"purser/store/internal/pg"
)

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
