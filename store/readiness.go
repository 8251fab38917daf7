package store

import (
	"context"
	"math/rand/v2"

	"purser/store/internal/pg"
)

// Nodes that probe at the same time rarely overwrite the same row.
const probeSlots = 16

// Ready reports why this node cannot serve, or nil: whether the schema fits, the
// database's clock is known, and the hot path reads and commits a write as the
// serving role. It takes at most 2 seconds, and the database is asked at most once a
// second, however many call it.
func (e *Engine) Ready(ctx context.Context) error { return e.ready.Check(ctx) }

func (e *Engine) probe(ctx context.Context) error {
	conn, err := e.singleWrites.acquire(ctx)
	if err != nil {
		return pg.Unready("the usage engine has no database connection", err)
	}
	defer pg.Release(conn)
	if err := pg.CheckSchema(ctx, conn); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `
		INSERT INTO readiness_probes (slot, written_at) VALUES ($1, $2)
		ON CONFLICT (slot) DO UPDATE SET written_at = excluded.written_at`, rand.IntN(probeSlots), e.store.db.Clock.Now())
	if err != nil {
		return pg.Unready("the database does not take writes", err)
	}
	reading, err := e.reads.acquire(ctx)
	if err != nil {
		return pg.Unready("the usage engine has no database connection to read with", err)
	}
	pg.Release(reading)
	if err := e.store.probePool(ctx); err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, pg.ReadyTimeout/4) // for a measurement under way
	defer cancel()
	if err := e.store.db.Clock.Trust(brief); err != nil {
		return &pg.NotReady{Sentence: "the time of the database is not known: " + err.Error()[len("store: "):], Cause: err}
	}
	return nil
}

// probePool finds out whether requests get a connection. While all are in use they
// do, in turn: a busy node is ready.
func (s *Store) probePool(ctx context.Context) error {
	if stat := s.db.Pool.Stat(); stat.AcquiredConns() >= stat.MaxConns() {
		return nil
	}
	conn, err := s.db.Acquire(ctx)
	if err != nil {
		return pg.Unready("requests get no database connection", err)
	}
	pg.Release(conn)
	return nil
}
