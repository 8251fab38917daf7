package store_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/notifications"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/reports"
	"purser/store/rollups"
	"purser/store/verify"
	"purser/tenancy"
)

// moment is when everything happens in tests that need no other time.
const moment int64 = 1_800_000_000_000

// tenant is an application in an organization of its own.
type tenant struct {
	store.App
	db          *store.Store
	org         tenancy.Organization
	application tenancy.Application
}

// Reports reads what pages show of the application.
func (a tenant) Reports() reports.App { return a.db.Reports(a.application.Scope()) }

// Rollups are the application's usage statistics.
func (a tenant) Rollups() rollups.App { return a.db.Rollups(a.application.Scope()) }

// Notifications is what the application tells other systems.
func (a tenant) Notifications() notifications.App { return a.db.Notifications(a.application.Scope()) }

func newTenant(tb testing.TB, db *store.Store) tenant {
	tb.Helper()
	org := newOrganization(tb, db, "Tenant")
	requested, err := tenancy.NewApplication(ids.New(), org, "Chat", true, moment)
	noError(tb, err)
	application, err := db.Org(org.ID).CreateApplication(tb.Context(), requested)
	noError(tb, err)
	return tenant{App: db.App(application.Scope()), db: db, org: org, application: application}
}

// Verification is the verification of the application.
func (a tenant) Verification() verify.App { return a.db.Verification(a.application.Scope()) }

// Payments is what is sold and paid in the application.
func (a tenant) Payments() payments.App { return a.db.Payments(a.application.Scope()) }

// Accounts are the application's accounts at the payment provider.
func (a tenant) Accounts() payments.Accounts { return a.db.PaymentAccounts(a.application.Scope()) }

// Queue is what the application does later.
func (a tenant) Queue() queue.App { return a.db.Queue(a.application.Scope()) }

// allJobKinds are the kinds of jobs that tests claim.
var allJobKinds = []queue.JobKind{
	queue.JobPlan, queue.JobOperation, queue.JobFree, queue.JobArchive, queue.JobSession, queue.JobSubscription, queue.JobInvoice,
	queue.JobCharge, queue.JobRefund, queue.JobDispute, queue.JobSchedule, queue.JobCustomer, queue.JobEvents, queue.JobReconcile, queue.JobPrune,
	queue.JobIdentity, queue.JobLabel, queue.JobUsage,
}

// DueJobs claims the jobs that are due at a time of the application's clock, with a
// lease that has expired: they can be finished, and claimed again.
func (a tenant) DueJobs(ctx context.Context, now int64, most int) ([]queue.Job, error) {
	offset, err := a.ClockOffset(ctx)
	if err != nil {
		return nil, err
	}
	batch, err := a.Queue().ClaimJobs(ctx, queue.ClaimInput{Kinds: allJobKinds, Now: now - offset, Most: most})
	return batch.Jobs, err
}

func newOrganization(tb testing.TB, db *store.Store, name string) tenancy.Organization {
	tb.Helper()
	requested, err := tenancy.NewOrganization(ids.New(), name, moment)
	noError(tb, err)
	org, err := store.CreateOrganization(tb.Context(), db, requested)
	noError(tb, err)
	return org
}

// newMember is a new person in the organization.
func newMember(tb testing.TB, db *store.Store, org tenancy.Organization, role tenancy.Role) tenancy.Member {
	tb.Helper()
	id := ids.New()
	user, err := tenancy.NewUser(id, id.String()+"@example.com", "Ann", moment)
	noError(tb, err)
	noError(tb, store.CreateUser(tb.Context(), db, user))
	member := tenancy.Member{OrgID: org.ID, UserID: id, Access: tenancy.Access{Role: role}, CreatedAt: moment}
	noError(tb, store.AddMember(tb.Context(), db, member))
	return member
}

func (a tenant) newKey(tb testing.TB, preset keys.Preset) (keys.APIKey, keys.Secret) {
	tb.Helper()
	spec := keys.Spec{ID: ids.New(), App: a.application, Name: "Server", Preset: preset}
	key, secret, err := keys.New(spec, tenancy.AllPermissions(), moment, rand.Reader)
	noError(tb, err)
	noError(tb, a.CreateKey(tb.Context(), key))
	return key, secret
}

func (a tenant) newCredit(tb testing.TB, key string) metering.Credit {
	tb.Helper()
	credit := metering.Credit{ID: ids.New(), Key: key, Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: moment}
	noError(tb, a.CreateCredit(tb.Context(), credit))
	return credit
}

