package store

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/reports"
	"purser/tenancy"
)

// requestTimeout is how long a request may wait and be retried, unless its own deadline
// is earlier. A caller that disconnects cancels nothing. At its deadline, a caller may
// abandon a request that no batch has claimed.
const requestTimeout = 10 * time.Second

// Usage is a request to record or check usage of a feature. The feature is looked up by
// its key.
type Usage struct {
	Scope      tenancy.Scope
	KeyID      ids.ID
	RequestID  ids.ID // of the API request, which denials keep
	Identity   string
	FeatureKey string
	Deadline   time.Time // of the request; zero for none but the engine's own
	// Span is the caller's span, which is linked with the span of its batch; nil for none.
	Span trace.Span
	metering.Usage
}

// request is a Usage on its way through a batch. Until done only the goroutine that runs the
// batch writes it, except state; of deferred ones also a prefetch, which the batch waits for.
type request struct {
	Usage
	deadline time.Time
	decision metering.Decision
	group    *group // nil for a request of its own
	byMember bool   // explained on the dashboard, without an API key
	// resolved: failed before a decision, or decided from the cache and, if it is an event,
	// committed. Not final for deferred requests and the rest of a batch: a prefetch may have
	// failed them, and their next attempt resets it.
	resolved    bool
	deferred    bool // moved to the next batch, which starts with it
	wasDeferred bool // deferred once already: a request is deferred at most once
	answered    bool // its caller was woken, before the rest of its batch: it is final
	err         error
	lastErr     error // of the last attempt; nil before the first
	done        chan struct{}
	state       atomic.Int32 // queued, claimed or abandoned: by the batch and by the caller
}

// States of a request: until a batch claims it, its caller may abandon it.
const (
	queued = iota
	claimed
	abandoned
)

// claim makes the batch responsible for the request. It returns false when the caller
// has abandoned it.
func (r *request) claim() bool {
	return r.state.CompareAndSwap(queued, claimed) || r.state.Load() == claimed
}

// reset prepares a request for another attempt.
func (r *request) reset() { r.decision, r.resolved, r.err = metering.Decision{}, false, nil }

// EngineOptions configure the usage engine. The zero value is a good default.
type EngineOptions struct {
	Log *slog.Logger
	// Now is the clock, in milliseconds since 1970. Nil means the database's clock.
	Now func() int64
	// ObserveBatch is called after every batch, from the goroutine that ran it. Nil means
	// no measurement.
	ObserveBatch func(Batch)
	// Lanes is how many transactions of single events run at once for each place. Zero
	// means what fits the machine.
	Lanes int
	// Tracer makes a span of every batch with a recorded request. Nil means no spans.
	Tracer trace.Tracer
}

// Kinds of batches. A batch is one transaction of the engine; what a caller sends as a
// batch or group of events runs in bulk batches.
const (
	EventBatch = "events"
	CheckBatch = "checks"
	BulkBatch  = "bulk"
)

// Batch describes a finished batch.
type Batch struct {
	Kind string
	Size int // requests, deferred ones included
	Took time.Duration
}

// Engine decides and records usage, many requests per transaction. It is the hot path:
// its statements are prepared and it has connections of its own.
type Engine struct {
	store  *Store
	reads  *hotPool
	log    *slog.Logger
	now    func() (int64, error)
	places *pg.Places // Citus workers; plain Postgres is one place
	ready  *pg.Readiness

	lanes        int     // of single events, for each place
	singles      []*lane // of single events and checks
	singleWrites *hotPool

	bulks      []*lane // of batches and groups
	bulkWrites *hotPool
	bulkTurn   sync.Mutex // see trackInTurn
	lastSingle lastTime   // single event or check

	unregister func() // stops the calls for changed wallets

	requestTimeout, batchTimeout time.Duration // shorter in tests
	clockTolerance               int64         // maxDecisionAge in milliseconds

	observeBatch                                                func(Batch)
	tracer                                                      trace.Tracer
	conflicts, prefetched, splits, retries, differing, borrowed atomic.Int64
	history                                                     atomic.Int64 // of the database of the newest connection
}

