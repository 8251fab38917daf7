package store_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/store/verify"
	"purser/tenancy"
)

// books is an application with a bit of everything in its journal, in a database
// of its own that a test may corrupt.
type books struct {
	store.App
	db    *store.Store
	url   string
	conn  *pgx.Conn
	usage *store.Engine
	scope tenancy.Scope
	key   ids.ID
	next  int
}

// Verification is the verification of the application.
func (b *books) Verification() verify.App { return b.db.Verification(b.scope) }

func keepBooks(t *testing.T) *books {
	t.Helper()
	storetest.AvoidEndOf(t, 24*time.Hour) // all daily events are of one day, so one is charged
	ctx := context.Background()
	url := storetest.FreshURL(t)
	db := openStore(t, url)
	usage, err := db.OpenEngine(ctx, store.EngineOptions{})
	noError(t, err)
	t.Cleanup(usage.Close)
	usage.SetTimeouts(patience, patience)

	now := time.Now().UnixMilli()
	org, err := tenancy.NewOrganization(ids.New(), "Books", now)
	noError(t, err)
	draft, err := tenancy.NewApplication(ids.New(), org, "Books", false, now)
	noError(t, err)
	application, err := db.Directory().ProvisionIn(ctx, people.OrgRef{Name: org.Name}, org, draft)
	noError(t, err)
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: application, Name: "k", Preset: keys.Setup}, tenancy.AllPermissions(), now, rand.Reader)
	noError(t, err)
	b := &books{App: db.App(application.Scope()), db: db, url: url, conn: connect(t, url), usage: usage, scope: application.Scope(), key: key.ID}
	noError(t, b.CreateKey(ctx, key))
	noError(t, b.CreateCredit(ctx, metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: now}))
	feature := func(key string, change func(*metering.Feature)) metering.Feature {
		f := metering.Feature{ID: ids.New(), Key: key, Name: key, Unit: "u", CreditKey: "tokens", Cost: 7, QuantityPerUnit: 2,
			PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: now}
		change(&f)
		made, err := b.CreateFeature(ctx, f)
		noError(t, err)
		return made
	}
	feature("plain", func(*metering.Feature) {})
	feature("daily", func(f *metering.Feature) { f.Deduplication = metering.DeduplicateDay })
	feature("quoted", func(f *metering.Feature) { f.PricingMode = metering.Callback })
	limited := feature("limited", func(*metering.Feature) {})
	idempotency := "d1"
	_, _, err = b.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "tokens", Amount: 1_000_000, IdempotencyKey: &idempotency, CreatedAt: now})
	noError(t, err)
	noError(t, b.PutSubscription(ctx, "ann", metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.Period{Start: now - 1000, End: now + 1_000_000},
		Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: limited.ID, FeatureKey: "limited", Limit: 5, Period: metering.LimitBilling, Overage: metering.OverageCredits}}},
	}))
	b.track(t, 20)
	return b
}

// track records some events of every feature in turn.
func (b *books) track(t *testing.T, number int) {
	t.Helper()
	quoted := metering.Amount(99)
	for range number {
		use := store.Usage{Scope: b.scope, KeyID: b.key, Identity: "ann",
			FeatureKey: []string{"plain", "daily", "quoted", "limited"}[b.next%4],
			Usage:      metering.Usage{TransactionID: ids.New(), EventID: fmt.Sprint("e", b.next), Quantity: 3, EntityID: "x"}}
		if use.FeatureKey == "quoted" {
			use.Amount = &quoted
		}
		b.next++
		d, err := b.usage.Track(use)
		noError(t, err)
		noError(t, d.Err())
	}
}

// corrupt changes rows as the owner of the database, past every policy.
func (b *books) corrupt(t *testing.T, sql string) {
	t.Helper()
	exec(t, b.conn, sql)
}

// verify runs a pass and fails on differences.
func (b *books) verify(t *testing.T, o verify.Options) verify.Verification {
	t.Helper()
	o.Now = moment
	v, err := b.Verification().Verify(t.Context(), o)
	noError(t, err)
	for _, d := range v.Differences {
		t.Errorf("%+v: %s: %s", o, d.Check, d.Detail)
	}
	return v
}

// broken are the rules that a pass finds broken.
func (b *books) broken(t *testing.T, o verify.Options) (rules []string) {
	t.Helper()
	o.Now = moment
	v, err := b.Verification().Verify(t.Context(), o)
	noError(t, err)
	for _, d := range v.Differences {
		rules = append(rules, d.Check+": "+d.Detail)
	}
	return rules
}