// featureOf is a feature that costs 7 nanocredits a piece.
func featureOf(key, creditKey string) metering.Feature {
	return metering.Feature{
		ID: ids.New(), Key: key, Name: "Messages", Unit: "message", CreditKey: creditKey, Cost: 7, QuantityPerUnit: 1,
		PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: moment,
	}
}

func (a tenant) newFeature(tb testing.TB, requested metering.Feature) metering.Feature {
	tb.Helper()
	feature, err := a.CreateFeature(tb.Context(), requested)
	noError(tb, err)
	return feature
}

func depositOf(identity, creditKey string, amount metering.Amount, idempotencyKey string) store.Deposit {
	return store.Deposit{
		ID: ids.New(), Identity: identity, CreditKey: creditKey, Amount: amount,
		IdempotencyKey: &idempotencyKey, CreatedAt: moment,
	}
}

func (a tenant) deposit(tb testing.TB, requested store.Deposit) store.Deposit {
	tb.Helper()
	made, _, err := a.Deposit(tb.Context(), requested)
	noError(tb, err)
	return made
}

// fixture is a tenant with at least one row in every table.
type fixture struct {
	tenant
	owner        tenancy.Member
	key          keys.APIKey
	credit       metering.Credit
	feature      metering.Feature // counted against a limit
	plan         billing.Plan
	deposit      store.Deposit
	walletID     ids.ID
	subscription metering.Subscription
	use          store.Usage // the one that was accepted

	connection       payments.Connection
	paidSubscription billing.Subscription
	op               payments.OperationRecord
	change           billing.Change
	topUp            billing.TopUp
	work             queue.Job
	alertID          ids.ID
	denied           ids.ID
	endpoint         ids.ID
	notification     ids.ID
}

func newFixture(tb testing.TB, db *store.Store, usage *store.Engine) fixture {
	tb.Helper()
	h := fixture{tenant: newTenant(tb, db)}
	h.owner = newMember(tb, db, h.org, tenancy.Owner)
	h.key, _ = h.newKey(tb, keys.Setup)
	h.credit = h.newCredit(tb, "tokens")
	h.feature = h.newFeature(tb, featureOf("messages", "tokens"))
	daily := featureOf("daily", "tokens")
	daily.Deduplication = metering.DeduplicateDay
	h.newFeature(tb, daily)
	plan, err := createPlan(tb.Context(), h.App, ids.New())
	noError(tb, err)
	h.plan = plan
	h.deposit = h.tenant.deposit(tb, depositOf("ann@example.com", "tokens", 1_000, "first deposit"))
	wallet, err := h.Wallet(tb.Context(), "ann@example.com")
	noError(tb, err)
	h.walletID = wallet.ID
	h.subscription = metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment),
		Terms: metering.Terms{Limits: []metering.Limit{{
			FeatureID: h.feature.ID, FeatureKey: "messages", Limit: 1, Period: metering.LimitBilling, Overage: metering.OverageCredits,
		}}},
	}
	noError(tb, h.PutSubscription(tb.Context(), "ann@example.com", h.subscription))
	h.use = h.useOf("messages", "event 1")
	for _, use := range []store.Usage{h.use, h.useOf("daily", "event 2")} {
		decision, err := usage.Track(use)
		noError(tb, err)
		noError(tb, decision.Err())
	}
	h.billed(tb)
	h.alerted(tb, usage)
	h.denied = h.reportRows(tb, usage)
	h.notified(tb)
	_, err = h.Rollups().RollUp(tb.Context(), rollups.Alone)
	noError(tb, err)
	// As for a day that is final; this one will get more events.
	noError(tb, store.Transact(tb.Context(), h.App, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `
			INSERT INTO usage_total_days (app_id, day, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits)
			SELECT app_id, 0, feature_id, credit_id, key_id, org_id, events, deduplicated, quantity, included, charged_nanocredits FROM usage_totals WHERE app_id = $1`, h.application.ID)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `
			INSERT INTO usage_value_days (app_id, name, day, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits, packed)
			SELECT app_id, 'entity', 0, feature_id, credit_id, org_id, events, deduplicated, quantity, included, charged_nanocredits, '\x01' FROM usage_totals WHERE app_id = $1
			ON CONFLICT DO NOTHING`, h.application.ID)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `
			INSERT INTO revenue_days (app_id, day, currency, topup, org_id, amount_cents)
			SELECT app_id, 0, 'usd', false, org_id, 2900 FROM app_state WHERE app_id = $1`, h.application.ID)
		return err
	}))
	noError(tb, store.Transact(tb.Context(), h.App, func(ctx context.Context, conn *pgx.Conn) error { return packOne(ctx, conn, h) }))
	noError(tb, h.Rollups().RecordLiability(tb.Context()))
	_, err = h.Verification().Verify(tb.Context(), verify.Options{New: true, Record: true, Now: moment})
	noError(tb, err)
	_, err = h.Verification().Claim(tb.Context(), verify.AllEntries, moment, time.Hour, time.Minute)
	noError(tb, err)
	noError(tb, h.Verification().Finish(tb.Context(), verify.Run{Kind: verify.AllEntries, StartedAt: moment, FinishedAt: moment, Wallets: 1, Entries: 3}, nil))
	return h
}

