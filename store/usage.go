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
// is earlier. Once a batch has claimed it, a caller that disconnects does not cancel
// it.
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

// request is a Usage on its way through a batch.
type request struct {
	Usage
	deadline    time.Time
	decision    metering.Decision
	group       *group // nil for a request of its own
	byMember    bool   // explained on the dashboard, without an API key
	resolved    bool   // failed before a decision, decided from the cache, or committed
	deferred    bool   // moved to the next batch
	wasDeferred bool   // deferred once already: a request is deferred at most once
	answered    bool   // its caller goes on
	err         error
	lastErr     error // of the last attempt; nil before the first
	done        chan struct{}
	state       atomic.Int32
}

// States of a request: until a batch claims it, its caller may abandon it.
const (
	queued = iota
	claimed
	abandoned
)

// claim makes the batch responsible for the request. It returns false when the caller
// has abandoned it.
func (p *request) claim() bool {
	return p.state.CompareAndSwap(queued, claimed) || p.state.Load() == claimed
}

// reset prepares a request for another attempt.
func (p *request) reset() { p.decision, p.resolved, p.err = metering.Decision{}, false, nil }

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
	places *pg.Places
	ready  *pg.Readiness

	lanes        int     // of single events, for each place
	singles      []*lane // of single events and checks
	singleWrites *hotPool

	bulks      []*lane // of batches and groups
	bulkWrites *hotPool
	bulkTurn   sync.Mutex // see trackInTurn
	lastSingle moment     // single event or check

	unregister func() // ends being told of changed wallets

	requestTimeout, batchTimeout time.Duration // shorter in tests
	clockTolerance               int64         // maxDecisionAge in milliseconds

	observeBatch                                                func(Batch)
	tracer                                                      trace.Tracer
	conflicts, prefetched, splits, retries, differing, borrowed atomic.Int64
	server                                                      atomic.Int64 // when the server of the newest connection started
}

// OpenEngine starts a usage engine on an open store.
func (s *Store) OpenEngine(ctx context.Context, o EngineOptions) (*Engine, error) {
	u := &Engine{store: s, lanes: cmp.Or(o.Lanes, s.singleLaneCount()), log: o.Log, requestTimeout: requestTimeout, batchTimeout: batchTimeout, observeBatch: o.ObserveBatch, tracer: o.Tracer}
	if u.log == nil {
		u.log = slog.New(slog.DiscardHandler)
	}
	if err := u.openPools(ctx); err != nil {
		return nil, err
	}
	s.db.Clock.Conns.Store(u.singleWrites.Pool)
	u.now, u.clockTolerance = s.db.Clock.Read, maxDecisionAge.Milliseconds()
	if o.Now != nil {
		u.now, u.clockTolerance = func() (int64, error) { return o.Now(), nil }, anyDecisionAge
	}
	u.ready = &pg.Readiness{Probe: u.probe, Elapsed: func() time.Duration { return time.Since(pg.ProcessStart) }, Log: u.log}
	u.openLanes()
	u.unregister = s.db.OnWalletChange(u.evictWallet)
	return u, nil
}

// Close finishes every accepted request, then closes the connections.
func (u *Engine) Close() {
	for _, l := range u.batchers() {
		l.refuse()
	}
	for _, l := range u.batchers() {
		l.Close()
	}
	u.unregister()
	u.store.db.Clock.Conns.CompareAndSwap(u.singleWrites.Pool, u.store.db.Pool)
	u.closePools()
}

// Clock is the database's clock.
func (u *Engine) Clock() *Clock { return u.store.db.Clock }

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
func (u *Engine) Stats() EngineStats {
	s := EngineStats{
		Conflicts:  u.conflicts.Load(),
		Prefetched: u.prefetched.Load(),
		Splits:     u.splits.Load(),
		Retries:    u.retries.Load(),
		Differing:  u.differing.Load(),
		Borrowed:   u.borrowed.Load(),
		Unlisted:   u.store.stats.DroppedDenials(),
	}
	for _, l := range u.singles {
		s.QueuedEvents += l.tracks.waiting()
		s.QueuedChecks += l.checks.waiting()
	}
	for _, l := range u.bulks {
		s.QueuedBulk += l.tracks.waiting()
	}
	return s
}

// Track decides a request and records it atomically when it is accepted. A decision
// that it returns is committed.
func (u *Engine) Track(use Usage) (metering.Decision, error) {
	p := &request{Usage: use}
	d, err := u.submit(u.laneOf(u.singles, p).tracks, p)
	if d.Differs {
		u.differing.Add(1)
	}
	return d, err
}

// Check decides a request as Track would and records nothing.
func (u *Engine) Check(use Usage) (metering.Decision, error) {
	p := &request{Usage: use}
	return u.submit(u.laneOf(u.singles, p).checks, p)
}

// Explain decides a request as Check would for a key with permission. Members use it to
// see why a request was denied, so it is not counted as a denial.
func (u *Engine) Explain(use Usage) (metering.Decision, error) {
	p := &request{Usage: use, byMember: true}
	return u.submit(u.laneOf(u.singles, p).checks, p)
}

func (u *Engine) submit(l *batcher, p *request) (metering.Decision, error) {
	u.prepare(p)
	if err := l.submit(p); err != nil {
		return metering.Decision{}, err
	}
	if p.err != nil {
		return metering.Decision{}, p.err
	}
	if !p.byMember {
		u.record(p, l.kind == CheckBatch)
	}
	return p.decision, nil
}

// record counts a decision and keeps a denial. It writes nothing: the node flushes its
// stats every few seconds.
func (u *Engine) record(p *request, check bool) {
	u.store.stats.RecordUsage(p.Scope, &p.decision, check)
	if p.decision.Verdict == metering.Refused {
		u.store.stats.RecordDenial(p.Scope, reports.Denial{
			RequestID: p.RequestID, KeyID: p.KeyID, Identity: p.Identity, Check: check, Decision: p.decision,
		})
	}
}

// prepare sets the deadline of a request: its own, or the engine's if that is earlier.
func (u *Engine) prepare(p *request) {
	p.deadline, p.done = time.Now().Add(u.requestTimeout), make(chan struct{}, 1)
	if own := p.Usage.Deadline; !own.IsZero() && own.Before(p.deadline) {
		p.deadline = own
	}
}
