package reports

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/internal/sketch"
	"purser/tenancy"
)

const (
	// How often a node flushes its stats.
	flushInterval = 5 * time.Second
	// A flush that takes longer is aborted and retried later.
	flushTimeout = 10 * time.Second
)

var (
	addUses = pg.Declare("add uses of a day", `
		INSERT INTO usage_days (app_id, day, feature_id, credit_id, org_id, accepted, deduplicated, charged_nanocredits)
		SELECT s.app_id, t.day, t.feature_id, t.credit_id, s.org_id, t.accepted, t.deduplicated, t.charged::numeric
		FROM app_state s CROSS JOIN unnest($2::bigint[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[], $7::text[])
			AS t (day, feature_id, credit_id, accepted, deduplicated, charged)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, day, feature_id, credit_id) DO UPDATE SET
			accepted = usage_days.accepted + excluded.accepted, deduplicated = usage_days.deduplicated + excluded.deduplicated,
			charged_nanocredits = usage_days.charged_nanocredits + excluded.charged_nanocredits`)

	addDenials = pg.Declare("add denials of a day", `
		INSERT INTO denial_days (app_id, day, feature_id, reason, org_id, uses, checks)
		SELECT s.app_id, t.day, t.feature_id, t.reason, s.org_id, t.uses, t.checks
		FROM app_state s CROSS JOIN unnest($2::bigint[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[])
			AS t (day, feature_id, reason, uses, checks)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, day, feature_id, reason) DO UPDATE SET
			uses = denial_days.uses + excluded.uses, checks = denial_days.checks + excluded.checks`)

	addEntries = pg.Declare("add entries of a day", `
		INSERT INTO entry_days (app_id, day, kind, credit_id, org_id, entries, came_nanocredits, taken_nanocredits)
		SELECT s.app_id, t.day, t.kind, t.credit_id, s.org_id, t.entries, t.came::numeric, t.taken::numeric
		FROM app_state s CROSS JOIN unnest($2::bigint[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::text[])
			AS t (day, kind, credit_id, entries, came, taken)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, day, kind, credit_id) DO UPDATE SET
			entries = entry_days.entries + excluded.entries,
			came_nanocredits = entry_days.came_nanocredits + excluded.came_nanocredits,
			taken_nanocredits = entry_days.taken_nanocredits + excluded.taken_nanocredits`)

	addActivity = pg.Declare("add activity of an hour", `
		INSERT INTO activity_hours (app_id, hour, org_id, uses, denials, requests, failures, oldest_tx, newest_tx)
		SELECT s.app_id, t.hour, s.org_id, t.uses, t.denials, t.requests, t.failures, t.oldest, t.newest
		FROM app_state s CROSS JOIN unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::uuid[], $8::uuid[])
			AS t (hour, uses, denials, requests, failures, oldest, newest)
		WHERE s.app_id = $1
		ON CONFLICT (app_id, hour) DO UPDATE SET
			uses = activity_hours.uses + excluded.uses, denials = activity_hours.denials + excluded.denials,
			requests = activity_hours.requests + excluded.requests, failures = activity_hours.failures + excluded.failures,
			oldest_tx = least(activity_hours.oldest_tx, excluded.oldest_tx), newest_tx = greatest(activity_hours.newest_tx, excluded.newest_tx)`)

	ensureActive = pg.Declare("ensure active day", `
		INSERT INTO active_days (app_id, day, org_id, sketch)
		SELECT s.app_id, $2, s.org_id, '' FROM app_state s WHERE s.app_id = $1
		ON CONFLICT (app_id, day) DO NOTHING`)

	lockActive = pg.Declare("lock active day", `
		SELECT sketch FROM active_days WHERE app_id = $1 AND day = $2 FOR UPDATE`)

	setActive = pg.Declare("set active day", `
		UPDATE active_days SET sketch = $3 WHERE app_id = $1 AND day = $2`)
)

// KeepStats flushes this node's stats every few seconds until stop is called, which
// flushes the rest.
func (s *Counters) KeepStats(log *slog.Logger) (stop func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(flushInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.flushStats(log)
				s.reportUsed()
			case <-done:
				s.flushStats(log)
				return
			}
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}

// OnUsed has called called every few seconds for each application with usage on this
// node. It must be set before KeepStats.
func (s *Counters) OnUsed(called func(tenancy.Scope)) { s.onUsed = called }

// MarkUsed has OnUsed's function called for an application without usage too: its sums
// become final while they are read.
func (s *Counters) MarkUsed(scope tenancy.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[scope.AppID] = scope
}

func (s *Counters) reportUsed() {
	s.mu.Lock()
	used := s.used
	s.used = make(map[ids.ID]tenancy.Scope)
	s.mu.Unlock()
	for _, scope := range used {
		if s.onUsed != nil {
			s.onUsed(scope)
		}
	}
}

func (s *Counters) flushStats(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := s.WriteStats(ctx); err != nil {
		log.Warn("stats flush failed", "cause", err)
	}
}

