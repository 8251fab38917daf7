package reports

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/internal/pg"
	"purser/store/internal/sketch"
	"purser/tenancy"
	"purser/tenancy/turns"
)

const (
	hourMillis = 3_600_000
	// Per application and flush, this many failures and this many successes are stored
	// individually. All are counted.
	KeptFailures  = 100
	KeptSuccesses = 20
	// The stats of this many applications are held while the database is down; those of
	// further ones are lost. Within one application the size is bounded by its catalog.
	maxCountedApps = 20_000
	// Requests and denials that could not be written for this long are dropped. What names
	// a renamed or erased identity is followed for a minute, and no longer.
	maxHeld = 45 * time.Second
)

// Counters are the counters of this node since its last flush: a few hundred
// nanoseconds per event, and no statement in its transaction. Balances never depend on
// them.
type Counters struct {
	db           *pg.DB
	keepFailures time.Duration
	keepDenials  time.Duration

	mu   sync.Mutex
	apps map[ids.ID]*appStats

	flushes *turns.Turns[ids.ID] // by application, one at a time

	minute int64            // of kept, since 1970
	kept   map[failures]int // failures in the minute

	denials       denialLimits
	deniedDropped atomic.Int64

	used   map[ids.ID]tenancy.Scope // applications with usage that was flushed
	onUsed func(tenancy.Scope)      // nil for none
}

type appStats struct {
	scope    tenancy.Scope
	uses     map[usageDay]*usageTotals
	denials  map[denialDay]*denialTotals
	entries  map[entryDay]*entryTotals
	active   map[int64]*sketch.Sketch
	hours    map[int64]*hourActivity
	requests []Request
	failures int // among requests
	failed   []Request
	denied   []Denial
}

type (
	usageDay struct {
		day             int64
		feature, credit ids.ID
	}
	usageTotals struct {
		accepted, deduplicated int64
		charged                metering.Total
	}
	denialDay struct {
		day     int64
		feature ids.ID
		reason  fault.Code
	}
	denialTotals struct{ uses, checks int64 }
	entryDay     struct {
		day    int64
		kind   metering.EntryKind
		credit ids.ID
	}
	entryTotals struct {
		entries           int64
		credited, debited metering.Total
	}
	hourActivity struct {
		uses, denials, requests, failures int64
		oldest, newest                    ids.ID // of its uses
	}
)

func newCounters() *Counters {
	return &Counters{apps: make(map[ids.ID]*appStats), flushes: turns.New[ids.ID](1), kept: make(map[failures]int), denials: newDenialLimits(), used: make(map[ids.ID]tenancy.Scope)}
}

func newAppStats(scope tenancy.Scope) *appStats {
	return &appStats{
		scope:   scope,
		uses:    make(map[usageDay]*usageTotals),
		denials: make(map[denialDay]*denialTotals),
		entries: make(map[entryDay]*entryTotals),
		active:  make(map[int64]*sketch.Sketch),
		hours:   make(map[int64]*hourActivity),
	}
}

// forApp returns the application's stats, or nil when there is no room. The lock must
// be held.
func (f *Counters) forApp(scope tenancy.Scope) *appStats {
	app := f.apps[scope.AppID]
	if app == nil && len(f.apps) < maxCountedApps {
		app = newAppStats(scope)
		f.apps[scope.AppID] = app
	}
	return app
}

