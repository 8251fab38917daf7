package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store/internal/pg"
	"purser/tenancy"
)

// Verification is what one pass over an application's books has found.
type Verification struct {
	Scope       tenancy.Scope
	Wallets     int64 // with entries that were read
	Entries     int64 // that were read, of the journal and of usage
	Differences []Difference
	More        bool // there are more than are listed
	// Unfinished are the rules that were not checked everywhere, because the database
	// canceled a statement: it took longer than its limit.
	Unfinished []string
}

// Difference is one place where the books do not agree with themselves.
type Difference struct {
	Check    string // the rule that is broken
	WalletID ids.ID // zero when it is about no wallet
	Identity string // the customer of the wallet, when it is known
	Detail   string // what was expected and what is there
}

// Options says what a pass reads and what it leaves behind.
type Options struct {
	// New reads only entries that no recorded pass has verified.
	New bool
	// Since reads those, and again every entry that was made at this moment or later.
	Since time.Time
	// Record stores how far the entries were verified, with their seals.
	Record bool
	// Now is when seals are dated; it is needed to record.
	Now int64
	// Pause is waited between two batches, so that a pass beside a busy server
	// leaves it most of the time.
	Pause time.Duration
	// Batch is how many entries one transaction reads; 20,000 when zero. It bounds the
	// memory of a pass, and how long a snapshot holds back vacuum: about a tenth of a
	// second.
	Batch int64
	// Page is how many wallets, or rows of another table, one statement goes through;
	// 10,000 when zero.
	Page int64
}

// all reports whether the pass reads every entry.
func (o Options) all() bool { return !o.New && o.Since.IsZero() }

const (
	// maxDifferences is how many differences of one rule are listed.
	maxDifferences = 100
	verifyBatch    = 20_000
	// verifyPage is VerifyOptions.Page when it is zero.
	verifyPage = 10_000
	// verifyWallets is how many wallets share one transaction.
	verifyWallets = 1000
	// verifyStatement is how long one statement of a pass may run. It bounds the age
	// of the snapshot when a database is much slower than expected.
	verifyStatement = 5 * time.Minute
	// idLead is how long before its commit an entry may have got its id, whose time a
	// pass since a moment goes by: longer than any request takes. What no pass has
	// verified yet is found without any clock.
	idLead = 30 * time.Second
)

// Verify recomputes an application from its journal: balances, debts, counters,
// chains, billed periods and amounts, and what was sold against what was posted.
// It reads many short snapshots, each consistent in itself, so it may run beside a
// server at work. When the context ends it stops; what was recorded stays recorded.
func (a App) Verify(ctx context.Context, o Options) (Verification, error) {
	o.Batch = cmp.Or(o.Batch, verifyBatch)
	o.Page = cmp.Or(o.Page, verifyPage)
	p := &verifyPass{app: a, options: o, found: map[string]int{}, listed: map[Difference]bool{}}
	p.result.Scope = a.app.Scope
	err := p.run(ctx)
	return p.result, err
}

// verifyPass is a pass under way.
type verifyPass struct {
	app     App
	options Options
	catalog verifyCatalog
	first   map[ids.ID]int64 // the first entry of each wallet since the moment
	locked  map[ids.ID]bool  // features that were fixed when the pass began
	found   map[string]int   // differences so far, by rule
	listed  map[Difference]bool
	usage   usageState
	result  Verification
}

// report notes a difference, once. Past the limit of its rule it only counts.
func (p *verifyPass) report(d Difference) {
	if p.listed[d] {
		return
	}
	p.found[d.Check]++
	if p.found[d.Check] > maxDifferences {
		p.result.More = true
		return
	}
	p.listed[d] = true
	p.result.Differences = append(p.result.Differences, d)
}

