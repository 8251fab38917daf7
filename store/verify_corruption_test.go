package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
	"purser/store/verify"
)

// soldBooks is an application in which everything that can be sold was sold: a
// plan that was paid and used, a free one, top-ups, a refund with a debt, an
// adjustment, deposits, and events of every kind.
type soldBooks struct {
	storefront
	url    string
	conn   *pgx.Conn
	tables []string
}

func newSoldBooks(t *testing.T) *soldBooks {
	t.Helper()
	ctx := t.Context()
	url := storetest.FreshURL(t)
	db := openStore(t, url)
	usage := openUsage(t, db)
	b := &soldBooks{storefront: newStorefront(t, db), url: url, conn: connect(t, url)}
	for key, change := range map[string]func(*metering.Feature){
		"daily":   func(f *metering.Feature) { f.Deduplication = metering.DeduplicateDay },
		"billing": func(f *metering.Feature) { f.Deduplication = metering.DeduplicateBilling },
		"quoted":  func(f *metering.Feature) { f.PricingMode = metering.Callback },
		"unused":  func(*metering.Feature) {},
	} {
		f := featureOf(key, "tokens")
		change(&f)
		b.newFeature(t, f)
	}
	key, _ := b.newKey(t, keys.Setup)
	b.subscribe(t, "ann", "sub_ann")
	b.buy(t, "ann")
	_, refunded := b.buy(t, "bob")
	b.startFree(t, "free")
	b.checkout(t, "new", b.plan) // a page that is not paid yet
	b.topUp(t, "new")
	for _, identity := range []string{"ann", "bob"} {
		b.deposit(t, depositOf(identity, "tokens", 100_000, "deposit of "+identity))
	}
	wallet, err := b.Wallet(ctx, "bob")
	noError(t, err)
	noError(t, b.Adjust(ctx, store.Adjustment{ID: ids.New(), WalletID: wallet.ID, CreditKey: "tokens",
		Delta: metering.Delta{Amount: wallet.Balances[0].Amount, Out: true}, Reason: "a test", By: ids.New(), Now: moment}))
	noError(t, b.Payments().ApplyCharge(ctx, b.lease(t, "identity:bob"), billing.ProviderCharge{
		ID: refunded.ChargeID, Refunds: []billing.ProviderRefund{{ID: "re_1", AmountCents: 1000, Status: "succeeded"}},
	}, moment)) // into debt
	_, _, err = b.Transfer(ctx, transferOf("ann", "bob", "tokens", 30)) // pays a part of it
	noError(t, err)
	for i, feature := range []string{"messages", "daily", "billing", "quoted", "messages", "daily", "billing", "quoted", "messages"} {
		use := store.Usage{Scope: b.application.Scope(), KeyID: key.ID, Identity: "ann", FeatureKey: feature,
			Usage: metering.Usage{TransactionID: ids.New(), EventID: fmt.Sprint("e", i), EntityID: "x", Quantity: 1}}
		if feature == "quoted" {
			use.Amount = new(metering.Amount(9))
		}
		if i == 0 {
			use = labelled(use, "large")
		}
		d, err := usage.Track(use)
		noError(t, err)
		noError(t, d.Err())
	}
	for i, feature := range []string{"messages", "messages", "daily", "quoted"} {
		use := store.Usage{Scope: b.application.Scope(), KeyID: key.ID, Identity: "free", FeatureKey: feature,
			Usage: metering.Usage{TransactionID: ids.New(), EventID: fmt.Sprint("r", i), Quantity: 1}}
		if feature == "quoted" {
			use.Amount = new(metering.Amount(9))
		}
		d, err := usage.Track(use)
		noError(t, err)
		noError(t, d.Err())
		if i > 0 {
			amount := new(metering.Amount(4))
			if feature != "quoted" {
				amount = nil
			}
			_, _, err := b.Reverse(ctx, reversalOf(use.EventID, amount))
			noError(t, err)
		}
	}
	b.announced(t)
	exec(t, b.conn, `SET session_replication_role = replica`) // no foreign key keeps a corruption out
	exec(t, b.conn, `CREATE SCHEMA kept`)
	v, err := b.Verification().Verify(ctx, verify.Options{Record: true, Now: moment})
	noError(t, err)
	if len(v.Differences) > 0 {
		t.Fatalf("sound books differ: %v", v.Differences)
	}
	b.tables = tablesOfTenants(t, b.conn)
	for _, table := range b.tables {
		exec(t, b.conn, `CREATE TABLE kept.`+table+` AS TABLE `+table)
	}
	return b
}