func TestVerifyFindsNothingInSoundBooks(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	for name, c := range map[string]struct {
		options verify.Options
		entries int64
	}{
		"all":                     {verify.Options{}, 21},
		"all in small batches":    {verify.Options{Batch: 3}, 21},
		"since a moment":          {verify.Options{Since: time.Now().Add(-time.Hour)}, 21},
		"new":                     {verify.Options{New: true}, 21},
		"new in batches of one":   {verify.Options{New: true, Batch: 1}, 21},
		"since, in small batches": {verify.Options{Since: time.Now().Add(-time.Hour), Batch: 2}, 21},
	} {
		if v := b.verify(t, c.options); v.Entries != c.entries || v.Wallets != 1 {
			t.Errorf("%s: read %d wallets and %d entries", name, v.Wallets, v.Entries)
		}
	}
}

func TestVerifyNewReadsWhatNoPassHasRecorded(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	record := verify.Options{New: true, Record: true}
	reads := func(o verify.Options, entries int64) {
		t.Helper()
		if v := b.verify(t, o); v.Entries != entries {
			t.Errorf("%+v read %d entries, not %d", o, v.Entries, entries)
		}
	}
	reads(verify.Options{New: true}, 21)
	reads(record, 21)
	reads(record, 0)
	b.track(t, 7)
	reads(verify.Options{New: true}, 7)
	record.Batch = 2 // a wallet that is sealed several times on the way
	reads(record, 7)
	reads(record, 0)
	reads(verify.Options{}, 28)
	reads(verify.Options{Record: true}, 28)

	// By the ids alone, the entries of a node whose clock is a day behind are old.
	b.track(t, 4)
	b.corrupt(t, `UPDATE usage_events SET tx_id = ('00000000-0000-7000-8000-' || lpad(seq::text, 12, '0'))::uuid
		WHERE seq > 28 AND period_start IS NULL`)
	reads(verify.Options{Since: time.Now().Add(2 * time.Hour)}, 4)
	reads(record, 4)
	reads(verify.Options{Since: time.Now().Add(2 * time.Hour)}, 0)
	if v := b.verify(t, verify.Options{Since: time.Now().Add(-time.Hour)}); v.Entries != 32 {
		t.Errorf("since an hour ago, it read %d entries", v.Entries)
	}
}

// A difference is found again by every pass until the rows are repaired, and no
// pass seals what it found to differ.
func TestVerifyNewFindsADifferenceUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	record := verify.Options{New: true, Record: true, Batch: 4}
	b.verify(t, record)
	b.track(t, 10)
	b.corrupt(t, `UPDATE usage_events SET amount_nanocredits = amount_nanocredits + 1 WHERE seq = 26`)
	for range 2 {
		if found := b.broken(t, record); len(found) != 2 { // the amount, and the balance after it
			t.Errorf("found %q", found)
		}
	}
	b.corrupt(t, `UPDATE usage_events SET amount_nanocredits = amount_nanocredits - 1 WHERE seq = 26`)
	b.verify(t, record)
	if v := b.verify(t, record); v.Entries != 0 {
		t.Errorf("read %d entries again", v.Entries)
	}
}

// Counters of sealed events are kept apart from the counters that decide, so that
// one that was reset does not confirm itself.
func TestVerifyNewFindsAnAllowanceThatWasHandedOutAgain(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	record := verify.Options{New: true, Record: true}
	b.verify(t, record)
	b.corrupt(t, `UPDATE counters SET used = 0`)
	b.corrupt(t, `UPDATE wallets SET version = version + 1`)
	b.track(t, 4)
	found := strings.Join(b.broken(t, record), "\n")
	if !strings.Contains(found, "starts from 0 used, but the events before it used 15") {
		t.Errorf("found %q", found)
	}
}

func TestVerifyPassesAtOnceAgree(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	for range 3 {
		b.track(t, 8)
		var group sync.WaitGroup
		for batch := range int64(4) {
			group.Go(func() {
				v, err := b.Verification().Verify(t.Context(), verify.Options{New: true, Record: true, Now: moment, Batch: batch + 1})
				if err != nil || len(v.Differences) > 0 {
					t.Errorf("%v, %v", v.Differences, err)
				}
			})
		}
		group.Wait()
		if v := b.verify(t, verify.Options{New: true, Record: true}); v.Entries != 0 {
			t.Errorf("%d entries were left", v.Entries)
		}
		b.verify(t, verify.Options{})
	}
}

