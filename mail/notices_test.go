package mail_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/mail"
	"purser/mail/mailtest"
	"purser/metering"
	"purser/notify"
	"purser/store"
	"purser/store/notifications"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

// news is an outbox with an organization of an owner, an admin and a member of support.
type news struct {
	*harness
	inbox   *mailtest.Server
	url     string
	app     tenancy.Application
	members map[string]ids.ID
}

func newNews(t *testing.T) *news {
	t.Helper()
	inbox := mailtest.Start(t, mailtest.Options{})
	server, options := startTLS(inbox)
	n := &news{inbox: inbox, url: storetest.FreshURL(t), members: map[string]ids.ID{}}
	n.harness = newHarnessOn(t, n.url, server, options)
	now := n.clock()
	org, err := tenancy.NewOrganization(ids.New(), "Acme", now)
	noError(t, err)
	owner := ids.New()
	storetest.Exec(t, n.url, `INSERT INTO organizations (id, slug, name, requires_factor, created_at) VALUES ($1, 'acme', 'Acme', false, $2)`, org.ID, now)
	for _, role := range []tenancy.Role{tenancy.Owner, tenancy.Admin, tenancy.Support} {
		id := ids.New()
		if role == tenancy.Owner {
			id = owner
		}
		n.members[string(role)] = id
		storetest.Exec(t, n.url, `INSERT INTO users (id, email, name, created_at) VALUES ($1, $2, $3, $4)`, id, string(role)+"@example.com", string(role), now)
		storetest.Exec(t, n.url, `INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, $3, '{}', $4)`, org.ID, id, string(role), now)
	}
	org.Slug = "acme"
	app, err := tenancy.NewApplication(ids.New(), org, "Chat", true, now)
	noError(t, err)
	n.app, err = n.store.Org(org.ID).CreateApplication(t.Context(), app)
	noError(t, err)
	return n
}

// choose sets what a member is mailed about.
func (n *news) choose(t *testing.T, role tenancy.Role, chosen tenancy.MailPreferences) {
	t.Helper()
	noError(t, n.store.User(n.members[string(role)]).ChooseMails(t.Context(), n.app.OrgID, chosen))
}

