package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/packing"
	"purser/store/reports"
	"purser/store/storetest"
	"purser/store/verify"
)

// packedEvents is how many events of the fixture are packed: those of carl are too few.
const packedEvents = anns + 30

func TestPackedEventsAnswerAsBefore(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	warm := openEngine(t, b)
	for _, use := range b.uses[:3] {
		b.repeats(t, warm.Track, use, 0)
	}
	before := b.everything(t)
	seals := texts(t, b.conn, `SELECT format('%s %s %s', wallet_id, seq, seal) FROM wallet_seals ORDER BY 1`)
	rows, _ := b.places(t)
	if r := b.pack(t); r.Events != packedEvents || r.Before != b.before {
		t.Fatalf("packed %+v", r)
	}
	left, packed := b.places(t)
	if packed != fmt.Sprint(packedEvents) || rows == left {
		t.Errorf("of %s events %s are left and %s packed", rows, left, packed)
	}
	for i, line := range b.everything(t) {
		if line != before[i] {
			t.Errorf("before:\n%s\nafter:\n%s", before[i], line)
		}
	}
	for _, o := range []verify.Options{{}, {Batch: 150}, {New: true}, {Since: time.Now().Add(-time.Hour)}} {
		if v := b.verify(t, o); len(v.Unfinished) > 0 {
			t.Errorf("%+v: %+v", o, v)
		}
	}
	if after := texts(t, b.conn, `SELECT format('%s %s %s', wallet_id, seq, seal) FROM wallet_seals ORDER BY 1`); !slices.Equal(after, seals) {
		t.Errorf("the seals are %v, before %v", after, seals)
	}
	t.Run("in every way and on every node", func(t *testing.T) {
		cold := openEngine(t, b)
		for i, use := range b.uses {
			if i%50 > 2 && i < anns {
				continue
			}
			b.repeats(t, warm.Track, use, i)
			b.repeats(t, cold.Track, use, i)
		}
		for start := 0; start < len(b.uses); start += 300 {
			part := b.uses[start:min(start+300, len(b.uses))]
			outcomes, err := warm.TrackBatch(fresh(part))
			noError(t, err)
			for i, o := range outcomes {
				b.isRepeat(t, o.Decision, o.Err, start+i)
			}
		}
		outcomes, _, err := cold.TrackGroup(fresh(b.uses[10:20]))
		noError(t, err)
		for i, o := range outcomes {
			b.isRepeat(t, o.Decision, o.Err, 10+i)
		}
	})
	t.Run("no other event of the block is read", func(t *testing.T) {
		for _, name := range []string{"read packed events", "select packed event by its id"} {
			lines := texts(t, b.conn, `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) `+statementNamed(t, name), b.scope.AppID, []string{b.uses[500].EventID})
			if plan := strings.Join(lines, "\n"); !strings.Contains(plan, " on packed_events") || regexp.MustCompile(`Rows Removed by Filter: \d{3}`).MatchString(plan) {
				t.Errorf("%s:\n%s", name, plan)
			}
		}
	})
	t.Run("another body conflicts", func(t *testing.T) {
		for name, change := range map[string]func(*store.Usage){
			"another customer":  func(u *store.Usage) { u.Identity = "bob" },
			"a new customer":    func(u *store.Usage) { u.Identity = "dora" },
			"another quantity":  func(u *store.Usage) { u.Quantity++ },
			"another feature":   func(u *store.Usage) { u.FeatureKey = "limited" },
			"another entity":    func(u *store.Usage) { u.EntityID = "elsewhere" },
			"other properties":  func(u *store.Usage) { *u = labelled(*u, "unheard of") },
			"another time":      func(u *store.Usage) { u.OccurredAt = new(time.Now().Add(-time.Minute).UnixMilli()) },
			"without an entity": func(u *store.Usage) { u.EntityID = "" },
		} {
			use := fresh(b.uses[12:13])[0]
			change(&use)
			if d, err := warm.Track(use); err != nil || d.New || !d.Differs || d.Event.TransactionID != b.first[12].Event.TransactionID {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
		}
	})
	t.Run("an old id that is new is charged once", func(t *testing.T) {
		use := b.useOf("ann", packable(time.Now().Add(-2*time.Hour).UnixMilli()), 1)
		d, err := warm.Track(use)
		if err != nil || !d.New {
			t.Fatalf("%+v, %v", d, err)
		}
		use.TransactionID = ids.New()
		if again, err := warm.Track(use); err != nil || again.New || again.Event.TransactionID != d.Event.TransactionID {
			t.Errorf("%+v, %v", again, err)
		}
	})
	t.Run("a packed charge is reversed", func(t *testing.T) {
		reversed, _, err := b.Reverse(t.Context(), reversalOf(b.uses[16].EventID, nil))
		if err != nil || reversed.Amount != b.first[16].Event.Charge.Amount {
			t.Errorf("%+v, %v", reversed, err)
		}
		_, _, err = b.Reverse(t.Context(), reversalOf(b.uses[16].EventID, nil))
		wantFault(t, err, fault.EventNotReversible)
	})
	t.Run("the list of all customers begins after them", func(t *testing.T) {
		list, next, err := b.db.Reports(b.scope).Events(t.Context(), reports.EventQuery{Page: store.Page{Limit: 1000}})
		if err != nil || next != nil || len(list) == 0 || slices.ContainsFunc(list, func(e reports.EventFound) bool {
			return slices.ContainsFunc(b.uses[:packedEvents], func(u store.Usage) bool { return u.EventID == e.EventID })
		}) {
			t.Errorf("%d events, %v, %v", len(list), next, err)
		}
	})
	b.verify(t, verify.Options{New: true, Record: true})
	b.verify(t, verify.Options{})
	t.Run("a wallet with packed events is renamed and sealed again", func(t *testing.T) {
		w, _, err := b.Rename(t.Context(), renameOf("bob", "robert"))
		noError(t, err)
		_, err = b.FinishIdentityChange(t.Context(), w.ID, time.Now().Add(time.Hour).UnixMilli())
		noError(t, err)
		reseal(t, b.Verification(), w.ID, true)
		b.verify(t, verify.Options{})
		for i := range b.uses {
			if b.uses[i].Identity == "bob" {
				b.uses[i].Identity = "robert"
			}
		}
		b.repeats(t, warm.Track, b.uses[anns+5], anns+5)
	})
	t.Run("a second run has nothing to do, and a later one continues", func(t *testing.T) {
		if r := b.pack(t); r != (packing.Result{}) {
			t.Errorf("packed %+v", r)
		}
		hour := time.Now().Add(-time.Hour).UnixMilli()
		var more []store.Usage
		for i := range 20 {
			more = append(more, b.useOf("carl", packable(hour), i))
		}
		outcomes, err := warm.TrackBatch(more)
		noError(t, err)
		b.uses, b.first = append(b.uses, more...), append(b.first, outcomes...)
		b.before = time.Now().UnixMilli() + 1
		soon(t, "usage that is added up", func() bool { return b.settle(t).Until >= b.before })
		if r, skipped := b.tried(t); r.Events != 0 || len(skipped) != 1 || !strings.Contains(skipped["carl"], "purser verify --new") {
			t.Errorf("entries that are not sealed: %+v, %v", r, skipped)
		}
		b.verify(t, verify.Options{New: true, Record: true})
		// Those of carl before, and the new ones.
		if r := b.pack(t); r.Events != 20+packing.MinBlock-1 {
			t.Errorf("packed %+v", r)
		}
		for i, use := range b.uses {
			if i%100 == 0 || i > anns {
				b.repeats(t, warm.Track, use, i)
			}
		}
		b.verify(t, verify.Options{})
		b.places(t)
	})
	t.Run("a wallet with packed events is erased", func(t *testing.T) {
		entries := b.everyEntry(t, "ann")
		erased, _, err := b.Erase(t.Context(), erasureOf("ann"))
		noError(t, err)
		for _, now := range []int64{time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli()} {
			next, err := b.FinishIdentityChange(t.Context(), erased.WalletID, now)
			noError(t, err)
			reseal(t, b.Verification(), erased.WalletID, next == 0)
		}
		b.verify(t, verify.Options{})
		w, err := b.db.Reports(b.scope).Transaction(t.Context(), b.first[3].Event.TransactionID)
		if err != nil || w.WalletID != erased.WalletID || w.Identity == "ann" {
			t.Errorf("a packed transaction is %+v, %v", w, err)
		}
		if after := b.everyEntry(t, w.Identity); after != entries {
			t.Errorf("%d entries became %d", entries, after)
		}
		// Its ids are taken, also for a new wallet of the identity.
		if d, err := warm.Track(fresh(b.uses[3:4])[0]); err != nil || d.New || d.Verdict != metering.Duplicate {
			t.Errorf("a repeat is %+v, %v", d, err)
		}
		reversed, _, err := b.Reverse(t.Context(), reversalOf(b.uses[20].EventID, nil))
		if err != nil || reversed.Amount != b.first[20].Event.Charge.Amount {
			t.Errorf("%+v, %v", reversed, err)
		}
		b.verify(t, verify.Options{New: true, Record: true})
		b.verify(t, verify.Options{})
	})
}

// everyEntry counts the entries of a customer.
func (b *packedBooks) everyEntry(t *testing.T, identity string) (n int) {
	t.Helper()
	for q := (reports.HistoryQuery{Identity: identity, Limit: 500}); ; {
		list, next, err := b.db.Reports(b.scope).History(t.Context(), q)
		noError(t, err)
		n += len(list)
		if q.Position = next; next.Seq == 0 {
			return n
		}
	}
}

func openEngine(t *testing.T, b *packedBooks) *store.Engine {
	t.Helper()
	usage, err := openStore(t, b.url).OpenEngine(t.Context(), store.EngineOptions{})
	noError(t, err)
	t.Cleanup(usage.Close)
	usage.SetTimeouts(patience, patience) // lookups of hundreds of packed events, with the race detector on a busy machine
	return usage
}

// fresh are the same requests with new transactions: to send them once more, or for the first
// time, since the engine refuses ids that are too old.
func fresh(uses []store.Usage) []store.Usage {
	list := slices.Clone(uses)
	for i := range list {
		list[i].TransactionID = ids.New()
	}
	return list
}

func (b *packedBooks) repeats(t *testing.T, track func(store.Usage) (metering.Decision, error), use store.Usage, i int) {
	t.Helper()
	if i == 0 {
		i = slices.IndexFunc(b.uses, func(u store.Usage) bool { return u.EventID == use.EventID })
	}
	d, err := track(fresh([]store.Usage{use})[0])
	b.isRepeat(t, d, err, i)
}

// isRepeat holds the answer to a repeated event to the first one.
func (b *packedBooks) isRepeat(t *testing.T, d metering.Decision, err error, i int) {
	t.Helper()
	want := b.first[i].Event
	if got := d.Event; err != nil || d.New || d.Differs || d.Verdict != metering.Duplicate || got.TransactionID != want.TransactionID || got.Charge.Amount != want.Charge.Amount ||
		got.Period != want.Period || got.DeduplicatedFrom != want.DeduplicatedFrom || got.CreatedAt != want.CreatedAt {
		t.Errorf("event %d: %+v, %v, want a repeat of %+v", i, d, err, want)
	}
}

// TestPackingEndsAnywhere ends a run in every window between its steps, and inside of the
// transactions that move events.
func TestPackingEndsAnywhere(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	usage := openEngine(t, b)
	random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
	killed := errors.New("killed")
	ends := map[string]int{}
	for ended := true; ended; {
		p := b.packer(t)
		p.Between = func(step string) error {
			if ends[step]++; ends[step] <= 2 {
				return killed
			}
			return nil
		}
		_, err := p.Pack(t.Context(), b.scope, b.before, b.before)
		if ended = errors.Is(err, killed); !ended {
			noError(t, err)
		}
		b.places(t)
		for range 20 {
			i := random.IntN(packedEvents)
			b.repeats(t, usage.Track, b.uses[i], i)
		}
		b.verify(t, verify.Options{Batch: 500})
	}
	if _, packed := b.places(t); packed != fmt.Sprint(packedEvents) || min(ends["announced"], ends["indexed"], ends["moving"], ends["moved"]) < 2 {
		t.Errorf("%s events are packed after %v", packed, ends)
	}
	b.verify(t, verify.Options{})
}

// TestNoEventIsChargedTwiceWhileItIsPacked repeats every event on two nodes with warm caches,
// alone, in batches and in groups, and for another customer, while a run packs them.
func TestNoEventIsChargedTwiceWhileItIsPacked(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	nodes := []*store.Engine{openEngine(t, b), openEngine(t, b)}
	for i, node := range nodes {
		for _, identity := range []string{"ann", "bob"} {
			d, err := node.Track(b.useOf(identity, ids.New().String(), i))
			noError(t, err)
			noError(t, d.Err())
		}
	}
	charged := texts(t, b.conn, `SELECT sum(last_seq)::text FROM wallets`)
	var done atomic.Bool
	result := make(chan error, 1)
	p := b.packer(t)
	go func() {
		defer done.Store(true)
		packed, r, err := int64(0), packing.Result{Skipped: 1}, error(nil)
		// A run tries wallets again whose locks were never free for the one before.
		for runs := 0; err == nil && r.Skipped > 0 && runs < 10; runs++ {
			r, err = p.Pack(context.WithoutCancel(t.Context()), b.scope, b.before, b.before)
			packed += r.Events
		}
		if err == nil && packed != packedEvents {
			err = fmt.Errorf("packed %d events, skipped %d wallets", packed, r.Skipped)
		}
		result <- err
	}()
	sent, seed := atomic.Int64{}, storetest.Seed(t)
	atOnce(8, func(worker int) {
		node, random := nodes[worker%2], rand.New(rand.NewPCG(seed, uint64(worker)))
		for round := 0; round < 3 || !done.Load(); round++ {
			switch start := random.IntN(packedEvents - 60); worker / 2 {
			case 0:
				outcomes, err := node.TrackBatch(fresh(b.uses[start : start+60]))
				if err != nil {
					t.Error(err)
					return
				}
				for i, o := range outcomes {
					b.isRepeat(t, o.Decision, o.Err, start+i)
				}
			case 1:
				start = random.IntN(anns - 10)
				outcomes, _, err := node.TrackGroup(fresh(b.uses[start : start+10]))
				if err != nil {
					t.Error(err)
					return
				}
				for i, o := range outcomes {
					b.isRepeat(t, o.Decision, o.Err, start+i)
				}
			case 2:
				use := fresh(b.uses[start : start+1])[0]
				use.Identity = map[string]string{"ann": "bob", "bob": "ann"}[use.Identity]
				if d, err := node.Track(use); err != nil || d.New || !d.Differs {
					t.Errorf("another customer: %+v, %v", d, err)
				}
			default:
				b.repeats(t, node.Track, b.uses[start], start)
			}
			sent.Add(1)
		}
	})
	noError(t, <-result)
	if after := texts(t, b.conn, `SELECT sum(last_seq)::text FROM wallets`); after[0] != charged[0] {
		t.Errorf("%s entries became %s with %d repeats", charged[0], after[0], sent.Load())
	}
	b.places(t)
	b.verify(t, verify.Options{})
}

// TestPackedEventsAreVerified changes blocks and what leads to them, one after the other.
func TestPackedEventsAreVerified(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	b.pack(t)
	b.verify(t, verify.Options{})
	const bobs = ` WHERE wallet_id = (SELECT id FROM wallets WHERE identity = 'bob')`
	for sql, want := range map[string]string{
		`UPDATE packed_events SET amounts[2] = amounts[2] + 1` + bobs:                 "balance",
		`UPDATE packed_events SET balances_after[30] = balances_after[30] + 1` + bobs: "balance",
		`UPDATE packed_events SET quantities[3] = 4` + bobs:                           "sealed entries",
		`UPDATE packed_events SET tx_ids[1] = app_id` + bobs:                          "is found by its id",
		`UPDATE packed_events SET event_ids[1] = tx_ids[1]` + bobs:                    "is found by its id",
		`UPDATE packed_events SET entity_ids[2] = 'another'` + bobs:                   "sealed entries",
		`UPDATE packed_events SET org_id = app_id` + bobs:                             "organization",
		`INSERT INTO packed_events (app_id, wallet_id, last_seq, first_seq, org_id, events, first_tx, last_tx, seqs, tx_ids, event_ids, key_ids, price_numbers, quantities, created_ats, amounts, balances_after)
			SELECT app_id, wallet_id, last_seq - 1, first_seq, org_id, 0, first_tx, last_tx, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}' FROM packed_events` + bobs + ` ORDER BY last_seq LIMIT 1`: "is found by its id",
		`DELETE FROM packed_events` + bobs: "missing",
		`DELETE FROM packed_ids WHERE last_id = (SELECT min(last_id::text)::uuid FROM packed_ids)`: "is found by its id",
		`UPDATE packed_ids SET seqs[1] = seqs[1] + 1`:                                              "is found by its id",
		`UPDATE packed_runs SET before = 1`:                                                        "is found by its id",
		`UPDATE packed_runs SET last_tx = app_id`:                                                  "is found by its id",
		`DELETE FROM usage_events WHERE event_id = 'text'`:                                         "without a gap",
		`INSERT INTO usage_events SELECT app_id, org_id, tx_id, wallet_id, key_id, seq + 5000, price_number, quantity, created_at, occurred_at, period_start, period_end, allowance_limit, allowance_used, allowance_start, allowance_end, basis_points, amount_nanocredits, balance_after, debt_after, quoted_nanocredits, deduplicated_from, allowance_overage,
			(SELECT '\x00'::bytea || uuid_send(event_ids[7]) FROM packed_events LIMIT 1), entity_id FROM usage_events WHERE event_id = 'text'`: "in no other place",
	} {
		b.spoiled(t, sql, func() {
			if rules := strings.Join(b.broken(t, verify.Options{}), "\n"); !strings.Contains(rules, want) {
				t.Errorf("%s: %q is not among\n%s", sql, want, rules)
			}
		})
	}
	b.verify(t, verify.Options{})
}

// spoiled runs a check while a statement has changed the database, and puts it back.
func (b *packedBooks) spoiled(t *testing.T, sql string, check func()) {
	t.Helper()
	tables := []string{"packed_events", "packed_ids", "packed_runs", "usage_events"}
	for _, table := range tables {
		exec(t, b.conn, `CREATE TEMP TABLE kept_`+table+` AS TABLE `+table)
	}
	exec(t, b.conn, `SET purser.reads_packed = 'on'`)
	exec(t, b.conn, sql)
	check()
	for _, table := range tables {
		exec(t, b.conn, `DELETE FROM `+table)
		exec(t, b.conn, `INSERT INTO `+table+` SELECT * FROM kept_`+table)
		exec(t, b.conn, `DROP TABLE kept_`+table)
	}
}

func TestPackingRefuses(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	t.Run("events that are not added up", func(t *testing.T) {
		_, err := b.packer(t).Pack(t.Context(), b.scope, time.Now().Add(time.Hour).UnixMilli(), 1)
		if err == nil || !strings.Contains(err.Error(), "statistics") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a login that does not own the tables", func(t *testing.T) {
		_, err := packing.Open(t.Context(), asApp(b.url), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "does not own the tables") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a second process", func(t *testing.T) {
		p, second := b.packer(t), b.packer(t)
		p.Between = func(string) error {
			_, err := second.Pack(t.Context(), b.scope, b.before, b.before)
			if err == nil || !strings.Contains(err.Error(), "another process") {
				t.Errorf("got %v", err)
			}
			return errors.New("stopped")
		}
		if _, err := p.Pack(t.Context(), b.scope, b.before, b.before); err == nil || err.Error() != "stopped" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an event that is in no list of ids", func(t *testing.T) {
		p := b.packer(t)
		p.Between = func(step string) error {
			if step == "indexed" {
				exec(t, b.conn, `DELETE FROM packed_ids WHERE last_id = (SELECT max(last_id::text)::uuid FROM packed_ids)`)
			}
			return nil
		}
		var reasons []string
		p.Skipped = func(_ ids.ID, reason error) { reasons = append(reasons, reason.Error()) }
		r, err := p.Pack(t.Context(), b.scope, b.before, b.before)
		if err != nil || r.Skipped != int64(len(reasons)) || len(reasons) == 0 || !strings.Contains(reasons[0], "not in the list of ids") {
			t.Errorf("got %+v, %v, %v", r, reasons, err)
		}
		b.places(t)
		b.verify(t, verify.Options{})
	})
	t.Run("the same event in the next run, which lists it", func(t *testing.T) {
		b.trackMore(t, []store.Usage{b.useOf("ann", packable(time.Now().Add(-time.Hour).UnixMilli()), 1)})
		b.verify(t, verify.Options{New: true, Record: true})
		if _, skipped := b.tried(t); len(skipped) > 0 || b.packedOf(t, "ann") != fmt.Sprint(anns+1) {
			t.Errorf("%s events are packed, skipped %v", b.packedOf(t, "ann"), skipped)
		}
		b.verify(t, verify.Options{})
	})
	t.Run("the distribution of its database afterwards", func(t *testing.T) {
		if err := store.Distribute(t.Context(), b.url); err == nil || !strings.Contains(err.Error(), "packed events can't be distributed") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("sessions that do not look packed events up", func(t *testing.T) {
		exec(t, b.conn, `RESET purser.reads_packed`)
		_, err := b.conn.Exec(t.Context(), `INSERT INTO usage_events SELECT app_id, org_id, tx_id, wallet_id, key_id, seq + 5000, price_number, quantity, created_at, occurred_at, period_start, period_end, allowance_limit, allowance_used, allowance_start, allowance_end, basis_points, amount_nanocredits, balance_after, debt_after, quoted_nanocredits, deduplicated_from, allowance_overage,
			'new', entity_id FROM usage_events WHERE event_id = 'text'`)
		if err == nil || !strings.Contains(err.Error(), "session_reads_packed_events") {
			t.Errorf("got %v", err)
		}
	})
}

// A transaction that was decided before the run was announced may not know that ids have to
// be looked up, so nothing is moved before it has ended.
func TestPackingWaitsForOlderTransactions(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	other := connect(t, b.url)
	p := b.packer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	moving := false
	p.Between = func(step string) error {
		if step == "announced" {
			exec(t, other, `BEGIN`)
			exec(t, other, `SELECT pg_current_xact_id()`)
			time.AfterFunc(500*time.Millisecond, cancel)
			return nil
		}
		moving = true
		return errors.New("ended")
	}
	if _, err := p.Pack(ctx, b.scope, b.before, b.before); !errors.Is(err, context.Canceled) || moving {
		t.Errorf("beside an open transaction: %v, moving %t", err, moving)
	}
	exec(t, other, `COMMIT`)
	// If a statement was cancelled, its session and the lock on the application end a moment
	// later.
	soon(t, "a run after it", func() bool {
		r, err := b.packer(t).Pack(t.Context(), b.scope, b.before, b.before)
		if err != nil && strings.Contains(err.Error(), "another process packs") {
			return false
		}
		noError(t, err)
		if r.Events != packedEvents {
			t.Errorf("packed %+v", r)
		}
		return true
	})
}
