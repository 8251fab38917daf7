package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"
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
	"purser/store/people"
	"purser/store/queue"
	"purser/store/reports"
	"purser/store/rollups"
	"purser/store/storetest"
	"purser/store/verify"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// anyError stands for a refusal that has no code of its own.
const anyError fault.Code = "*"

// call is one use of a handle with what belongs to the fixture: its ids, keys and
// identities. The codes are what three callers get: another tenant, who has nothing;
// a tenant with the same under the same names; and the fixture itself,
// which shows that the arguments do lead to something.
type call[Handle any] struct {
	method                      string
	with                        string // which of the arguments is meant, where there are several cases
	otherTenant, sameNames, own fault.Code
	run                         func(context.Context, Handle, fixture) (seen any, err error)
}

var appCalls = []call[store.App]{
	{"CreateCredit", "", "", fault.AlreadyExists, fault.AlreadyExists, func(ctx context.Context, a store.App, h fixture) (any, error) {
		return nil, a.CreateCredit(ctx, h.credit)
	}},
	{"Credit", "", fault.CreditNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.Credit(ctx, h.credit.Key)
	}},
	{"Credits", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return page(a.Credits(ctx, store.Page{Limit: 100}))
	}},
	{"UpdateCredit", "", fault.CreditNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.UpdateCredit(ctx, h.credit.Key, metering.CreditPatch{Name: new("Changed")})
	}},
	{"CreateFeature", "", fault.CreditNotFound, fault.AlreadyExists, fault.AlreadyExists, func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.CreateFeature(ctx, h.feature)
	}},
	{"Feature", "", fault.FeatureNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.Feature(ctx, h.feature.Key)
	}},
	{"Features", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return page(a.Features(ctx, store.Page{Limit: 100}))
	}},
	{"UpdateFeature", "", fault.FeatureNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.UpdateFeature(ctx, h.feature.Key, metering.FeaturePatch{Name: new("Changed")}, moment)
	}},
	{"CreatePlan", "", fault.FeatureNotFound, fault.AlreadyExists, fault.AlreadyExists, func(ctx context.Context, a store.App, h fixture) (any, error) {
		return createPlan(ctx, a, h.plan.ID)
	}},
	{"Plan", "", fault.PlanNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.Plan(ctx, h.plan.Key)
	}},
	{"Plans", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return page(a.Plans(ctx, store.Page{Limit: 100}))
	}},
	{"UpdatePlan", "", fault.PlanNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.UpdatePlan(ctx, h.plan.Key, billing.PlanPatch{Name: new("Changed")})
	}},
	{"Catalog", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) { return a.Catalog(ctx) }},
	{"ApplyCatalog", "", "", "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		stored, err := a.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		draft := billing.CatalogDraft{Credits: []metering.Credit{{Key: h.credit.Key, Name: "Changed", Unit: "token"}}}
		_, _, err = a.ApplyCatalog(ctx, stored.Version(), moment, "", func(s billing.CatalogState) (billing.CatalogDiff, error) {
			return s.Compare(draft, billing.CatalogOptions{NewID: ids.New, Now: moment})
		})
		return nil, err
	}},
	{"CreateKey", "its scope", fault.APIKeyNotFound, fault.APIKeyNotFound, anyError, func(ctx context.Context, a store.App, h fixture) (any, error) {
		return nil, a.CreateKey(ctx, h.key)
	}},
	{"Key", "", fault.APIKeyNotFound, fault.APIKeyNotFound, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.Key(ctx, h.key.ID)
	}},
	{"Keys", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return page(a.Keys(ctx, store.Page{Limit: 100}))
	}},
	{"UseKey", "", fault.InvalidAPIKey, fault.InvalidAPIKey, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.UseKey(ctx, h.key.ID, moment)
	}},
	{"RevokeKey", "", fault.APIKeyNotFound, fault.APIKeyNotFound, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.RevokeKey(ctx, h.key.ID, moment)
	}},
	{"AnnounceExpiringKeys", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return a.AnnounceExpiringKeys(ctx, moment)
	}},
	{"RevokeKeys", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return a.RevokeKeys(ctx, moment)
	}},
	{"Impact", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) { return a.Impact(ctx, moment) }},
	{"Archive", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		if err := a.Archive(ctx, tenancy.Application{}, moment); err != nil {
			return nil, err
		}
		return nil, a.Restore(ctx)
	}},
	{"Restore", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) { return nil, a.Restore(ctx) }},
	{"RotateKey", "", fault.APIKeyNotFound, fault.APIKeyNotFound, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.RotateKey(ctx, h.key.ID, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: keys.OneHour}, tenancy.AllPermissions(), moment, rand.Reader)
		})
	}},
	{"CreateWallet", "", "", "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		w, _, err := a.CreateWallet(ctx, ids.New(), h.deposit.Identity, moment)
		return w, err
	}},
	{"RecordAction", "", "", "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return nil, a.RecordAction(ctx, "subscription.cancel", h.deposit.Identity, nil)
	}},
	{"Wallet", "", fault.WalletNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.Wallet(ctx, h.deposit.Identity)
	}},
	{"Wallets", "", "", "", "", func(ctx context.Context, a store.App, _ fixture) (any, error) {
		return page(a.Wallets(ctx, store.Page{Limit: 100}))
	}},
	{"SetBillingPeriod", "", fault.WalletNotFound, fault.BillingPeriodLocked, fault.BillingPeriodLocked, func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.SetBillingPeriod(ctx, h.deposit.Identity, metering.BillingPeriod{Interval: metering.Day})
	}},
	{"Deposit", "its idempotency key", fault.CreditNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		d, _, err := a.Deposit(ctx, depositOf(h.deposit.Identity, h.credit.Key, 5, *h.deposit.IdempotencyKey))
		return d, err
	}},
	{"Deposit", "its identity", fault.CreditNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		d, _, err := a.Deposit(ctx, depositOf(h.deposit.Identity, h.credit.Key, 5, ids.New().String()))
		return d, err
	}},
	{"Deposits", "", "", "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		list, _, err := a.Deposits(ctx, store.DepositPage{Identity: h.deposit.Identity, Limit: 100})
		return list, err
	}},
	{"PutSubscription", "", fault.WalletNotFound, anyError, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return nil, a.PutSubscription(ctx, h.deposit.Identity, h.subscription)
	}},
	{"By", "", fault.CreditNotFound, "", "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		return a.By(actor).UpdateCredit(ctx, h.credit.Key, metering.CreditPatch{Name: new("Changed")})
	}},
	{"Adjust", "", fault.WalletNotFound, fault.WalletNotFound, "", func(ctx context.Context, a store.App, h fixture) (any, error) {
		requested := h.adjustment()
		requested.ID = ids.New()
		return nil, a.Adjust(ctx, requested)
	}},
}