func (p *verifyPass) run(ctx context.Context) error {
	if err := p.read(ctx, p.prepare); err != nil {
		return err
	}
	for after := (ids.ID{}); ; {
		var page []verifyRange
		var last ids.ID
		err := p.read(ctx, func(ctx context.Context, tx appTx) (err error) {
			page, last, err = p.page(ctx, tx, after)
			return err
		})
		if err != nil {
			return err
		}
		if err := p.walk(ctx, page); err != nil {
			return err
		}
		if last.IsZero() {
			break
		}
		after = last
	}
	if err := p.checkUsage(ctx); err != nil {
		return err
	}
	return p.check(ctx)
}

// read runs work in a snapshot of its own, with limits for a pass instead of those
// for a request.
func (p *verifyPass) read(ctx context.Context, work func(context.Context, appTx) error) error {
	return p.app.snapshot(ctx, func(ctx context.Context, tx appTx) error {
		if err := tx.setForVerification(ctx); err != nil {
			return err
		}
		return work(ctx, tx)
	})
}

// verificationSettings give a transaction time, and hold it to one processor and little
// memory. Plans are made for the values at hand, unless the database's address says
// otherwise: a generic plan was chosen for tables of another size.
var (
	verificationSettings = [][2]string{
		{"statement_timeout", fmt.Sprint(verifyStatement.Milliseconds())}, {"idle_in_transaction_session_timeout", "1min"},
		{"max_parallel_workers_per_gather", "0"}, {"work_mem", "16MB"}, {"jit", "off"},
	}
	planForValues = "set_config('plan_cache_mode', CASE current_setting('plan_cache_mode') WHEN 'auto' THEN 'force_custom_plan' ELSE current_setting('plan_cache_mode') END, true)"

	// prepareVerification sets all of them in one statement that is prepared.
	prepareVerification = settingsQuery()
	// Citus forwards the effect of SET to its shards, and not that of set_config.
	prepareDistributed = settingsCommands()
)

func settingsQuery() string {
	columns := []string{planForValues}
	for _, s := range verificationSettings {
		columns = append(columns, fmt.Sprintf("set_config('%s', '%s', true)", s[0], s[1]))
	}
	return "SELECT " + strings.Join(columns, ", ")
}

func settingsCommands() string {
	commands := []string{"SELECT " + planForValues}
	for _, s := range verificationSettings {
		commands = append(commands, fmt.Sprintf("SET LOCAL %s = '%s'", s[0], s[1]))
	}
	return strings.Join(commands, "; ")
}

// list runs one query in a snapshot of its own, as read does.
func list[T any](ctx context.Context, p *verifyPass, s pg.Statement, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	if !p.app.app.DB.Distributed {
		return pg.ListInSnapshot(ctx, p.app.app, prepareVerification, s, read, args...)
	}
	return pg.Return(ctx, p.read, func(ctx context.Context, tx appTx) ([]T, error) { return pg.Collect(ctx, tx, s, read, args...) })
}

// setForVerification applies the settings in one round trip.
func (tx appTx) setForVerification(ctx context.Context) error {
	var err error
	if tx.Distributed {
		_, err = tx.Conn.Exec(ctx, prepareDistributed)
	} else {
		rows, _ := tx.Conn.Query(ctx, prepareVerification) // Exec without arguments would parse it each time
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("store: settings of the verification: %w", err)
	}
	return nil
}

// prepare loads what every batch needs.
func (p *verifyPass) prepare(ctx context.Context, tx appTx) (err error) {
	if err = p.catalog.load(ctx, tx); err != nil {
		return err
	}
	if err = p.prepareUsage(ctx, tx); err != nil {
		return err
	}
	p.locked = make(map[ids.ID]bool)
	for id, f := range p.catalog.features {
		p.locked[id] = f.locked
	}
	if p.options.Since.IsZero() {
		return nil
	}
	p.first = make(map[ids.ID]int64)
	err = pg.Each(ctx, tx, verifySince, func(row pgx.CollectableRow) error {
		var wallet ids.ID
		var seq int64
		err := row.Scan(&wallet, &seq)
		p.first[wallet] = seq
		return err
	}, firstID(p.options.Since))
	return err
}