func TestVerifyStopsWithItsContextAndKeepsWhatItRecorded(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	ctx, cancel := context.WithCancel(t.Context())
	// The pause after the first batch is where it is stopped.
	context.AfterFunc(t.Context(), cancel)
	stopped := make(chan error)
	go func() {
		_, err := b.Verification().Verify(ctx, verify.Options{New: true, Record: true, Now: moment, Batch: 5, Pause: time.Hour})
		stopped <- err
	}()
	for len(texts(t, b.conn, `SELECT seq::text FROM wallet_seals`)) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nothing was recorded")
		}
	}
	cancel()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if v := b.verify(t, verify.Options{New: true}); v.Entries != 16 {
		t.Errorf("%d entries were left, not 16", v.Entries)
	}
}

// What a pass over new entries reads does not grow with what is sealed.
func TestVerifyNewReadsInProportionToWhatIsNew(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	// A long wallet, made of copies of its first plain event that cost nothing.
	b.corrupt(t, `
		INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at,
			amount_nanocredits, balance_after, event_id, deduplicated_from, period_start, period_end, entity_id)
		SELECT e.app_id, e.org_id, gen_random_uuid(), e.wallet_id, e.key_id, 21 + n, e.price_number, e.quantity, e.created_at,
			0, (SELECT amount_nanocredits FROM balances), convert_to('copy ' || n, 'UTF8'), e.deduplicated_from, e.period_start, e.period_end, e.entity_id
		FROM generate_series(1, 20000) n, usage_events e WHERE e.event_id = 'e5'`)
	b.corrupt(t, `UPDATE wallets SET last_seq = 20021`)
	record := verify.Options{New: true, Record: true}
	if v := b.verify(t, record); v.Entries != 20_021 {
		t.Fatalf("read %d entries", v.Entries)
	}
	b.corrupt(t, `UPDATE wallets SET version = version + 1`)
	b.track(t, 100)
	if v := b.verify(t, verify.Options{New: true}); v.Entries != 100 {
		t.Errorf("read %d entries, not 100", v.Entries)
	}

	wallet := texts(t, b.conn, `SELECT id::text FROM wallets`)[0]
	for _, analyzed := range []bool{false, true} { // also before Postgres knows how large the table is
		for _, name := range []string{"verify read events", "verify read journal"} {
			rows, blocks := explained(t, b, statementNamed(t, name), wallet)
			if rows > 100 || blocks > 60 {
				t.Errorf("%s (analyzed: %t) read %.0f rows in %.0f blocks", name, analyzed, rows, blocks)
			}
		}
		b.corrupt(t, `ANALYZE`)
	}
}

func statementNamed(t *testing.T, name string) string {
	t.Helper()
	for _, s := range store.Statements() {
		if s.Name == name {
			return s.SQL
		}
	}
	t.Fatalf("there is no statement %q", name)
	return ""
}

// explained runs a statement for the last entries of a wallet as the role that
// serves, and gives the rows that its scans of tables read and the blocks they touched.
func explained(t *testing.T, b *books, sql, wallet string) (rows, blocks float64) {
	t.Helper()
	tx, err := connect(t, asApp(b.url)).Begin(t.Context())
	noError(t, err)
	exec(t, tx, `SET LOCAL purser.app_id = '`+b.scope.AppID.String()+`'`)
	exec(t, tx, `SET LOCAL plan_cache_mode = force_custom_plan`)
	var text []byte
	noError(t, tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+sql, b.scope.AppID,
		[]string{wallet}, []int64{20_021}, []int64{1 << 62}, 80_000).Scan(&text))
	noError(t, tx.Rollback(t.Context()))
	type node struct {
		Relation string  `json:"Relation Name"`
		Rows     float64 `json:"Actual Rows"`
		Loops    float64 `json:"Actual Loops"`
		Removed  float64 `json:"Rows Removed by Filter"`
		Hit      float64 `json:"Shared Hit Blocks"`
		Read     float64 `json:"Shared Read Blocks"`
		Plans    []node
	}
	var plans []struct{ Plan node }
	noError(t, json.Unmarshal(text, &plans))
	var add func(node)
	add = func(n node) {
		if n.Relation != "" {
			rows += (n.Rows + n.Removed) * n.Loops
		}
		for _, inner := range n.Plans {
			add(inner)
		}
	}
	add(plans[0].Plan)
	return rows, plans[0].Plan.Hit + plans[0].Plan.Read
}