// OpenEngine starts a usage engine on an open store.
func (s *Store) OpenEngine(ctx context.Context, o EngineOptions) (*Engine, error) {
	e := &Engine{store: s, lanes: cmp.Or(o.Lanes, s.singleLaneCount()), log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), requestTimeout: requestTimeout, batchTimeout: batchTimeout, observeBatch: o.ObserveBatch, tracer: o.Tracer}
	if err := e.openPools(ctx); err != nil {
		return nil, err
	}
	s.db.Clock.Conns.Store(e.singleWrites.Pool)
	e.now, e.clockTolerance = s.db.Clock.Read, maxDecisionAge.Milliseconds()
	if o.Now != nil {
		e.now, e.clockTolerance = func() (int64, error) { return o.Now(), nil }, anyDecisionAge
	}
	e.ready = &pg.Readiness{Probe: e.probe, Elapsed: func() time.Duration { return time.Since(pg.ProcessStart) }, Log: e.log}
	e.openLanes()
	e.unregister = s.db.OnWalletChange(e.evictWallet)
	return e, nil
}

// Close finishes every accepted request, then closes the connections.
func (e *Engine) Close() {
	for _, b := range e.batchers() {
		b.refuse()
	}
	for _, b := range e.batchers() {
		b.Close()
	}
	e.unregister()
	e.store.db.Clock.Conns.CompareAndSwap(e.singleWrites.Pool, e.store.db.Pool)
	e.closePools()
}

// Clock is the database's clock.
func (e *Engine) Clock() *Clock { return e.store.db.Clock }

// EngineStats are the engine's counters since it was opened.
type EngineStats struct {
	Conflicts  int64 // optimistic transactions that failed and were retried under locks
	Prefetched int64 // requests whose wallet was read while the previous batch was written
	Splits     int64 // batches that were split in half: each points at a bug
	Retries    int64 // attempts of a batch that failed and were repeated
	Differing  int64 // duplicate event ids whose content differs from the first
	Borrowed   int64 // transactions on a connection borrowed from the store's pool
	Unlisted   int64 // denials that were counted, but not kept

	QueuedEvents, QueuedChecks, QueuedBulk int // requests queued now
}

// Stats reads the counters.
func (e *Engine) Stats() EngineStats {
	s := EngineStats{
		Conflicts:  e.conflicts.Load(),
		Prefetched: e.prefetched.Load(),
		Splits:     e.splits.Load(),
		Retries:    e.retries.Load(),
		Differing:  e.differing.Load(),
		Borrowed:   e.borrowed.Load(),
		Unlisted:   e.store.stats.DroppedDenials(),
	}
	for _, l := range e.singles {
		s.QueuedEvents += l.tracks.waiting()
		s.QueuedChecks += l.checks.waiting()
	}
	for _, l := range e.bulks {
		s.QueuedBulk += l.tracks.waiting()
	}
	return s
}

// Track decides a request and records it atomically when it is accepted. An accepted
// decision is committed when Track returns.
func (e *Engine) Track(event Usage) (metering.Decision, error) {
	r := &request{Usage: event}
	d, err := e.submit(e.laneOf(e.singles, r).tracks, r)
	if d.Differs {
		e.differing.Add(1)
	}
	return d, err
}

// Check decides a request as Track would and records nothing.
func (e *Engine) Check(usage Usage) (metering.Decision, error) {
	r := &request{Usage: usage}
	return e.submit(e.laneOf(e.singles, r).checks, r)
}

// Explain decides a request as Check would for a key with permission. Members use it to
// see why a request was denied, so it is not counted as a denial.
func (e *Engine) Explain(usage Usage) (metering.Decision, error) {
	r := &request{Usage: usage, byMember: true}
	return e.submit(e.laneOf(e.singles, r).checks, r)
}

func (e *Engine) submit(b *batcher, r *request) (metering.Decision, error) {
	e.prepare(r)
	if err := b.submit(r); err != nil {
		return metering.Decision{}, err
	}
	if r.err != nil {
		return metering.Decision{}, r.err
	}
	if !r.byMember {
		e.record(r, b.kind == CheckBatch)
	}
	return r.decision, nil
}

// record counts a decision and keeps a denial. It writes nothing: the node flushes its
// stats every few seconds.
func (e *Engine) record(r *request, check bool) {
	e.store.stats.RecordUsage(r.Scope, &r.decision, check)
	if r.decision.Verdict == metering.Refused {
		e.store.stats.RecordDenial(r.Scope, reports.Denial{
			RequestID: r.RequestID, KeyID: r.KeyID, Identity: r.Identity, Check: check, Decision: r.decision,
		})
	}
}

// prepare sets the deadline of a request: its own, or the engine's if that is earlier.
func (e *Engine) prepare(r *request) {
	r.deadline, r.done = time.Now().Add(e.requestTimeout), make(chan struct{}, 1)
	if own := r.Usage.Deadline; !own.IsZero() && own.Before(r.deadline) {
		r.deadline = own
	}
}