// firstID is the lowest id that can have been made at the moment or later.
func firstID(since time.Time) ids.ID {
	return pg.IDAt(max(0, since.Add(-idLead).UnixMilli()))
}

// verifyRange is a wallet with entries to read.
type verifyRange struct {
	wallet ids.ID
	proof  *walletProof // nil until the wallet was read
	after  int64        // the entry before the first that is read
	last   int64        // the wallet's last entry, when it was listed
}

// page lists the wallets behind one that have entries to read. The last wallet that
// was looked at is where the next page begins; zero when there are no more.
func (p *verifyPass) page(ctx context.Context, tx appTx, after ids.ID) (list []verifyRange, last ids.ID, err error) {
	var seen int64
	err = pg.Each(ctx, tx, verifyWalletPage, func(row pgx.CollectableRow) error {
		var id ids.ID
		var lastSeq, sealed int64
		err := row.Scan(&id, &lastSeq, &sealed, &seen)
		last = id
		if from, moved := p.from(id, lastSeq, sealed); moved {
			list = append(list, verifyRange{wallet: id, after: from, last: lastSeq})
		}
		return err
	}, after, p.options.Page, p.options.all() || p.first != nil)
	if seen < p.options.Page {
		last = ids.ID{}
	}
	return list, last, err
}

// from is the entry after which a wallet is read, and whether it is read at all.
func (p *verifyPass) from(wallet ids.ID, last, sealed int64) (after int64, moved bool) {
	if p.options.all() {
		return 0, true
	}
	after = sealed
	if first, since := p.first[wallet]; since && first-1 < after {
		after = first - 1
	}
	return after, last != after
}

// walk reads the entries of wallets, batch by batch. A wallet with more entries
// than a batch holds is read in several, and its proof is carried on.
func (p *verifyPass) walk(ctx context.Context, list []verifyRange) error {
	for len(list) > 0 {
		batch, rest := nextBatch(list, p.options.Batch)
		walked, err := p.batch(ctx, batch)
		if finished, err := p.finished(ctx, ruleChain, err); err != nil {
			return err
		} else if !finished {
			list = rest
			continue
		}
		// Before they are recorded: what is sealed is not read again by the next pass.
		if err := p.checkWalked(ctx, walked); err != nil {
			return err
		}
		if p.options.Record {
			if err := p.record(ctx, walked); err != nil {
				return err
			}
		}
		unfinished := slices.DeleteFunc(walked, func(r verifyRange) bool { return r.proof.done })
		list = slices.Concat(unfinished, rest)
		if err := pauseFor(ctx, p.options.Pause); err != nil {
			return err
		}
	}
	return nil
}

// nextBatch takes as many wallets as have entries for one batch.
func nextBatch(list []verifyRange, size int64) (batch, rest []verifyRange) {
	entries := int64(0)
	for i, r := range list {
		entries += max(0, r.last-r.after)
		if entries >= size || i+1 == verifyWallets {
			return list[:i+1], list[i+1:]
		}
	}
	return list, nil
}

func pauseFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// batch proves the entries of some wallets within one snapshot.
func (p *verifyPass) batch(ctx context.Context, list []verifyRange) (walked []verifyRange, err error) {
	var b *verifyWork
	err = p.read(ctx, func(ctx context.Context, tx appTx) error {
		b = &verifyWork{pass: p, tx: tx}
		return b.run(ctx, list)
	})
	if err != nil {
		return nil, err
	}
	// Only now: a transaction that was tried again must not report twice.
	for _, d := range b.differences {
		p.report(d)
	}
	p.collectUsage(b.ranges)
	p.result.Wallets += b.wallets
	p.result.Entries += b.entries
	return b.ranges, nil
}
