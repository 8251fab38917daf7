package store

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"purser/store/internal/pg"
)

const (
	// readyTimeout is how long a probe may take, and how long its callers wait.
	readyTimeout = 2 * time.Second
	// readyEvery is how long a result is good for, however many ask.
	readyEvery = time.Second
	// Nodes that probe at the same time rarely overwrite the same row.
	probeSlots = 16
)

// readiness shares one probe among all who ask, and logs each change of its result
// once.
type readiness struct {
	probe   func(context.Context) error
	elapsed func() time.Duration // a monotonic clock
	log     *slog.Logger

	mu      sync.Mutex
	running chan struct{} // closed when the probe under way has ended; nil for none
	probed  bool
	at      time.Duration // of the last result
	err     error
}

// errSilent is said of a probe that did not end in time.
var errSilent = &pg.NotReady{Sentence: "the database did not answer within 2 seconds"}

// check is the result of a probe that ended less than a second ago, or of the next.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	if r.running == nil && r.probed && r.elapsed()-r.at < readyEvery {
		defer r.mu.Unlock()
		return r.err
	}
	if r.running == nil {
		r.running = make(chan struct{})
		go r.run()
	}
	running := r.running
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	select {
	case <-running:
	case <-ctx.Done():
		return errSilent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *readiness) run() {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	err := r.probe(ctx)
	if err != nil && ctx.Err() != nil {
		err = &pg.NotReady{Sentence: errSilent.Sentence, Cause: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logChange(err)
	r.err, r.probed, r.at = err, true, r.elapsed()
	close(r.running)
	r.running = nil
}

func (r *readiness) logChange(err error) {
	switch {
	case err != nil && (r.err == nil || pg.Reason(r.err) != pg.Reason(err)):
		r.log.Error("not ready", "reason", pg.Reason(err), "cause", errors.Unwrap(err))
	case err == nil && r.err != nil:
		r.log.Info("ready again")
	}
}

// Ready reports why this node cannot serve, or nil: whether the schema fits, the
// database's clock is known, and the hot path reads and commits a write as the
// serving role. It takes at most 2 seconds, and the database is asked at most once a
// second, however many call it.
func (u *Engine) Ready(ctx context.Context) error { return u.ready.check(ctx) }

func (u *Engine) probe(ctx context.Context) error {
	conn, err := u.single.writes.acquire(ctx)
	if err != nil {
		return pg.Unready("the usage engine has no database connection", err)
	}
	defer pg.Release(conn)
	if err := pg.CheckSchema(ctx, conn); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `
		INSERT INTO readiness_probes (slot, written_at) VALUES ($1, $2)
		ON CONFLICT (slot) DO UPDATE SET written_at = excluded.written_at`, rand.IntN(probeSlots), u.store.db.Clock.Now())
	if err != nil {
		return pg.Unready("the database does not take writes", err)
	}
	reading, err := u.reads.acquire(ctx)
	if err != nil {
		return pg.Unready("the usage engine has no database connection to read with", err)
	}
	pg.Release(reading)
	if err := u.store.probePool(ctx); err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, readyTimeout/4) // for a measurement under way
	defer cancel()
	if err := u.store.db.Clock.Trust(brief); err != nil {
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
	conn, err := s.db.Pool.Acquire(ctx)
	if err != nil {
		return pg.Unready("requests get no database connection", err)
	}
	pg.Release(conn)
	return nil
}