var verifyCalls = []call[verify.App]{
	{"Claim", "", "", "", "", func(ctx context.Context, a verify.App, _ fixture) (any, error) {
		return a.Claim(ctx, verify.NewEntries, moment, time.Hour, time.Minute)
	}},
	{"Finish", "", "", "", "", func(ctx context.Context, a verify.App, _ fixture) (any, error) {
		return nil, a.Finish(ctx, verify.Run{Kind: verify.AllEntries, StartedAt: moment, FinishedAt: moment}, nil)
	}},
	{"Runs", "", "", "", "", func(ctx context.Context, a verify.App, _ fixture) (any, error) {
		return a.Runs(ctx)
	}},
	{"SealDigest", "", "", "", "", func(ctx context.Context, a verify.App, _ fixture) (any, error) {
		return a.SealDigest(ctx)
	}},
	{"Verify", "", "", "", "", func(ctx context.Context, a verify.App, _ fixture) (any, error) {
		return a.Verify(ctx, verify.Options{New: true, Record: true, Now: moment})
	}},
}

var orgCalls = []call[people.Org]{
	{"Organization", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return o.Organization(ctx)
	}},
	{"CreateApplication", "its organization", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		requested := h.application
		requested.ID = ids.New()
		return o.CreateApplication(ctx, requested)
	}},
	{"Application", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		return o.Application(ctx, h.application.ID)
	}},
	{"Applications", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return o.Applications(ctx)
	}},
	{"UpdateApplication", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		requested := h.application
		requested.Name = "Changed"
		return nil, o.UpdateApplication(ctx, requested)
	}},
	{"MailRoster", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return o.MailRoster(ctx)
	}},
	{"MailMember", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		return o.MailMember(ctx, h.owner.UserID)
	}},
	{"Members", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return o.Members(ctx)
	}},
	{"ChangeMember", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		return nil, o.By(actorOf(h.owner)).ChangeMember(ctx, h.owner.UserID, tenancy.Access{Role: tenancy.Owner})
	}},
	{"RemoveMember", "", fault.PathNotFound, fault.PathNotFound, fault.LastOwner, func(ctx context.Context, o people.Org, h fixture) (any, error) {
		return nil, o.By(actorOf(h.owner)).RemoveMember(ctx, h.owner.UserID)
	}},
	{"Roster", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return o.Roster(ctx)
	}},
	{"Rename", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return nil, o.Rename(ctx, "Changed")
	}},
	{"Archive", "", fault.Archived, fault.Archived, fault.Archived, func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return nil, o.Archive(ctx, moment)
	}},
	{"Restore", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) { return nil, o.Restore(ctx) }},
	{"RequireFactor", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return nil, o.RequireFactor(ctx, true)
	}},
	{"By", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return nil, o.By(actor).Rename(ctx, "Changed")
	}},
	{"Invite", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		i, link := invitationOf(h)
		return nil, o.Invite(ctx, i, link)
	}},
	{"Invitations", "", "", "", "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		if err := inviteAtHome(ctx, h, ids.New()); err != nil {
			return nil, err
		}
		return o.Invitations(ctx, moment)
	}},
	{"WithdrawInvitation", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		id := ids.New()
		if err := inviteAtHome(ctx, h, id); err != nil {
			return nil, err
		}
		return nil, o.By(actorOf(h.owner)).WithdrawInvitation(ctx, id, moment)
	}},
	{"AuditLog", "", "", "", "", func(ctx context.Context, o people.Org, h fixture) (any, error) {
		if err := inviteAtHome(ctx, h, ids.New()); err != nil {
			return nil, err
		}
		list, _, err := o.AuditLog(ctx, people.AuditPage{Limit: 100})
		return list, err
	}},
	{"VerifyAudit", "", "", "", "", func(ctx context.Context, o people.Org, _ fixture) (any, error) {
		return o.VerifyAudit(ctx)
	}},
}