// packOne gives the fixture a block without events, as the owner: the serving role may
// write none.
func packOne(ctx context.Context, conn *pgx.Conn, h fixture) error {
	if _, err := conn.Exec(ctx, `SET LOCAL ROLE NONE`); err != nil {
		return err
	}
	for _, sql := range []string{
		`INSERT INTO packed_runs (app_id, run, org_id, before, scanned, indexed, done, last_tx, events, started_at)
		SELECT app_id, 1, org_id, 1, $2, true, true, '00000000-0000-0000-0000-000000000000', 0, 1 FROM app_state WHERE app_id = $1`,
		`INSERT INTO packed_ids (app_id, run, last_id, org_id, ids, wallet_ids, refs, seqs) SELECT app_id, 1, $2, org_id, ARRAY[$2::uuid], ARRAY[$2::uuid], '{1}', '{1}' FROM app_state WHERE app_id = $1`,
		`INSERT INTO packed_events (app_id, wallet_id, last_seq, first_seq, org_id, events, first_tx, last_tx, seqs, tx_ids, event_ids, key_ids, price_numbers, quantities, created_ats, amounts, balances_after)
		SELECT app_id, $2, 1, 1, org_id, 0, $2, $2, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}' FROM app_state WHERE app_id = $1`,
	} {
		if _, err := conn.Exec(ctx, sql, h.application.ID, h.walletID); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, `SET LOCAL ROLE `+store.AppRole)
	return err
}

// createPlan makes a plan that includes a message a month.
func createPlan(ctx context.Context, a store.App, id ids.ID) (billing.Plan, error) {
	draft := billing.PlanDraft{
		Key: "pro", Name: "Pro", Price: billing.Price{AmountCents: 2900, Currency: "usd", Interval: billing.Month}, Active: true,
		Limits: []metering.Limit{{FeatureKey: "messages", Limit: 1, Period: metering.LimitBilling, Overage: metering.OverageCredits}},
	}
	return a.CreatePlan(ctx, draft, func(catalog billing.Catalog) (billing.Plan, error) {
		return billing.NewPlan(id, draft, catalog, moment)
	})
}

func (h fixture) useOf(featureKey, eventID string) store.Usage {
	return store.Usage{
		Scope: h.application.Scope(), KeyID: h.key.ID, Identity: "ann@example.com", FeatureKey: featureKey,
		Usage: metering.Usage{TransactionID: ids.New(), EventID: eventID, EntityID: "room 1", Quantity: 3},
	}
}

func openStore(tb testing.TB, url string) *store.Store {
	tb.Helper()
	db, err := store.Open(tb.Context(), url, store.Options{})
	noError(tb, err)
	tb.Cleanup(db.Close)
	return db
}

func openUsage(tb testing.TB, db *store.Store) *store.Engine {
	tb.Helper()
	usage, err := db.OpenEngine(tb.Context(), store.EngineOptions{Now: func() int64 { return moment }})
	noError(tb, err)
	tb.Cleanup(usage.Close)
	usage.SetTimeouts(patience, patience)
	return usage
}

// connect is a connection past the store, as the owner of everything unless the
// address says otherwise.
func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	noError(tb, err)
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// asApp is the address for sessions of the role that serves requests.
func asApp(url string) string { return withParameter(url, "role", store.AppRole) }

// withParameter adds a setting that the session starts with.
func withParameter(address, name, value string) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + name + "=" + url.QueryEscape(value)
}

type execer interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}

// exec runs one statement that must work.
func exec(tb testing.TB, on execer, sql string, args ...any) {
	tb.Helper()
	rows, err := on.Query(tb.Context(), sql, args...)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// texts gives the first column of every row.
func texts(tb testing.TB, on execer, sql string, args ...any) []string {
	tb.Helper()
	rows, err := on.Query(tb.Context(), sql, args...)
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return list
}

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// wantFault expects a refusal, or none for the empty code.
func wantFault(tb testing.TB, err error, code fault.Code) {
	tb.Helper()
	if code == "" && err != nil || code != "" && !fault.Is(err, code) {
		tb.Errorf("got %v, want %q", err, code)
	}
}
