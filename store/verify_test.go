package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
)

// books is an application with a bit of everything in its journal, in a database
// of its own that a test may spoil.
type books struct {
	url string
	app store.App
	db  *store.Store
}

func keepBooks(t *testing.T) books {
	t.Helper()
	ctx := context.Background()
	url := storetest.FreshURL(t)
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	usage, err := db.OpenUsage(ctx, store.UsageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(usage.Close)

	now := time.Now().UnixMilli()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	org, err := tenancy.NewOrganization(ids.New(), "Books", now)
	must(err)
	wished, err := tenancy.NewApplication(ids.New(), org, "Books", false, now)
	must(err)
	application, err := db.Directory().ProvisionApplication(ctx, org, wished)
	must(err)
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: application, Name: "k", Preset: keys.Setup}, tenancy.AllPermissions(), now, rand.Reader)
	must(err)
	app := db.App(application.Scope())
	must(app.CreateKey(ctx, key))
	must(app.CreateCredit(ctx, metering.NewCredit(ids.New(), "tokens", "Tokens", "token", now)))
	feature := func(key string, change func(*metering.Feature)) metering.Feature {
		f := metering.Feature{ID: ids.New(), Key: key, Name: key, Unit: "u", CreditKey: "tokens", Cost: 7, QuantityPerUnit: 2,
			PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: now}
		change(&f)
		made, err := app.CreateFeature(ctx, f)
		must(err)
		return made
	}
	feature("plain", func(*metering.Feature) {})
	feature("daily", func(f *metering.Feature) { f.Deduplication = metering.DeduplicateDay })
	feature("quoted", func(f *metering.Feature) { f.PricingMode = metering.Callback })
	limited := feature("limited", func(*metering.Feature) {})
	idempotency := "d1"
	_, _, err = app.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: "ann", CreditKey: "tokens", Amount: 1_000_000, IdempotencyKey: &idempotency, CreatedAt: now})
	must(err)
	must(app.PutSubscription(ctx, "ann", metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.Period{Start: now - 1000, End: now + 1_000_000},
		Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: limited.ID, FeatureKey: "limited", Limit: 5, Period: metering.LimitBilling, Overage: metering.OverageCredits}}},
	}))
	quoted := metering.Amount(99)
	for i := range 20 {
		use := store.Use{Scope: application.Scope(), KeyID: key.ID, Identity: "ann", FeatureKey: []string{"plain", "daily", "quoted", "limited"}[i%4],
			Use: metering.Use{TransactionID: ids.New(), EventID: fmt.Sprint("e", i), Quantity: 3, EntityID: "x"}}
		if use.FeatureKey == "quoted" {
			use.Amount = &quoted
		}
		d, err := usage.Track(use)
		must(err)
		must(d.Err())
	}
	return books{url: url, app: app, db: db}
}

func TestVerifyIsSilentOnSoundBooks(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	for name, since := range map[string]time.Time{"in full": {}, "since a moment": time.Now().Add(-time.Hour), "since now": time.Now().Add(time.Hour)} {
		v, err := b.app.Verify(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Differences) > 0 {
			t.Errorf("%s: %v", name, v.Differences)
		}
		if name != "since now" && (v.Wallets != 1 || v.Entries != 21) {
			t.Errorf("%s: looked at %d wallets and %d entries", name, v.Wallets, v.Entries)
		}
	}
}

// Each spoiling is one that only a bug, or a hand in the database, can make.
func TestVerifyFindsEverySpoiling(t *testing.T) {
	t.Parallel()
	for check, spoiling := range map[string]string{
		"the wallet's entries are numbered without a gap":                    `DELETE FROM usage_events WHERE event_id = 'e7'`,
		"each entry leaves the balance before it plus its change":            `UPDATE usage_events SET balance_after = balance_after + 1 WHERE event_id = 'e8'`,
		"the stored balance is the one after the last entry":                 `UPDATE balances SET amount_nanocredits = amount_nanocredits + 1`,
		"nothing is held while in debt":                                      `UPDATE balances SET debt_nanocredits = 1`,
		"a billing period is whole":                                          `UPDATE wallets SET billing_interval = 'day'`,
		"no balance is without entries":                                      `DELETE FROM journal`,
		"the wallet knows its last entry and whether it was charged":         `UPDATE wallets SET charged = false`,
		"each amount follows from the price, the quantity and the allowance": `UPDATE usage_events SET quantity = quantity + 2 WHERE event_id = 'e4'`,
		"a blocking allowance is never passed":                               `UPDATE usage_events SET allowance_overage = 'block' WHERE event_id = 'e11'`,
		"each counter is the sum of what was used in its period":             `UPDATE counters SET used = used - 1`,
		"each period is billed by exactly one charged event":                 `UPDATE billed_periods SET tx_id = gen_random_uuid()`,
		"no billed period is without its event":                              `UPDATE billed_periods SET entity_id = 'y', tx_id = 'ffffffff-0000-0000-0000-000000000000'`,
		"every row names the organization of its application":                `UPDATE journal SET org_id = gen_random_uuid()`,
		"an event id stands in a wallet that exists":                         `UPDATE usage_events SET wallet_id = gen_random_uuid() WHERE event_id = 'e0'`,
	} {
		t.Run(check, func(t *testing.T) {
			b := keepBooks(t)
			b.spoil(t, spoiling)
			v, err := b.app.Verify(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range v.Differences {
				if d.Check == check {
					return
				}
			}
			t.Errorf("%s went unnoticed; found %v", spoiling, v.Differences)
		})
	}
}

// A pass since a moment starts each chain from the entry before the moment.
func TestVerifySinceAMomentFollowsTheChain(t *testing.T) {
	t.Parallel()
	b := keepBooks(t)
	// What came before is moved a day into the past, so that only the rest is recent.
	b.spoil(t, `UPDATE usage_events SET tx_id = ('00000000-0000-7000-8000-' || lpad(seq::text, 12, '0'))::uuid WHERE seq < 10`)
	b.spoil(t, `UPDATE billed_periods SET tx_id = '00000000-0000-7000-8000-000000000003'`)
	b.spoil(t, `UPDATE usage_events SET deduplicated_from = '00000000-0000-7000-8000-000000000003' WHERE deduplicated_from IS NOT NULL`)
	b.spoil(t, `UPDATE journal SET id = '00000000-0000-7000-8000-ffffffffffff'`)
	v, err := b.app.Verify(t.Context(), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if v.Entries != 12 || len(v.Differences) > 0 {
		t.Fatalf("looked at %d entries and found %v", v.Entries, v.Differences)
	}
	b.spoil(t, `UPDATE usage_events SET balance_after = balance_after + 1 WHERE seq = 10`)
	if v, err = b.app.Verify(t.Context(), time.Now().Add(-time.Hour)); err != nil || len(v.Differences) != 2 {
		t.Errorf("a broken first link was not found: %v, %v", v.Differences, err)
	}
}

// spoil changes rows as the owner of the database, past every policy.
func (b books) spoil(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
