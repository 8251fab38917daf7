package store

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
)

const (
	hourMillis = 3_600_000
	// Of one application's requests between two writings, so many failures and so
	// many of the others are kept one by one. All of them are counted.
	keptFailures  = 100
	keptSuccesses = 20
	// So many applications' figures are held while the database does not take them;
	// those of further ones are lost. Within one, what is counted is bounded by its
	// catalog.
	maxCountedApps = 20_000
)

// figures is what this node has counted since it last wrote it down: a few hundred
// nanoseconds a use, and no statement in its transaction. The books do not rest on
// it, and it does not rest on them.
type figures struct {
	mu   sync.Mutex
	apps map[ids.ID]*appFigures

	minute int64            // that kept is about
	kept   map[failures]int // failures in the minute
}

type appFigures struct {
	scope    tenancy.Scope
	uses     map[useDay]*usesOfDay
	denials  map[denialDay]*denialsOfDay
	entries  map[entryDay]*entriesOfDay
	active   map[int64]*sketch
	hours    map[int64]*hourActivity
	requests []Request
	failures int // among requests
	failed   []Request
}

type (
	useDay struct {
		day             int64
		feature, credit ids.ID
	}
	usesOfDay struct {
		accepted, deduplicated int64
		charged                metering.Total
	}
	denialDay struct {
		day     int64
		feature ids.ID
		reason  fault.Code
	}
	denialsOfDay struct{ uses, checks int64 }
	entryDay     struct {
		day    int64
		kind   metering.EntryKind
		credit ids.ID
	}
	entriesOfDay struct {
		entries     int64
		came, taken metering.Total
	}
	hourActivity struct {
		uses, denials, requests, failures int64
		oldest, newest                    ids.ID // of its uses
	}
)

func newFigures() *figures {
	return &figures{apps: make(map[ids.ID]*appFigures), kept: make(map[failures]int)}
}

func newAppFigures(scope tenancy.Scope) *appFigures {
	return &appFigures{
		scope:   scope,
		uses:    make(map[useDay]*usesOfDay),
		denials: make(map[denialDay]*denialsOfDay),
		entries: make(map[entryDay]*entriesOfDay),
		active:  make(map[int64]*sketch),
		hours:   make(map[int64]*hourActivity),
	}
}

// of finds the application's figures, nil when there is no room for more. The lock
// must be held.
func (f *figures) of(scope tenancy.Scope) *appFigures {
	app := f.apps[scope.AppID]
	if app == nil && len(f.apps) < maxCountedApps {
		app = newAppFigures(scope)
		f.apps[scope.AppID] = app
	}
	return app
}