// restore puts the rows back that a corruption may have changed.
func (b *soldBooks) restore(t *testing.T, corruption string) {
	t.Helper()
	for _, table := range b.tables {
		if regexp.MustCompile(`\b` + table + `\b`).MatchString(corruption) {
			exec(t, b.conn, `DELETE FROM `+table)
			exec(t, b.conn, `INSERT INTO `+table+` SELECT * FROM kept.`+table)
		}
	}
}

const (
	annsWallet = `(SELECT id FROM wallets WHERE identity = 'ann')`
	bobsWallet = `(SELECT id FROM wallets WHERE identity = 'bob')`

	freesWallet = `(SELECT id FROM wallets WHERE identity = 'free')`
)

// corruptions are changes that only a bug, or a person with access to the database,
// can make. Each is found, and the difference says what is wrong.
var corruptions = []struct{ name, sql, want string }{
	// Entries and balances.
	{"an event was erased", `DELETE FROM usage_events WHERE event_id = 'e4'`, "numbered without a gap"},
	{"an entry leaves another balance", `UPDATE usage_events SET balance_after = balance_after + 1 WHERE event_id = 'e3'`, "but the entry says"},
	{"a deposit is larger", `UPDATE journal SET delta_nanocredits = delta_nanocredits + 1 WHERE kind = 'deposit' AND wallet_id = ` + annsWallet, "but the entry says"},
	{"the stored balance is larger", `UPDATE balances SET amount_nanocredits = amount_nanocredits + 1 WHERE wallet_id = ` + annsWallet, "but the entries end at"},
	{"a balance is stored for no entry", `INSERT INTO balances SELECT app_id, (SELECT id FROM wallets WHERE identity = 'new'), credit_id, org_id, 5, 0 FROM balances LIMIT 1`, "but the entries end at 0"},
	{"a balance is missing", `DELETE FROM balances WHERE wallet_id = ` + annsWallet, "no balance of tokens is stored"},
	{"a balance is held beside a debt", `UPDATE balances SET amount_nanocredits = 1 WHERE debt_nanocredits > 0`, "beside a debt of"},
	{"a middle entry holds a balance beside a debt", `UPDATE journal SET balance_after = 7, debt_after = debt_after + 7 WHERE kind = 'refund'`, "leaves a balance of 0.000000007 beside a debt of"},
	{"an event has another debt", `UPDATE usage_events SET debt_after = 1 WHERE event_id = 'e3'`, "beside a debt of"},
	{"the wallet's last entry is another", `UPDATE wallets SET last_seq = last_seq + 1 WHERE identity = 'ann'`, "but the wallet says"},
	{"the wallet is not marked as charged", `UPDATE wallets SET charged = false WHERE identity = 'ann'`, "not marked as charged"},
	{"a wallet is marked as charged", `UPDATE wallets SET charged = true WHERE identity = 'bob'`, "marked as charged, but no event was"},
	{"a billing period is half there", `UPDATE wallets SET billing_interval = 'day' WHERE identity = 'bob'`, "interval or an anchor, and not both"},
	{"an event belongs to no wallet", `UPDATE usage_events SET wallet_id = 'ffffffff-0000-0000-0000-000000000000' WHERE event_id = 'e8'`, "but no wallet"},
	{"a counter belongs to no wallet", `UPDATE counters SET wallet_id = 'ffffffff-0000-0000-0000-000000000000' WHERE wallet_id = ` + annsWallet, "allowance counters of this wallet, but no wallet"},
	{"an event was posted twice", `INSERT INTO usage_events SELECT (jsonb_populate_record(e, '{"event_id": "\\x7a7a", "seq": 99}')).* FROM usage_events e WHERE event_id = 'e8'`, "numbered without a gap"},

	// Prices and amounts.
	{"a quantity is another", `UPDATE usage_events SET quantity = quantity + 2 WHERE event_id = 'e1'`, "its price and quantity make"},
	{"a quantity is zero", `UPDATE usage_events SET quantity = 0 WHERE event_id = 'e3'`, "has the quantity 0"},
	{"a price does not exist", `UPDATE usage_events SET price_number = 999 WHERE event_id = 'e0'`, "price number 999, which does not exist"},
	{"a key does not exist", `UPDATE usage_events SET key_id = 'ffffffff-0000-0000-0000-000000000000' WHERE event_id = 'e0'`, "which the application does not have"},
	{"a feature costs less than its price says", `UPDATE features SET cost_nanocredits = cost_nanocredits - 1 WHERE key = 'daily'`, "feature daily has"},
	{"a price row was changed", `UPDATE prices SET cost_nanocredits = cost_nanocredits + 1 WHERE feature_id = (SELECT id FROM features WHERE key = 'unused')`, "feature unused has"},
	{"a feature points to an older price", `INSERT INTO prices SELECT app_id, number + 1, org_id, feature_id, revision, credit_id, cost_nanocredits, quantity_per_unit, pricing_mode, created_at FROM prices WHERE feature_id = (SELECT id FROM features WHERE key = 'unused')`, "feature unused has"},
	{"a feature in use is not fixed", `UPDATE features SET deduplication_locked = false WHERE key = 'daily'`, "feature daily has charged events"},
	{"an unused feature is fixed", `UPDATE features SET deduplication_locked = true WHERE key = 'unused'`, "feature unused has no charged event"},
	{"a plan's feature is not held", `DELETE FROM feature_references WHERE holder_id = (SELECT id FROM plans LIMIT 1)`, "feature messages is limited by"},
	{"a subscription's feature is not held", `DELETE FROM feature_references WHERE holder_id IN (SELECT id FROM subscriptions)`, "feature messages is limited by"},
	{"a waiting checkout's feature is not held", `DELETE FROM feature_references WHERE holder_id IN (SELECT id FROM subscription_changes)`, "feature messages is limited by"},
	{"a feature is held for nothing", `INSERT INTO feature_references SELECT app_id, (SELECT id FROM features WHERE key = 'unused'), holder_id, org_id, false FROM feature_references LIMIT 1`, "feature unused is not named"},
	{"a feature is held as multiplied", `UPDATE feature_references SET multiplied = true`, "but is held as multiplied"},

	// Allowances.
	{"an allowance was handed out twice", `UPDATE usage_events SET allowance_used = 0 WHERE event_id = 'e8'`, "starts from 0 used, but the events before it used 2"},
	{"a blocking allowance was passed", `UPDATE usage_events SET allowance_limit = 1 WHERE event_id = 'e8'`, "of a limit of 1 with 2 used before"},
	{"a counter was reset", `UPDATE counters SET used = 0`, "the counter is 0, but the events used 3"},
	{"a counter counts what nothing used", `INSERT INTO counters SELECT app_id, wallet_id, (SELECT id FROM features WHERE key = 'unused'), period_start, period_end, org_id, 4 FROM counters`, "but no event used anything"},
	{"an allowance counts in a period without a subscription", `UPDATE usage_events SET allowance_start = allowance_start + 1 WHERE event_id = 'e0'`, "no period that the customer had a subscription for"},

	// Deduplication.
	{"a billed period names another event", `UPDATE billed_periods SET tx_id = 'ffffffff-0000-0000-0000-000000000000'`, "its period was billed by"},
	{"a billed period names another entity", `UPDATE billed_periods SET entity_id = 'y'`, `entity "y"`},
	{"a billed period names another feature", `UPDATE billed_periods SET feature_id = (SELECT id FROM features WHERE key = 'unused') WHERE feature_id = (SELECT id FROM features WHERE key = 'daily')`, "unused, entity"},
	{"a billed period is another period", `UPDATE billed_periods SET period_start = period_start + 1`, "nothing is billed for its feature"},
	{"a billed period is missing", `DELETE FROM billed_periods`, "nothing is billed for its feature"},
	{"a period is billed for no event", `INSERT INTO billed_periods SELECT app_id, wallet_id, feature_id, period_start, period_end, 'never', org_id, tx_id FROM billed_periods LIMIT 1`, "which is no such event of the wallet"},
	{"a period does not follow from the time", `UPDATE usage_events SET occurred_at = created_at - 86400000 WHERE event_id = 'e1'`, "happened at"},
	{"a period and its bill are both another day", `WITH moved AS (UPDATE usage_events SET period_start = period_start - 86400000, period_end = period_end - 86400000 WHERE event_id IN ('e1', 'e5'))
		UPDATE billed_periods SET period_start = period_start - 86400000, period_end = period_end - 86400000 WHERE feature_id = (SELECT id FROM features WHERE key = 'daily')`, "expected"},
	{"a billing period belongs to no subscription", `WITH moved AS (UPDATE usage_events SET period_start = period_start - 1 WHERE event_id IN ('e2', 'e6'))
		UPDATE billed_periods SET period_start = period_start - 1 WHERE feature_id = (SELECT id FROM features WHERE key = 'billing')`, "no period that the customer had a subscription for"},
	{"a deduplicated event was charged", `UPDATE usage_events SET amount_nanocredits = 1 WHERE event_id = 'e5'`, "was charged 0.000000001"},
	{"a feature that does not deduplicate did", `UPDATE usage_events SET deduplicated_from = tx_id WHERE event_id = 'e3'`, "does not deduplicate"},

	// Reversals.
	{"a reversal has no record", `DELETE FROM reversals`, "no record of which event"},
	{"a reversal returned more than its record", `UPDATE reversals SET amount_nanocredits = amount_nanocredits + 1 WHERE event_id = 'r3'`, "no record of which event"},
	{"a reversal returns more than the charge", `UPDATE usage_events SET amount_nanocredits = 3 WHERE event_id = 'r3'`, "return 4 of a charge of 3"},
	{"a partial reversal is called full", `UPDATE reversals SET whole = true WHERE event_id = 'r3'`, "(1 of them in full)"},
	{"a full reversal is called partial", `UPDATE reversals SET whole = false WHERE event_id = 'r1'`, "(0 of them in full)"},
	{"a reversal did not return the allowance", `UPDATE counters SET used = used + 1 WHERE wallet_id = ` + freesWallet, "but the events used 1"},
	{"a reversed charge still bills its period", `INSERT INTO billed_periods SELECT e.app_id, e.wallet_id, p.feature_id, e.period_start, e.period_end, '', p.org_id, e.tx_id
		FROM usage_events e JOIN prices p ON p.number = e.price_number WHERE e.event_id = 'r2'`, "which was fully reversed"},
	{"a reversal is of another wallet's event", `UPDATE reversals SET event_id = 'e3', tx_id = (SELECT tx_id FROM usage_events WHERE event_id = 'e3') WHERE event_id = 'r3'`, "no record of which event"},
	{"a reversal became a deposit", `UPDATE journal SET kind = 'deposit' WHERE kind = 'reversal'`, "and their entries say 0"},
	{"a reversal names another organization", `UPDATE reversals SET org_id = 'ffffffff-0000-0000-0000-000000000000'`, "a row of reversals names the organization"},

	// Properties.
	{"properties belong to no wallet", `UPDATE event_properties SET wallet_id = 'ffffffff-0000-0000-0000-000000000000'`, "properties of events of this wallet, but no wallet"},
	{"properties name another organization", `UPDATE event_properties SET org_id = 'ffffffff-0000-0000-0000-000000000000'`, "a row of properties names the organization"},
	{"properties belong to no event", `UPDATE event_properties SET seq = 999`, "has properties, but is no event"},

	// Transfers.
	{"a transfer has no record", `DELETE FROM transfers`, "has no record of its two wallets"},
	{"a transfer moved more than its record", `UPDATE transfers SET amount_nanocredits = amount_nanocredits + 1`, "has no record of its two wallets"},
	{"a transfer went to another wallet", `UPDATE transfers SET to_wallet_id = ` + freesWallet, "has no entry of the same size in the other wallet"},
	{"a transfer arrived as a deposit", `UPDATE journal SET kind = 'deposit' WHERE kind = 'transfer' AND delta_nanocredits > 0`, "and a deposit of the receiver"},
	{"a transfer was taken as an adjustment", `UPDATE journal SET kind = 'adjustment' WHERE kind = 'transfer' AND delta_nanocredits < 0`, "is a adjustment of the sender"},
	{"a transfer gave more than it took", `UPDATE journal SET delta_nanocredits = delta_nanocredits + 1 WHERE kind = 'transfer' AND delta_nanocredits > 0`, "has no entry of the same size in the other wallet"},
	{"a transfer comes from a payment", `UPDATE journal SET source_kind = 'invoice', source_id = 'in_1' WHERE kind = 'transfer'`, "which a transfer cannot"},
	{"a transfer names another organization", `UPDATE transfers SET org_id = 'ffffffff-0000-0000-0000-000000000000'`, "names the organization"},

	// Payments.
	{"a grant comes from no payment", `UPDATE journal SET source_kind = NULL, source_id = NULL WHERE kind = 'grant'`, "which a grant cannot"},
	{"a grant comes from another payment", `UPDATE journal SET source_id = 'in_other' WHERE kind = 'grant' AND source_kind = 'invoice'`, "which brought no such credits"},
	{"a deposit became a top-up", `UPDATE journal SET kind = 'top-up' WHERE kind = 'deposit'`, "which a top-up cannot"},
	{"a deposit became an adjustment", `UPDATE journal SET kind = 'adjustment' WHERE kind = 'deposit'`, "no record of who adjusted"},
	{"an adjustment became a deposit", `UPDATE journal SET kind = 'deposit' WHERE kind = 'adjustment'`, "is a deposit in the journal"},
	{"an adjustment has no record", `DELETE FROM adjustments`, "no record of who adjusted"},
	{"a payment brought more than was posted", `UPDATE payment_credits SET amount_nanocredits = amount_nanocredits + 1 WHERE source_kind = 'invoice'`, "but the wallet's entries say"},
	{"a payment went to another customer", `UPDATE provider_payments SET wallet_id = ` + bobsWallet + ` WHERE source_kind = 'invoice'`, "but the wallet's entries say"},
	{"a refund was not taken back", `UPDATE provider_payments SET refunded_cents = refunded_cents + 1000 WHERE refunded_cents > 0`, "had to be taken back"},
	{"too much was taken back beside what a balance paid", `UPDATE provider_payments SET balance_cents = 1000 WHERE refunded_cents > 0`, "had to be taken back"},
	{"more was taken back than refunded", `UPDATE provider_payments SET refunded_cents = 0 WHERE refunded_cents > 0`, "so 0 of"},
	{"a dispute was not taken back", `UPDATE provider_payments SET disputed_cents = 2900 WHERE source_kind = 'invoice'`, "had to be taken back"},
	{"a clawback is smaller than its entry", `UPDATE payment_credits SET taken_back_nanocredits = 0`, "were taken back, but the wallet's entries say"},
	{"a paid top-up has no payment", `UPDATE topups SET status = 'paid', session_id = 'cs_none' WHERE status = 'open'`, "but there is no such payment"},
	{"a top-up was sold for another price", `UPDATE topups SET amount_cents = amount_cents + 1 WHERE status = 'paid'`, "but its payment"},
	{"a top-up was sold for another amount", `UPDATE topups SET amount_nanocredits = amount_nanocredits + 1 WHERE status = 'paid'`, "nanocredits, but its payment"},
	{"a top-up that was credited is open", `UPDATE topups SET status = 'open' WHERE status = 'paid'`, "but no paid top-up has it"},
	{"a top-up's payment is gone", `WITH gone AS (DELETE FROM payment_credits WHERE source_kind = 'session') DELETE FROM provider_payments WHERE source_kind = 'session'`, "but there is no such payment"},
	{"a free period was granted twice", `WITH paid AS (INSERT INTO provider_payments SELECT (jsonb_populate_record(p, '{"source_id": "again"}')).* FROM provider_payments p WHERE free)
		INSERT INTO payment_credits SELECT (jsonb_populate_record(c, '{"source_id": "again"}')).* FROM payment_credits c WHERE source_kind = 'free_period'`, "overlap, and both brought credits"},

	// Subscriptions.
	{"a subscription's period was not paid", `UPDATE subscriptions SET period_end = period_end + 86400000 WHERE provider_id = 'sub_ann'`, "but no payment is for that plan and period"},
	{"a free subscription's period was not granted", `UPDATE subscriptions SET period_end = period_end + 86400000 WHERE provider_id IS NULL`, "but no payment is for that plan and period"},
	{"a subscription that was never paid is active", `UPDATE subscriptions SET begun = false WHERE provider_id = 'sub_ann'`, "but was never paid"},
	{"an ended subscription is active", `UPDATE subscriptions SET ended_at = 1 WHERE provider_id = 'sub_ann'`, "but has ended"},
	{"a canceled subscription has no end", `UPDATE subscriptions SET status = 'canceled' WHERE provider_id = 'sub_ann'`, "has no end"},
	{"a subscription's limits are others", `UPDATE subscriptions SET terms = jsonb_set(terms, '{limits,0,limit}', '500') WHERE provider_id = 'sub_ann'`, "terms that no change asked for"},
	{"a subscription's price is another", `UPDATE subscriptions SET sale = jsonb_set(sale, '{amountCents}', '1') WHERE provider_id = 'sub_ann'`, "terms that no change asked for"},
	{"a subscription's grants are others", `UPDATE subscriptions SET sale = jsonb_set(sale, '{grants,0,amountNanocredits}', '"7"') WHERE provider_id IS NULL`, "grants something else"},
	{"a subscription names another plan", `UPDATE subscriptions SET plan_id = 'ffffffff-0000-0000-0000-000000000000' WHERE provider_id = 'sub_ann'`, "names the plan"},
	{"a subscription belongs to another customer", `UPDATE subscriptions SET wallet_id = ` + bobsWallet + ` WHERE provider_id = 'sub_ann'`, "another customer than its payment"},

	// Lists and owners.
	{"a debtor is not listed", `DELETE FROM debtors`, "listed as a debtor false"},
	{"a debtor is listed without a debt", `INSERT INTO debtors SELECT app_id, wallet_id, credit_id, org_id FROM balances WHERE debt_nanocredits = 0`, "listed as a debtor true"},
	{"a debtor is listed without a balance", `INSERT INTO debtors SELECT app_id, ` + annsWallet + `, 'ffffffff-0000-0000-0000-000000000000', org_id FROM balances LIMIT 1`, "but owes nothing"},
	{"an event names another organization", `UPDATE usage_events SET org_id = 'ffffffff-0000-0000-0000-000000000000' WHERE event_id = 'e3'`, "names the organization"},
	{"an event names a zero organization", `UPDATE usage_events SET org_id = '00000000-0000-0000-0000-000000000000' WHERE event_id = 'e3'`, "names the organization"},
	{"an entry names another organization", `UPDATE journal SET org_id = 'ffffffff-0000-0000-0000-000000000000' WHERE kind = 'deposit'`, "names the organization"},
	{"a price names another organization", `UPDATE prices SET org_id = 'ffffffff-0000-0000-0000-000000000000'`, "a row of prices names the organization"},

	// What adds up, and was still changed after it was sealed.
	{"the last charge was erased", `WITH erased AS (DELETE FROM usage_events WHERE event_id = 'e8' RETURNING amount_nanocredits),
		repaid AS (UPDATE balances SET amount_nanocredits = balances.amount_nanocredits + erased.amount_nanocredits FROM erased WHERE wallet_id = ` + annsWallet + `),
		counted AS (UPDATE counters SET used = used - 1)
		UPDATE wallets SET last_seq = last_seq - 1 WHERE identity = 'ann'`, "entries were verified and sealed, but the wallet now ends with entry"},
	{"an event id was changed", `UPDATE usage_events SET event_id = 'e33' WHERE event_id = 'e3'`, "were changed after they were verified and sealed"},
	{"an entity was changed", `UPDATE usage_events SET entity_id = 'other' WHERE event_id = 'e3'`, "were changed after they were verified and sealed"},
	{"two customers were swapped", `UPDATE wallets SET identity = 'nobody' WHERE identity = 'ann'; UPDATE wallets SET identity = 'ann' WHERE identity = 'bob';
		UPDATE wallets SET identity = 'bob' WHERE identity = 'nobody'`, "were changed after they were verified and sealed"},
	{"times were moved", `UPDATE usage_events SET created_at = created_at - 1, occurred_at = coalesce(occurred_at, created_at) WHERE event_id = 'e3'`, "were changed after they were verified and sealed"},
	{"a deposit's idempotency key was changed", `UPDATE journal SET idempotency_key = 'another' WHERE kind = 'deposit' AND wallet_id = ` + annsWallet, "were changed after they were verified and sealed"},
	{"a wallet was erased", `WITH events AS (DELETE FROM usage_events WHERE wallet_id = ` + annsWallet + `), entries AS (DELETE FROM journal WHERE wallet_id = ` + annsWallet + `)
		DELETE FROM wallets WHERE identity = 'ann'`, "sealed entries of this wallet, but no wallet"},
	{"a wallet was erased with its seal", `WITH events AS (DELETE FROM usage_events WHERE wallet_id = ` + annsWallet + `), entries AS (DELETE FROM journal WHERE wallet_id = ` + annsWallet + `),
		seals AS (DELETE FROM wallet_seals WHERE wallet_id = ` + annsWallet + `)
		DELETE FROM wallets WHERE identity = 'ann'`, "seals of this wallet, but no wallet"},
}