// WriteStats flushes this node's stats of every application. Counters that cannot be
// written are kept; failed requests and denials are dropped.
func (s *Counters) WriteStats(ctx context.Context) error {
	var failed error
	for _, app := range s.pendingApps() {
		if err := s.flush(ctx, app); err != nil {
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	return failed
}

// flush flushes the stats of an application after a flush that runs: its counters are not
// in the database yet.
func (s *Counters) flush(ctx context.Context, app ids.ID) error {
	done, err := s.flushes.Take(ctx, app)
	if err != nil {
		return fmt.Errorf("store: stats are being flushed: %w", err)
	}
	defer done()
	counted := s.drain(app)
	if counted == nil {
		return nil
	}
	return s.App(counted.scope).writeStats(ctx, counted)
}

// flushStats flushes this node's stats of the application, so that a page shows the
// reader's own latest requests. Failed requests that cannot be stored do not fail the
// page.
func (a App) flushStats(ctx context.Context) error {
	if err := a.node.flush(ctx, a.app.Scope.AppID); err != nil && !errors.Is(err, errFailuresDropped) {
		return err
	}
	return nil
}

// errFailuresDropped means that failed requests or denials could not be stored and are
// lost.
var errFailuresDropped = errors.New("store: failed requests or denials dropped")

// writeStats writes the failed requests and the denials in transactions of their own: a
// row that cannot be stored must not block the counters.
func (a App) writeStats(ctx context.Context, counted *appStats) error {
	a.node.dropLate(counted)
	err := a.transact(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.writeCounts(ctx, counted); err != nil {
			return err
		}
		if err := tx.writeActive(ctx, counted); err != nil {
			return err
		}
		return tx.writeRequests(ctx, counted.requests)
	})
	if err != nil {
		if !errors.Is(err, pg.ErrCommitUnknown) { // undercount rather than count twice
			a.node.restore(counted)
		}
		return err
	}
	if len(counted.uses) > 0 {
		a.node.MarkUsed(counted.scope)
	}
	return errors.Join(
		a.writeOrDrop(ctx, len(counted.failed), nil, func(ctx context.Context, tx appTx) error {
			return tx.writeFailures(ctx, counted.failed, a.node.OldestFailure())
		}),
		a.writeOrDrop(ctx, len(counted.denied), &a.node.deniedDropped, func(ctx context.Context, tx appTx) error {
			return tx.writeDenials(ctx, counted.denied, a.node.OldestDenial())
		}))
}

// writeOrDrop writes rows that are lost, and counted as such, when they cannot be stored.
func (a App) writeOrDrop(ctx context.Context, rows int, dropped *atomic.Int64, write func(context.Context, appTx) error) error {
	if rows == 0 {
		return nil
	}
	if err := a.transact(ctx, write); err != nil {
		if dropped != nil {
			dropped.Add(int64(rows))
		}
		return fmt.Errorf("%w: %w", errFailuresDropped, err)
	}
	return nil
}

// writeCounts writes in the order of the rows' keys, so that nodes which update the
// same rows cannot deadlock.
func (tx appTx) writeCounts(ctx context.Context, counted *appStats) error {
	usage := newColumns(6)
	for _, key := range sortedKeys(counted.uses, func(a, b usageDay) int {
		return cmp.Or(cmp.Compare(a.day, b.day), bytes.Compare(a.feature[:], b.feature[:]), bytes.Compare(a.credit[:], b.credit[:]))
	}) {
		c := counted.uses[key]
		usage.add(key.day, key.feature, key.credit, c.accepted, c.deduplicated, c.charged.String())
	}
	denials := newColumns(5)
	for _, key := range sortedKeys(counted.denials, func(a, b denialDay) int {
		return cmp.Or(cmp.Compare(a.day, b.day), bytes.Compare(a.feature[:], b.feature[:]), cmp.Compare(a.reason, b.reason))
	}) {
		c := counted.denials[key]
		denials.add(key.day, key.feature, string(key.reason), c.uses, c.checks)
	}
	entries := newColumns(6)
	for _, key := range sortedKeys(counted.entries, func(a, b entryDay) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.kind, b.kind), bytes.Compare(a.credit[:], b.credit[:]))
	}) {
		c := counted.entries[key]
		entries.add(key.day, string(key.kind), key.credit, c.entries, c.credited.String(), c.debited.String())
	}
	hours := newColumns(7)
	for _, hour := range sortedKeys(counted.hours, cmp.Compare) {
		c := counted.hours[hour]
		hours.add(hour, c.uses, c.denials, c.requests, c.failures, pg.OrNull(c.oldest), pg.OrNull(c.newest))
	}
	for _, added := range []struct {
		pg.Statement
		columns
	}{{addUses, usage}, {addDenials, denials}, {addEntries, entries}, {addActivity, hours}} {
		if err := added.columns.exec(ctx, tx, added.Statement); err != nil {
			return err
		}
	}
	return nil
}

func (tx appTx) writeActive(ctx context.Context, counted *appStats) error {
	for _, day := range sortedKeys(counted.active, cmp.Compare) {
		if _, err := tx.ExecAny(ctx, ensureActive, day); err != nil {
			return err
		}
		stored, err := pg.Find(ctx, tx, lockActive, pgx.RowTo[[]byte], pg.ErrNoAppState, day)
		if err != nil {
			return err
		}
		all, err := sketch.Decode(stored)
		if err != nil {
			return err
		}
		all.Merge(counted.active[day])
		if text := all.Encode(); !bytes.Equal(text, stored) {
			if err := tx.Exec(ctx, setActive, 1, day, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), compare)
}

// columns are rows transposed for unnest.
type columns [][]any

func newColumns(n int) columns { return make(columns, n) }

func (c columns) add(row ...any) {
	for i, value := range row {
		c[i] = append(c[i], value)
	}
}

// exec runs a statement that inserts one row for each row of the columns.
func (c columns) exec(ctx context.Context, tx appTx, s pg.Statement) error {
	if len(c[0]) == 0 {
		return nil
	}
	return tx.Exec(ctx, s, int64(len(c[0])), c.args()...)
}

func (c columns) args() (list []any) {
	for _, column := range c {
		list = append(list, column)
	}
	return list
}
