package store

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

// useDeadline is how long a use may wait and be retried, unless its own deadline is
// earlier. A caller that disconnects changes nothing once a batch has it.
const useDeadline = 10 * time.Second

// Usage is a request to use a feature, or to ask whether it may be used. The feature
// itself is looked up by its key.
type Usage struct {
	Scope      tenancy.Scope
	KeyID      ids.ID
	Identity   string
	FeatureKey string
	Deadline   time.Time // of the request; zero for none but the engine's own
	metering.Usage
}

// pending is a use on its way through a batch.
type pending struct {
	Usage
	deadline time.Time
	decision metering.Decision
	byMember bool // asked on the dashboard, with no key
	settled  bool // answered without or before a decision, or committed
	putOff   bool // by this batch to the next
	waited   bool // was put off once
	err      error
	failure  error // of the last try; nil when there was none yet
	done     chan struct{}
	state    atomic.Int32
}

// Who answers a use: until a batch takes it, its caller may give it up.
const (
	queued = iota
	taken
	abandoned
)

// takeOver makes a batch responsible for the use, or reports that its caller has
// given it up.
func (p *pending) takeOver() bool {
	return p.state.CompareAndSwap(queued, taken) || p.state.Load() == taken
}

// reset makes a use ready for another try.
func (p *pending) reset() { p.decision, p.settled, p.err = metering.Decision{}, false, nil }

// EngineOptions tune the engine's store. The zero value is good.
type EngineOptions struct {
	Log *slog.Logger
	// Now is the clock, in milliseconds since 1970; the database's when nil.
	Now func() int64
}

// Engine decides and records uses, many in one transaction. It is the hot path:
// its statements are prepared, its connections its own.
type Engine struct {
	store  *Store
	reads  *hotPool
	writes *hotPool
	log    *slog.Logger
	now    func() (int64, error)
	tracks *lane
	checks *lane
	memory *memory
	ready  *readiness

	useDeadline, batchTimeout time.Duration // tests have less patience
	clockTolerance            int64         // maxDecisionAge in milliseconds

	conflicts, ahead, splits, differing, borrowed atomic.Int64
}

// OpenEngine starts the engine's store beside an open store.
func (s *Store) OpenEngine(ctx context.Context, o EngineOptions) (*Engine, error) {
	u := &Engine{store: s, log: o.Log, memory: newMemory(), useDeadline: useDeadline, batchTimeout: batchTimeout}
	var err error
	if u.writes, err = s.openHotPool(ctx, keptWriteConns, &u.borrowed); err != nil {
		return nil, err
	}
	if u.reads, err = s.openHotPool(ctx, keptReadConns, &u.borrowed); err != nil {
		u.writes.Close()
		return nil, err
	}
	s.clock.conns.Store(u.writes.Pool)
	if u.log == nil {
		u.log = slog.New(slog.DiscardHandler)
	}
	u.now, u.clockTolerance = s.clock.Read, maxDecisionAge.Milliseconds()
	if o.Now != nil {
		u.now, u.clockTolerance = func() (int64, error) { return o.Now(), nil }, anyDecisionAge
	}
	u.ready = &readiness{probe: u.probe, elapsed: func() time.Duration { return time.Since(processStart) }, log: u.log}
	u.tracks = newLane(u, u.track)
	u.checks = newLane(u, u.check)
	s.memories.Store(u.memory, true)
	return u, nil
}

// Close finishes every use that was taken in, then ends the connections.
func (u *Engine) Close() {
	u.tracks.drain()
	u.checks.drain()
	u.store.memories.Delete(u.memory)
	u.store.clock.conns.CompareAndSwap(u.writes.Pool, u.store.pool)
	u.writes.Close()
	u.reads.Close()
}

// Clock is the database's.
func (u *Engine) Clock() *Clock { return u.store.clock }

// EngineStats counts what the hot path has done since it was opened.
type EngineStats struct {
	Conflicts  int64 // batches that memory got wrong, and that ran again under locks
	Prefetched int64 // uses whose wallet was read while the batch before them was written
	Splits     int64 // batches that had to be halved: each is a bug to look for
	Differing  int64 // repeated events that said something else than the first
	Borrowed   int64 // transactions on a connection of the store's pool, for want of an own one
	Waiting    int   // uses and checks in the queues now
}

// Stats reads the counters.
func (u *Engine) Stats() EngineStats {
	return EngineStats{
		Conflicts:  u.conflicts.Load(),
		Prefetched: u.ahead.Load(),
		Splits:     u.splits.Load(),
		Differing:  u.differing.Load(),
		Borrowed:   u.borrowed.Load(),
		Waiting:    u.tracks.waiting() + u.checks.waiting(),
	}
}

// Track decides a use and records it when it is accepted, atomically. When it
// returns a decision, that is committed.
func (u *Engine) Track(use Usage) (metering.Decision, error) {
	d, err := u.submit(u.tracks, use)
	if d.Differs {
		u.differing.Add(1)
	}
	return d, err
}

// Check decides a use as Track would, and records nothing.
func (u *Engine) Check(use Usage) (metering.Decision, error) { return u.submit(u.checks, use) }

// Explain decides a use as Check would for a key that may ask. It is for a member
// who asks why somebody was denied, and is not counted as a denial itself.
func (u *Engine) Explain(use Usage) (metering.Decision, error) {
	return u.settle(u.checks, &pending{Usage: use, byMember: true})
}

func (u *Engine) submit(l *lane, use Usage) (metering.Decision, error) {
	return u.settle(l, &pending{Usage: use})
}

func (u *Engine) settle(l *lane, p *pending) (metering.Decision, error) {
	p.deadline, p.done = time.Now().Add(u.useDeadline), make(chan struct{}, 1)
	if own := p.Usage.Deadline; !own.IsZero() && own.Before(p.deadline) {
		p.deadline = own
	}
	if err := l.submit(p); err != nil {
		return metering.Decision{}, err
	}
	if p.err != nil {
		return metering.Decision{}, p.err
	}
	if !p.byMember {
		u.store.figures.noteUse(p.Scope, &p.decision, l == u.checks)
	}
	return p.decision, nil
}