// noteUse counts a decision that was given. A repeat is no second use, not even one
// of our own after a lost reply; and a use that was sent wrongly is a failed request
// but no denial.
func (f *figures) noteUse(scope tenancy.Scope, d *metering.Decision, check bool) {
	denied := d.Verdict == metering.Refused
	used := !check && d.New
	if !denied && !used {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.of(scope)
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
	hour.span(e.TransactionID)
	usage := counter(app.uses, useDay{day, e.FeatureID, e.CreditID})
	if d.Verdict == metering.Accepted {
		usage.accepted++
	} else {
		usage.deduplicated++
	}
	usage.charged = usage.charged.Plus(e.Charge.Amount)
	if app.active[day] == nil {
		app.active[day] = newSketch()
	}
	app.active[day].add(e.WalletID)
}

// noteEntries counts what a transaction has written into the journal.
func (f *figures) noteEntries(scope tenancy.Scope, list []metering.Entry) {
	if len(list) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.of(scope)
	if app == nil {
		return
	}
	for _, e := range list {
		entries := counter(app.entries, entryDay{metering.DayOf(e.CreatedAt).Start, e.Kind, e.CreditID})
		entries.entries++
		if e.Delta.Out {
			entries.taken = entries.taken.Plus(e.Delta.Amount)
		} else {
			entries.came = entries.came.Plus(e.Delta.Amount)
		}
	}
}

// RecordRequest counts a request to an application and keeps it for the list of
// recent ones: every failure, within reason, and some of the rest.
func (s *Store) RecordRequest(scope tenancy.Scope, r Request) {
	f := s.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.of(scope)
	if app == nil {
		return
	}
	hour := counter(app.hours, hourOf(r.At))
	hour.requests++
	if r.Failed() {
		hour.failures++
		if r.Authenticated && f.keepsFailure(scope.AppID, r.Code, r.At) {
			r.Identity, r.Feature = readable(r.Identity), readable(r.Feature)
			app.failed = append(app.failed, r)
		}
		if app.failures < keptFailures {
			app.failures++
			app.requests = append(app.requests, r)
		}
	} else if len(app.requests)-app.failures < keptSuccesses {
		app.requests = append(app.requests, r)
	}
}

// maxNamed is the longest identity that a valid request names, 200 characters, in bytes.
const maxNamed = 4 * 200

// readable is what a refused request named, as far as Postgres can store it: the name
// was not checked before the request was refused.
func readable(name string) string {
	name = name[:min(len(name), maxNamed)]
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\ufffd"), "\x00", "\ufffd")
}

// failures are those of an application, with one code or, without a code, all of them.
type failures struct {
	app  ids.ID
	code fault.Code
}

// keepsFailure counts a failure against what an application may add in a minute. Some of
// each code are kept beside a flood of another. The lock must be held.
func (f *figures) keepsFailure(app ids.ID, code fault.Code, at int64) bool {
	if minute := at / time.Minute.Milliseconds(); minute != f.minute {
		f.minute = minute
		clear(f.kept)
	}
	all, same := failures{app: app}, failures{app, code}
	f.kept[all]++
	if code != "" {
		f.kept[same]++
	}
	return f.kept[all] <= failuresPerMinute || f.kept[same] <= failuresPerCode
}

// counter finds a counter, made when it is missing.
func counter[K comparable, V any](m map[K]*V, key K) *V {
	c := m[key]
	if c == nil {
		c = new(V)
		m[key] = c
	}
	return c
}

// span stretches the hour's transactions to one more.
func (h *hourActivity) span(id ids.ID) {
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

// hourOf is the first millisecond of a moment's hour.
func hourOf(ms int64) int64 {
	return metering.DayOf(ms).Start + (ms-metering.DayOf(ms).Start)/hourMillis*hourMillis
}

// take gives all that was counted of an application and begins anew.
func (f *figures) take(app ids.ID) *appFigures {
	f.mu.Lock()
	defer f.mu.Unlock()
	counted := f.apps[app]
	delete(f.apps, app)
	return counted
}

// counted lists the applications that there is something to write down of.
func (f *figures) counted() (list []ids.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for app := range f.apps {
		list = append(list, app)
	}
	return list
}

// giveBack puts figures that could not be written down to those of since.
func (f *figures) giveBack(old *appFigures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	app := f.of(old.scope)
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
		c.entries, c.came, c.taken = c.entries+o.entries, c.came.Join(o.came), c.taken.Join(o.taken)
	}
	for key, o := range old.hours {
		c := counter(app.hours, key)
		c.uses, c.denials, c.requests, c.failures = c.uses+o.uses, c.denials+o.denials, c.requests+o.requests, c.failures+o.failures
		c.span(o.oldest)
		c.span(o.newest)
	}
	for day, o := range old.active {
		if app.active[day] == nil {
			app.active[day] = newSketch()
		}
		app.active[day].join(o)
	}
	if len(app.requests) == 0 { // the newer ones tell more
		app.requests, app.failures = old.requests, old.failures
	}
	if len(app.failed)+len(old.failed) <= heldFailures {
		app.failed = append(old.failed, app.failed...)
	}
}