func TestVerifyFindsEveryCorruption(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	for _, c := range slices.Concat(corruptions, feedCorruptions) {
		t.Run(c.name, func(t *testing.T) {
			defer b.restore(t, c.sql)
			for statement := range strings.SplitSeq(c.sql, ";") {
				exec(t, b.conn, statement)
			}
			v, err := b.Verification().Verify(t.Context(), verify.Options{})
			noError(t, err)
			var found []string
			for _, d := range v.Differences {
				found = append(found, d.Check+": "+d.Detail)
			}
			if !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("%q was not found in:\n%s", c.want, strings.Join(found, "\n"))
			}
		})
	}
	if v, err := b.Verification().Verify(t.Context(), verify.Options{}); err != nil || len(v.Differences) > 0 {
		t.Errorf("restored books differ: %v, %v", v.Differences, err)
	}
}

func TestStrayApplicationsAreFoundInEveryTable(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db := openStore(t, url)
	newFixture(t, db, openUsage(t, db))
	conn := connect(t, url)
	if list, checked, err := db.Installation().StrayApplications(t.Context()); err != nil || !checked || len(list) > 0 {
		t.Fatalf("sound tables give %v, %t, %v", list, checked, err)
	}
	exec(t, conn, `SET session_replication_role = replica`)
	tables := tablesOfTenants(t, conn)
	for _, table := range tables {
		exec(t, conn, `UPDATE `+table+` SET app_id = 'ffffffff-0000-0000-0000-000000000000'`)
	}
	list, checked, err := db.Installation().StrayApplications(t.Context())
	noError(t, err)
	found := make(map[string]bool)
	for _, stray := range list {
		found[stray.Table] = true
	}
	for _, table := range tables {
		if !checked || !found[table] {
			t.Errorf("the rows of %s were not found", table)
		}
	}
}

// The entries of the wallet are sound, so only the check of what was sold keeps it from
// being recorded as verified.
func TestVerifyNewFindsAWrongSaleUntilItIsRepaired(t *testing.T) {
	t.Parallel()
	b := newSoldBooks(t)
	exec(t, b.conn, `DELETE FROM wallet_seals`)
	exec(t, b.conn, `DELETE FROM sealed_wallets`)
	exec(t, b.conn, `DELETE FROM sealed_counters`)
	exec(t, b.conn, `UPDATE provider_payments SET refunded_cents = 0 WHERE refunded_cents > 0`)
	for pass := range 2 {
		v, err := b.Verification().Verify(t.Context(), verify.Options{New: true, Record: true, Now: moment})
		noError(t, err)
		if len(v.Differences) != 1 || !strings.Contains(v.Differences[0].Detail, "so 0 of") {
			t.Errorf("pass %d finds %v", pass, v.Differences)
		}
	}
}