// actor is a member who acts by hand.
var actor = audit.Actor{Name: "ann@example.com", Address: "192.0.2.1", At: moment}

func invitationOf(h fixture) (people.Invitation, credential.Hash) {
	id := ids.New()
	return people.Invitation{
		ID: id, OrgID: h.org.ID, Note: "Bob", Access: tenancy.Access{Role: tenancy.Support},
		InvitedBy: h.owner.UserID, CreatedAt: moment, ExpiresAt: moment + 1000,
	}, credential.Token(id.String()).Hash()
}

// inviteAtHome makes an invitation of the fixture's own, which others look for.
func inviteAtHome(ctx context.Context, h fixture, id ids.ID) error {
	i, link := invitationOf(h)
	i.ID = id
	return h.db.Org(h.org.ID).By(actor).Invite(ctx, i, link)
}

func page[T any](list []T, _ bool, err error) (any, error) { return list, err }

// The first wall by itself: through the handle of one application or organization
// there is no way to another, whatever one brings along.
func TestHandlesLeadToOneTenant(t *testing.T) {
	t.Parallel()
	calls := slices.Concat(appCalls, alertCalls)
	everyMethodHasACall(t, calls)
	everyMethodHasACall(t, reportCalls)
	everyMethodHasACall(t, notificationCalls)
	everyMethodHasACall(t, rollupCalls)
	everyMethodHasACall(t, orgCalls)
	everyMethodHasACall(t, verifyCalls)
	everyMethodHasACall(t, queueCalls)
	everyMethodHasACall(t, accountCalls)
	everyMethodHasACall(t, salesCalls)
	everyHandleIsTried(t, reflect.TypeFor[store.App](), reflect.TypeFor[reports.App](), reflect.TypeFor[notifications.App](), reflect.TypeFor[rollups.App](), reflect.TypeFor[queue.App](), reflect.TypeFor[verify.App](),
		reflect.TypeFor[payments.Accounts](), reflect.TypeFor[sales]().Field(0).Type)
	url := urlWithoutPolicies(t)
	throughHandles(t, url, calls, func(a tenant) store.App { return a.App })
	throughHandles(t, url, reportCalls, tenant.Reports)
	throughHandles(t, url, notificationCalls, tenant.Notifications)
	throughHandles(t, url, rollupCalls, tenant.Rollups)
	throughHandles(t, url, verifyCalls, tenant.Verification)
	throughHandles(t, url, queueCalls, tenant.Queue)
	throughHandles(t, url, accountCalls, func(a tenant) accounts { return accounts{a.Accounts(), a.Queue()} })
	throughHandles(t, url, salesCalls, func(a tenant) sales { return sales{a.Payments(), a.Queue()} })
	throughHandles(t, url, orgCalls, func(a tenant) people.Org { return a.db.Org(a.org.ID) })
}

// urlWithoutPolicies is a database in which the third wall is down. A statement
// that reaches too far shows there, and not only once the policies fail as well.
func urlWithoutPolicies(t *testing.T) string {
	t.Helper()
	url := storetest.FreshURL(t)
	owner := connect(t, url)
	for _, table := range tablesOfTenants(t, owner) {
		exec(t, owner, `ALTER TABLE `+table+` DISABLE ROW LEVEL SECURITY`)
	}
	return url
}