// RecordUsage counts a decision. A duplicate is not counted, not even one of our own
// after a lost reply; an invalid request is a failed request but no denial.
func (f *Counters) RecordUsage(scope tenancy.Scope, d *metering.Decision, check bool) {
	denied := d.Verdict == metering.Refused
	used := !check && d.New
	if !denied && !used {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.forApp(scope)
	if app == nil {
		return
	}
	e := &d.Event
	hour := counter(app.hours, hourOf(e.CreatedAt))
	day := metering.DayOf(e.CreatedAt).Start
	if denied {
		hour.denials++
		denials := counter(app.denials, denialDay{day, e.FeatureID, d.Code})
		if check {
			denials.checks++
		} else {
			denials.uses++
		}
		return
	}
	hour.uses++
	hour.extend(e.TransactionID)
	usage := counter(app.uses, usageDay{day, e.FeatureID, e.CreditID})
	if d.Verdict == metering.Accepted {
		usage.accepted++
	} else {
		usage.deduplicated++
	}
	usage.charged = usage.charged.Plus(e.Charge.Amount)
	if app.active[day] == nil {
		app.active[day] = sketch.New()
	}
	app.active[day].Add(e.WalletID)
}

// recordEntries counts the journal entries of a transaction.
func (f *Counters) recordEntries(scope tenancy.Scope, list []metering.Entry) {
	if len(list) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.forApp(scope)
	if app == nil {
		return
	}
	for _, e := range list {
		entries := counter(app.entries, entryDay{metering.DayOf(e.CreatedAt).Start, e.Kind, e.CreditID})
		entries.entries++
		if e.Delta.Out {
			entries.debited = entries.debited.Plus(e.Delta.Amount)
		} else {
			entries.credited = entries.credited.Plus(e.Delta.Amount)
		}
	}
}

// RecordRequest counts a request and samples it for the list of recent ones: every
// failure up to a limit, and some successes.
func (s *Counters) RecordRequest(scope tenancy.Scope, r Request) {
	f := s
	r.recordedAt = f.db.Clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.forApp(scope)
	if app == nil {
		return
	}
	hour := counter(app.hours, hourOf(r.At))
	hour.requests++
	if r.Failed() {
		hour.failures++
		if r.Authenticated && f.admitsFailure(scope.AppID, r.Code, r.At) {
			app.failed = append(app.failed, r.storable())
		}
		if app.failures < KeptFailures {
			app.failures++
			app.requests = append(app.requests, r.storable())
		}
	} else if len(app.requests)-app.failures < KeptSuccesses {
		app.requests = append(app.requests, r.storable())
	}
}

// storable makes the texts of a request storable: those of a rejected one were not
// validated. Of a client without a usable key, only the message is kept.
func (r Request) storable() Request {
	if r.Failed() && !r.Authenticated {
		r.Identity, r.Feature = "", ""
	}
	r.Identity, r.Feature, r.Message = storableName(r.Identity), storableName(r.Feature), storableName(r.Message)
	return r
}

// maxNamed is the longest identity that a valid request names, 200 characters, in bytes.
const maxNamed = 4 * 200

// storableName bounds a text and replaces what Postgres refuses.
func storableName(name string) string {
	name = name[:min(len(name), maxNamed)]
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\ufffd"), "\x00", "\ufffd")
}

// failures is the key of a failure count: one code, or all for an empty code.
type failures struct {
	app  ids.ID
	code fault.Code
}

// admitsFailure counts a failure against the application's limit per minute. Some of
// each code are admitted beside a flood of another. A slow request of the minute before
// counts in the present one. The lock must be held.
func (f *Counters) admitsFailure(app ids.ID, code fault.Code, at int64) bool {
	minute := at / time.Minute.Milliseconds()
	if minute > f.minute || minute < f.minute-10 { // the latter after a clock that was ahead
		f.minute = minute
		clear(f.kept)
	}
	all, same := failures{app: app}, failures{app, code}
	f.kept[all]++
	if code != "" {
		f.kept[same]++
	}
	return f.kept[all] <= FailuresPerMinute || f.kept[same] <= failuresPerCode
}

// counter returns a counter and creates it when it is missing.
func counter[K comparable, V any](m map[K]*V, key K) *V {
	c := m[key]
	if c == nil {
		c = new(V)
		m[key] = c
	}
	return c
}

// extend widens the hour's range of transactions.
func (h *hourActivity) extend(id ids.ID) {
	if id.IsZero() {
		return
	}
	if h.oldest.IsZero() || bytes.Compare(id[:], h.oldest[:]) < 0 {
		h.oldest = id
	}
	if bytes.Compare(id[:], h.newest[:]) > 0 {
		h.newest = id
	}
}

// hourOf is the first millisecond of the hour.
func hourOf(ms int64) int64 {
	return metering.DayOf(ms).Start + (ms-metering.DayOf(ms).Start)/hourMillis*hourMillis
}

// drain removes and returns the stats of an application.
func (f *Counters) drain(app ids.ID) *appStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	counted := f.apps[app]
	delete(f.apps, app)
	return counted
}

// dropLate drops requests and denials that were held for too long. They stay counted.
func (f *Counters) dropLate(counted *appStats) {
	oldest, denied := f.db.Clock.Now()-maxHeld.Milliseconds(), len(counted.denied)
	counted.requests = slices.DeleteFunc(counted.requests, func(r Request) bool {
		if r.recordedAt < oldest && r.Failed() {
			counted.failures--
		}
		return r.recordedAt < oldest
	})
	counted.failed = slices.DeleteFunc(counted.failed, func(r Request) bool { return r.recordedAt < oldest })
	counted.denied = slices.DeleteFunc(counted.denied, func(d Denial) bool { return d.recordedAt < oldest })
	f.deniedDropped.Add(int64(denied - len(counted.denied)))
}

// pendingApps lists the applications with stats to flush.
func (f *Counters) pendingApps() []ids.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.apps))
}

// restore adds stats that could not be written to the current ones.
func (f *Counters) restore(old *appStats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.forApp(old.scope)
	if app == nil {
		return
	}
	for key, o := range old.uses {
		c := counter(app.uses, key)
		c.accepted, c.deduplicated, c.charged = c.accepted+o.accepted, c.deduplicated+o.deduplicated, c.charged.Join(o.charged)
	}
	for key, o := range old.denials {
		c := counter(app.denials, key)
		c.uses, c.checks = c.uses+o.uses, c.checks+o.checks
	}
	for key, o := range old.entries {
		c := counter(app.entries, key)
		c.entries, c.credited, c.debited = c.entries+o.entries, c.credited.Join(o.credited), c.debited.Join(o.debited)
	}
	for key, o := range old.hours {
		c := counter(app.hours, key)
		c.uses, c.denials, c.requests, c.failures = c.uses+o.uses, c.denials+o.denials, c.requests+o.requests, c.failures+o.failures
		c.extend(o.oldest)
		c.extend(o.newest)
	}
	for day, o := range old.active {
		if app.active[day] == nil {
			app.active[day] = sketch.New()
		}
		app.active[day].Merge(o)
	}
	if len(app.requests) == 0 { // newer ones are more useful
		app.requests, app.failures = old.requests, old.failures
	}
	if len(app.failed)+len(old.failed) <= heldFailures {
		app.failed = append(old.failed, app.failed...)
	}
	if len(app.denied)+len(old.denied) <= heldDenials {
		app.denied = append(old.denied, app.denied...)
	} else {
		f.deniedDropped.Add(int64(len(old.denied)))
	}
}