// announce stores notifications, numbered.
func (n *news) announce(t *testing.T, list ...notify.Notification) {
	t.Helper()
	for _, each := range list {
		storetest.Exec(t, n.url, `INSERT INTO notifications (app_id, id, org_id, type, data, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			n.app.ID, each.ID, n.app.OrgID, string(each.Type), string(each.Data), each.CreatedAt)
	}
	_, err := n.store.Notifications(n.app.Scope()).Number(t.Context(), n.clock())
	noError(t, err)
}

// mailed runs both tasks and returns the subjects that arrived, each with its address.
func (n *news) mailed(t *testing.T) (list []string) {
	t.Helper()
	noError(t, n.outbox.MailNotifications(t.Context()))
	before := len(n.inbox.Received())
	noError(t, n.outbox.SendDue(t.Context()))
	for _, m := range n.inbox.Received()[before:] {
		list = append(list, m.To+": "+m.Subject)
	}
	slices.Sort(list)
	return list
}

// A member is mailed about what they chose, once.
func TestMembersAreMailedOnce(t *testing.T) {
	t.Parallel()
	n := newNews(t)
	now := n.clock()
	sample := func(kind notify.Type) notify.Notification {
		return notify.New(kind, ids.ID{}, notify.Sample(kind), now)
	}
	n.announce(t, sample(notify.BalanceLow), sample(notify.WebhookPaused), sample(notify.KeyExpiring), sample(notify.DepositCreated))
	want := []string{"owner@example.com: API key expires soon in Chat", "owner@example.com: Webhook endpoint paused in Chat"}
	if got := n.mailed(t); !slices.Equal(got, want) {
		t.Errorf("mailed %q, want %q", got, want)
	}
	if got := n.mailed(t); len(got) > 0 {
		t.Errorf("mailed again: %q", got)
	}
	n.choose(t, tenancy.Admin, tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailLive})
	n.choose(t, tenancy.Support, tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailAll, tenancy.MailKeys: tenancy.MailAll})
	n.choose(t, tenancy.Owner, tenancy.MailPreferences{tenancy.MailWebhooks: tenancy.MailNone, tenancy.MailKeys: tenancy.MailNone})
	n.announce(t, sample(notify.BalanceExhausted), sample(notify.AllowanceThreshold), sample(notify.KeyExpiring))
	want = []string{
		"admin@example.com: Allowance used to 80% in Chat: ", "admin@example.com: Usage declined in Chat: ",
		"support@example.com: Allowance used to 80% in Chat: ", "support@example.com: Usage declined in Chat: ",
	}
	got := n.mailed(t)
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
		want[min(i, len(want)-1)] = strings.TrimRight(want[min(i, len(want)-1)], " ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("mailed %q, want %q", got, want)
	}
	last := n.inbox.Received()[len(n.inbox.Received())-1]
	if !strings.Contains(last.Text, "https://purser.example.com/account#mail") || !strings.Contains(last.Text, "Credit: tokens") && !strings.Contains(last.Text, "Feature: chat") {
		t.Errorf("the mail says %s", last.Text)
	}
	for _, m := range n.inbox.Received() {
		if strings.Contains(m.Subject, "Allowance") && !strings.Contains(m.Text, "A customer used 80% of an allowance") {
			t.Errorf("the mail says %s", m.Text)
		}
	}
}

// A mail may wait while its member is removed, loses the right to read, or unsubscribes.
func TestMailsWaitForMembersOnly(t *testing.T) {
	t.Parallel()
	n := newNews(t)
	alerts := tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailAll}
	n.choose(t, tenancy.Owner, tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailAll, tenancy.MailKeys: tenancy.MailNone})
	for name, leave := range map[string]func(){
		"removed":      func() { storetest.Exec(t, n.url, `DELETE FROM members WHERE user_id = $1`, n.members["support"]) },
		"unsubscribed": func() { n.choose(t, tenancy.Support, tenancy.MailPreferences{}) },
		"not allowed to read customers": func() {
			storetest.Exec(t, n.url, `UPDATE members SET role = 'custom', permissions = '{keys:read}' WHERE user_id = $1`, n.members["support"])
		},
	} {
		storetest.Exec(t, n.url, `
			INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, 'support', '{}', 1)
			ON CONFLICT (org_id, user_id) DO UPDATE SET role = 'support', permissions = '{}'`, n.app.OrgID, n.members["support"])
		n.choose(t, tenancy.Support, alerts)
		var flood []notify.Notification
		for range notify.MaxHourlyMails + 1 {
			flood = append(flood, notify.New(notify.BalanceLow, ids.ID{}, notify.Sample(notify.BalanceLow), n.clock()))
		}
		n.announce(t, flood...)
		noError(t, n.outbox.MailNotifications(t.Context()))
		if waiting := n.waiting(t); waiting != 2*(notify.MaxHourlyMails+1) {
			t.Fatalf("%s: %d mails wait", name, waiting)
		}
		leave()
		got := n.mailed(t)
		if len(got) != notify.MaxHourlyMails+1 || slices.ContainsFunc(got, func(m string) bool { return !strings.HasPrefix(m, "owner@") }) || n.waiting(t) != 0 {
			t.Errorf("%s: mailed %q", name, got)
		}
		n.advance(time.Hour)
	}
}

func (n *news) sealed(t *testing.T) people.Mail {
	t.Helper()
	m, err := n.outbox.Seal(mail.Alert, "owner@example.com", mail.PasswordLetter(mail.Where{}), 0)
	noError(t, err)
	return m
}

// A node that dies between two passes, and two nodes at once, mail nothing twice.
func TestPassesAtOnceMailOnce(t *testing.T) {
	t.Parallel()
	n := newNews(t)
	n.announce(t, notify.New(notify.KeyExpiring, ids.ID{}, notify.Sample(notify.KeyExpiring), n.clock()))
	app := n.store.Notifications(n.app.Scope())
	stale, err := app.Unmailed(t.Context(), []notify.Type{notify.KeyExpiring}, 0)
	noError(t, err)
	if len(stale.Notifications) != 1 {
		t.Fatalf("%d notifications are to be mailed", len(stale.Notifications))
	}
	if got := n.mailed(t); len(got) != 1 {
		t.Errorf("mailed %q", got)
	}
	late := notifications.Addressed{UserID: n.members["owner"], Wanted: 1, Mails: []people.Mail{n.sealed(t)}, Rest: n.sealed(t)}
	noError(t, app.FinishMailing(t.Context(), stale, []notifications.Addressed{late}, n.clock())) // of the other node
	if got := n.mailed(t); len(got) > 0 {
		t.Errorf("mailed %q by a late pass", got)
	}
	n.announce(t, notify.New(notify.KeyExpiring, ids.ID{}, notify.Sample(notify.KeyExpiring), n.clock()))
	if got := n.mailed(t); len(got) != 1 {
		t.Errorf("mailed %q after a late pass", got)
	}
}

// A flood of alerts is ten mails and one that says so, until the hour is over; what is
// old is not mailed.
func TestMailsAreBounded(t *testing.T) {
	t.Parallel()
	n := newNews(t)
	n.choose(t, tenancy.Admin, tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailAll})
	flood := func(number int) {
		var list []notify.Notification
		for range number {
			list = append(list, notify.New(notify.BalanceLow, ids.ID{}, notify.Sample(notify.BalanceLow), n.clock()))
		}
		n.announce(t, list...)
	}
	flood(4)
	if got := n.mailed(t); len(got) != 4 {
		t.Errorf("mailed %q", got)
	}
	flood(250)
	got := n.mailed(t)
	if more := fmt.Sprintf("admin@example.com: More alerts in %s", n.app.Name); len(got) != notify.MaxHourlyMails-4+1 || !slices.Contains(got, more) {
		t.Errorf("mailed %q", got)
	}
	flood(1)
	if got := n.mailed(t); len(got) > 0 {
		t.Errorf("mailed %q past the limit", got)
	}
	n.advance(time.Hour)
	flood(1)
	if got := n.mailed(t); len(got) != 1 {
		t.Errorf("mailed %q in the next hour", got)
	}
	n.advance(25 * time.Hour) // as if the SMTP server were set up a day later
	flood(1)
	n.advance(25 * time.Hour)
	if got := n.mailed(t); len(got) > 0 {
		t.Errorf("mailed %q of the day before", got)
	}
}

// Alerts, also of another organization, leave the mails about what happens once. Those
// have a limit of their own.
func TestAlertsLeaveOtherMails(t *testing.T) {
	t.Parallel()
	n := newNews(t)
	n.choose(t, tenancy.Owner, tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailAll, tenancy.MailKeys: tenancy.MailAll, tenancy.MailWebhooks: tenancy.MailAll})
	announce := func(kind notify.Type, number int) {
		var list []notify.Notification
		for range number {
			list = append(list, notify.New(kind, ids.ID{}, notify.Sample(kind), n.clock()))
		}
		n.announce(t, list...)
	}
	announce(notify.BalanceLow, 30)
	announce(notify.KeyExpiring, 1)
	if got := n.mailed(t); len(got) != notify.MaxHourlyMails+2 || !slices.Contains(got, "owner@example.com: API key expires soon in Chat") || !slices.Contains(got, "owner@example.com: More alerts in Chat") {
		t.Errorf("mailed %q beside alerts", got)
	}
	announce(notify.WebhookPaused, 1)
	if got := n.mailed(t); len(got) != 1 {
		t.Errorf("mailed %q after alerts", got)
	}
	announce(notify.KeyExpiring, 30)
	if got := n.mailed(t); len(got) != notify.MaxHourlyMails-2+1 || !slices.Contains(got, "owner@example.com: More notifications in Chat") {
		t.Errorf("mailed %q: want the rest of the limit, and that there are more", got)
	}
	n.advance(time.Hour)
	announce(notify.KeyExpiring, 1)
	announce(notify.BalanceLow, 1)
	if got := n.mailed(t); len(got) != 2 {
		t.Errorf("mailed %q in the next hour", got)
	}
}

// An alert of a charge, and a key that expires, reach the inbox from one end to the other.
func TestAlertsReachTheInbox(t *testing.T) {
	t.Parallel()
	n := newNews(t)
	n.choose(t, tenancy.Support, tenancy.MailPreferences{tenancy.MailAlerts: tenancy.MailAll})
	ctx, now := t.Context(), n.clock()
	app := n.store.App(n.app.Scope())
	noError(t, app.CreateCredit(ctx, metering.Credit{ID: ids.New(), Key: "tokens", Name: "Tokens", Unit: "token", Revision: 1, CreatedAt: now}))
	_, err := app.CreateFeature(ctx, metering.Feature{ID: ids.New(), Key: "chat", Name: "Chat", Unit: "use", CreditKey: "tokens", Cost: 1_000_000_000, QuantityPerUnit: 1,
		PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: now})
	noError(t, err)
	rule, err := metering.NewAlertRule(metering.AlertRule{ID: ids.New(), Key: "low", Kind: metering.AlertBalance, CreditKey: "tokens",
		Thresholds: []metering.Amount{5_000_000_000}, RearmPercent: 120, CreatedAt: now})
	noError(t, err)
	_, err = app.PutAlertRule(ctx, rule)
	noError(t, err)
	deposit := "once"
	_, _, err = app.Deposit(ctx, store.Deposit{ID: ids.New(), Identity: "user-42", CreditKey: "tokens", Amount: 6_000_000_000, IdempotencyKey: &deposit, CreatedAt: now})
	noError(t, err)
	key, _, err := keys.New(keys.Spec{ID: ids.New(), App: n.app, Name: "Server", Preset: keys.Ingestion, ExpiresAt: now + (6 * 24 * time.Hour).Milliseconds()},
		tenancy.AllPermissions(), now-(24*24*time.Hour).Milliseconds(), rand.Reader)
	noError(t, err)
	noError(t, app.CreateKey(ctx, key))
	engine, err := n.store.OpenEngine(ctx, store.EngineOptions{})
	noError(t, err)
	t.Cleanup(engine.Close)
	decision, err := engine.Track(store.Usage{Scope: n.app.Scope(), KeyID: key.ID, Identity: "user-42", FeatureKey: "chat",
		Usage: metering.Usage{TransactionID: ids.New(), EventID: "e1", Quantity: 2}})
	noError(t, err)
	noError(t, decision.Err())
	_, err = app.AnnounceExpiringKeys(ctx, now)
	noError(t, err)
	_, err = n.store.Notifications(n.app.Scope()).Number(ctx, now)
	noError(t, err)
	want := []string{"owner@example.com: API key expires soon in Chat", "support@example.com: Low balance in Chat: user-42"}
	if got := n.mailed(t); !slices.Equal(got, want) {
		t.Errorf("mailed %q, want %q", got, want)
	}
	for _, m := range n.inbox.Received() {
		if strings.Contains(m.Subject, "Low") && (!strings.Contains(m.Text, "Balance: 4\n") || !strings.Contains(m.Text, "Threshold: 5\n") || !strings.Contains(m.Text, "/o/acme/a/chat/wallets/wal_")) {
			t.Errorf("the mail says %s", m.Text)
		}
	}
}