func everyMethodHasACall[Handle any](t *testing.T, calls []call[Handle]) {
	t.Helper()
	called := make(map[string]bool)
	for _, c := range calls {
		called[c.method] = true
	}
	handle := reflect.TypeFor[Handle]()
	for i := range handle.NumMethod() {
		if name := handle.Method(i).Name; !called[name] {
			t.Errorf("%s.%s is not tried from outside: add a call", handle.Name(), name)
		}
	}
}

// everyHandleIsTried finds the handles on one application that the store opens and that
// are none of these.
func everyHandleIsTried(t *testing.T, tried ...reflect.Type) {
	t.Helper()
	opens := reflect.TypeFor[*store.Store]()
	for i := range opens.NumMethod() {
		method := opens.Method(i)
		if method.Type.NumIn() != 2 || method.Type.In(1) != reflect.TypeFor[tenancy.Scope]() {
			continue
		}
		if handle := method.Type.Out(0); !slices.Contains(tried, handle) {
			t.Errorf("%s, which Store.%s opens, is not tried from outside: add calls", handle, method.Name)
		}
	}
}

func throughHandles[Handle any](t *testing.T, url string, calls []call[Handle], handle func(tenant) Handle) {
	db, owner := openStore(t, url), connect(t, url)
	usage, tables := openUsage(t, db), tablesOfTenants(t, owner)
	sameNames := newFixture(t, db, usage).tenant
	var home fixture
	used := true // by a call that may have written, so the next call gets another fixture
	for _, c := range calls {
		t.Run(strings.TrimSpace(reflect.TypeFor[Handle]().Name()+"."+c.method+" "+c.with), func(t *testing.T) {
			otherTenant := newTenant(t, db)
			if used {
				home = newFixture(t, db, usage)
			}
			used = true
			before := dumpTables(t, owner, tables, home)
			for name, foreign := range map[string]struct {
				tenant
				want fault.Code
			}{"another tenant": {otherTenant, c.otherTenant}, "a tenant with the same names": {sameNames, c.sameNames}} {
				seen, err := c.run(t.Context(), handle(foreign.tenant), home)
				expect(t, name, err, foreign.want)
				if err == nil {
					seesNothing(t, name, seen, home)
				}
				if after := dumpTables(t, owner, tables, home); after != before {
					t.Errorf("%s has changed the rows from\n%s\nto\n%s", name, before, after)
				}
			}
			_, err := c.run(t.Context(), handle(home.tenant), home)
			expect(t, "the fixture", err, c.own)
			used = t.Failed() || err != nil || dumpTables(t, owner, tables, home) != before
		})
	}
}

func expect(t *testing.T, who string, err error, want fault.Code) {
	t.Helper()
	if want == anyError && err != nil {
		return
	}
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		t.Errorf("%s got %v, want %q", who, err, want)
	}
}

// seesNothing looks for the fixture's ids in all that came back.
func seesNothing(t *testing.T, who string, seen any, h fixture) {
	t.Helper()
	text := fmt.Sprintf("%+v", seen)
	for name, id := range map[string]ids.ID{
		"organization": h.org.ID, "application": h.application.ID, "key": h.key.ID, "credit": h.credit.ID, "feature": h.feature.ID, "plan": h.plan.ID,
		"deposit": h.deposit.ID, "subscription": h.subscription.ID, "owner": h.owner.UserID, "wallet": h.walletID,
	} {
		if strings.Contains(text, id.String()) {
			t.Errorf("%s sees the %s: %s", who, name, text)
		}
	}
}

// dump is every row of the fixture, each with the transaction that wrote it, so
// that even a change to the same values shows.
func dump(t *testing.T, on *pgx.Conn, h fixture) string {
	t.Helper()
	return dumpTables(t, on, tablesOfTenants(t, on), h)
}

// dumpTables is dump with the tables that tablesOfTenants lists, in one round trip.
func dumpTables(t *testing.T, on *pgx.Conn, tables []string, h fixture) string {
	t.Helper()
	var rows []string
	var batch pgx.Batch
	queue := func(table, column string, id ids.ID) {
		batch.Queue(`SELECT '`+table+` ' || r.xmin || ' ' || r::text FROM `+table+` r WHERE `+column+` = $1 ORDER BY 1`, id).Query(func(found pgx.Rows) error {
			list, err := pgx.CollectRows(found, pgx.RowTo[string])
			rows = append(rows, list...)
			return err
		})
	}
	for _, table := range slices.Concat(tables, controlTables) {
		queue(table, "app_id", h.application.ID)
	}
	for _, table := range []string{"applications", "members"} {
		queue(table, "org_id", h.org.ID)
	}
	queue("organizations", "id", h.org.ID)
	noError(t, on.SendBatch(t.Context(), &batch).Close())
	return strings.Join(rows, "\n")
}
