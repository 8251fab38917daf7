package web

import (
	"crypto/rand"
	"crypto/tls"
	"net/http"
	netmail "net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/mail"
	"purser/mail/mailtest"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/tenancy/vault"
	"purser/web/site"
)

// mailHarness is a site that sends mail to an SMTP server in this process. Its database
// is its own: a run sends every mail that is due.
type mailHarness struct {
	*harness
	inbox  *mailtest.Server
	outbox *mail.Outbox
}

func newMailHarness(t *testing.T) *mailHarness {
	t.Helper()
	return newMailHarnessOn(t, site.Options{})
}

func newMailHarnessOn(t *testing.T, options site.Options) *mailHarness {
	t.Helper()
	address := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), address, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	seals, err := vault.New(rand.Reader, rigSecret)
	noError(t, err)
	inbox := mailtest.Start(t, mailtest.Options{})
	outbox := mail.New(mail.Options{
		Store: db, Vault: seals, BaseURL: "https://purser.example.com", Timeout: patience,
		Server: mail.Server{Host: "127.0.0.1", Port: inbox.Port}, TLS: &tls.Config{RootCAs: inbox.Roots},
		From: netmail.Address{Address: "billing@example.com"},
	})
	options.Store, options.Mail, options.BaseURL = db, outbox, "https://purser.example.com"
	return &mailHarness{newHarnessAt(t, address, Options{Options: options}), inbox, outbox}
}

// mailed are the mails to an address, after all that wait were sent.
func (h *mailHarness) mailed(t *testing.T, to string) []mailtest.Message {
	t.Helper()
	noError(t, h.outbox.SendDue(t.Context()))
	return h.inbox.To(to)
}

var linkInMail = regexp.MustCompile(`https://purser\.example\.com(/(?:invite|reset)/[\w-]+)`)

// link is the path of the link in a mail, the same in both of its forms.
func link(t *testing.T, m mailtest.Message) string {
	t.Helper()
	text, html := linkInMail.FindStringSubmatch(m.Text), linkInMail.FindStringSubmatch(m.HTML)
	if text == nil || html == nil || text[1] != html[1] {
		t.Fatalf("links %v and %v in\n%s\n%s", text, html, m.Text, m.HTML)
	}
	return text[1]
}

func TestAnInvitationIsMailed(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	owner := h.join(t, tenancy.Owner)
	page := owner.post(t, h.orgPath("members", "invite"), url.Values{"note": {"Bea"}, "email": {"Bea@Example.com"}, "role": {"support"}})
	if page.status != 200 || !strings.Contains(page.body, "bea@example.com") {
		t.Fatalf("%d: %s", page.status, page.body)
	}
	mails := h.mailed(t, "bea@example.com")
	if len(mails) != 1 || mails[0].Subject != "You're invited to join Acme" || !strings.Contains(mails[0].Text, owner.user.Name) {
		t.Fatalf("%+v", mails)
	}
	if list := owner.get(t, h.orgPath("members")); !strings.Contains(list.body, "Mailed to bea@example.com") {
		t.Error("the list of invitations has no address")
	}
	guest := h.browser()
	if page := guest.get(t, link(t, mails[0])); page.status != 200 || !strings.Contains(page.body, `value="bea@example.com"`) {
		t.Errorf("%d: %s", page.status, page.body)
	}
	t.Run("an invalid address invites no one", func(t *testing.T) {
		page := owner.post(t, h.orgPath("members", "invite"), url.Values{"note": {"Bea"}, "email": {"bea@example.com, eve@example.com"}, "role": {"support"}})
		if page.status != 422 || len(h.mailed(t, "eve@example.com")) != 0 {
			t.Errorf("%d: %s", page.status, page.body)
		}
	})
	t.Run("an organization mails 50 a day", func(t *testing.T) {
		for n := 2; n <= people.MaxMailedInvitations+1; n++ {
			page := owner.post(t, h.orgPath("members", "invite"), url.Values{"note": {"Bea"}, "email": {"bea@example.com"}, "role": {"support"}})
			want := 200
			if n > people.MaxMailedInvitations {
				want = 422
			}
			if page.status != want {
				t.Fatalf("invitation %d: %d", n, page.status)
			}
		}
		if page := owner.post(t, h.orgPath("members", "invite"), url.Values{"note": {"Bea"}, "role": {"support"}}); page.status != 200 {
			t.Errorf("a link to pass on by hand: %d", page.status)
		}
	})
}

const newPassword = "nine amber badgers dig"

// withPassword is a member whose account has a password, signed in.
func (h *mailHarness) withPassword(t *testing.T, role tenancy.Role) *browser {
	t.Helper()
	b := h.join(t, role)
	b.withPassword(t)
	b.signIn(t)
	return b
}

func TestAForgottenPasswordIsReplacedByMail(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	member := h.withPassword(t, tenancy.Support)
	anyone := h.browser()
	if page := anyone.get(t, "/login"); !strings.Contains(page.body, `href="/forgot"`) {
		t.Fatal("the sign-in page has no link")
	}
	known := anyone.post(t, "/forgot", url.Values{"email": {strings.ToUpper(member.user.Email)}})
	unknown := anyone.post(t, "/forgot", url.Values{"email": {"nobody@example.com"}})
	if known.status != 303 || known.location != unknown.location || known.status != unknown.status || known.body != unknown.body {
		t.Fatalf("known %+v, unknown %+v", known, unknown)
	}
	queue, err := h.db.Outbox().Waiting(t.Context())
	noError(t, err)
	if queue.Waiting != 2 {
		t.Fatalf("%d mails wait: both requests have to do the same work", queue.Waiting)
	}
	mails := h.mailed(t, member.user.Email)
	if len(mails) != 1 || len(h.inbox.Received()) != 1 {
		t.Fatalf("%d mails", len(h.inbox.Received()))
	}
	path := link(t, mails[0])
	if page := anyone.get(t, path); page.status != 200 || !strings.Contains(page.body, "Choose a new password") {
		t.Fatalf("%d: %s", page.status, page.body)
	}
	if page := anyone.post(t, path, url.Values{"password": {"password1234"}}); page.status != 422 {
		t.Errorf("a common password: %d", page.status)
	}
	if done := anyone.post(t, path, url.Values{"password": {newPassword}}); done.status != 303 || done.location != "/login?reset=1" {
		t.Fatalf("%d: %s", done.status, done.body)
	}
	t.Run("the sessions are ended and the old password is wrong", func(t *testing.T) {
		if page := member.get(t, h.orgPath("members")); page.status != 303 || !strings.HasPrefix(page.location, "/login") {
			t.Errorf("%d %s", page.status, page.location)
		}
		if page := h.browser().post(t, "/login", url.Values{"email": {member.user.Email}, "password": {password}}); page.status != 422 {
			t.Errorf("the old password: %d", page.status)
		}
		if page := h.browser().post(t, "/login", url.Values{"email": {member.user.Email}, "password": {newPassword}}); page.status != 303 {
			t.Errorf("the new password: %d", page.status)
		}
	})
	t.Run("the link works once", func(t *testing.T) {
		if page := anyone.get(t, path); page.status != 404 || !strings.Contains(page.body, "/forgot") {
			t.Errorf("%d: %s", page.status, page.body)
		}
		if page := anyone.post(t, path, url.Values{"password": {password}}); page.status != 404 {
			t.Errorf("%d: %s", page.status, page.body)
		}
	})
	t.Run("the change is mailed and in the audit log", func(t *testing.T) {
		if mails := h.mailed(t, member.user.Email); len(mails) < 2 || mails[1].Subject != "Your Purser password was changed" {
			t.Errorf("%+v", mails)
		}
		owner := h.join(t, tenancy.Owner)
		if page := owner.get(t, h.orgPath("audit")); !strings.Contains(page.body, "replaced by mail") {
			t.Error("the audit log has no entry")
		}
	})
}

// TestAResetRefusesTheNamesOfItsUsersOrganizations posts the form without a session, and in
// the session of a member of another organization.
func TestAResetRefusesTheNamesOfItsUsersOrganizations(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	member := h.withPassword(t, tenancy.Owner)
	noError(t, h.db.Org(h.org.ID).By(member.actor()).Rename(t.Context(), "Northwind Books"))
	other := h.browser()
	other.user = h.newUser(t)
	storetest.AddMember(t, h.url, tenancy.Member{
		OrgID: h.newOrganization(t, "Contoso Coffee").ID, UserID: other.user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: h.site.Now(),
	})
	other.signIn(t)
	anyone := h.browser()
	anyone.post(t, "/forgot", url.Values{"email": {member.user.Email}})
	path := link(t, h.mailed(t, member.user.Email)[0])
	for name, b := range map[string]*browser{"without a session": anyone, "in another user's session": other} {
		if got := b.post(t, path, url.Values{"password": {"northwind-books"}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Choose another") {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	if got := other.post(t, path, url.Values{"password": {"contoso-coffee-1"}}); got.location != "/login?reset=1" {
		t.Errorf("the name of an organization that the user isn't a member of: status %d", got.status)
	}
}

func TestAResetKeepsItsBrowserKnown(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	member := h.withPassword(t, tenancy.Support)
	home, stranger := h.browser(), h.browser()
	if got := home.login(t, member.user.Email, password); got.status != 303 {
		t.Fatalf("status %d", got.status)
	}
	home.formToken = tokenIn(home.get(t, "/account").body)
	home.post(t, "/logout", nil)
	for _, c := range []struct {
		name, password string
		browser        *browser
		notices        int
	}{{"the known one", newPassword, home, 0}, {"another", "six grey owls listen", stranger, 1}} {
		c.browser.post(t, "/forgot", url.Values{"email": {member.user.Email}})
		mails := h.mailed(t, member.user.Email)
		if done := c.browser.post(t, link(t, mails[len(mails)-1]), url.Values{"password": {c.password}}); done.location != "/login?reset=1" {
			t.Fatalf("%s: %d: %s", c.name, done.status, done.body)
		}
		before := len(h.mailed(t, member.user.Email))
		if got := c.browser.login(t, member.user.Email, c.password); got.status != 303 {
			t.Fatalf("%s: status %d", c.name, got.status)
		}
		if got := len(h.mailed(t, member.user.Email)) - before; got != c.notices {
			t.Errorf("%s: %d notices of a new sign-in", c.name, got)
		}
	}
}

func TestAResetLinkIsNoSecondFactor(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	member := h.withPassword(t, tenancy.Support)
	member.withFactor(t)
	anyone := h.browser()
	anyone.post(t, "/forgot", url.Values{"email": {member.user.Email}})
	mails := h.mailed(t, member.user.Email)
	if done := anyone.post(t, link(t, mails[len(mails)-1]), url.Values{"password": {newPassword}}); done.location != "/login?reset=1" {
		t.Fatalf("%d: %s", done.status, done.body)
	}
	if page := anyone.get(t, "/account"); !strings.HasPrefix(page.location, "/login") {
		t.Errorf("the link signed in: %d", page.status)
	}
	if got := anyone.login(t, member.user.Email, newPassword); !strings.HasPrefix(got.location, "/login/code") {
		t.Errorf("%d %s", got.status, got.location)
	}
}

func TestAResetLinkEnds(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	member := h.withPassword(t, tenancy.Support)
	anyone := h.browser()
	ask := func(t *testing.T) string {
		t.Helper()
		before := len(h.mailed(t, member.user.Email))
		if got := anyone.post(t, "/forgot", url.Values{"email": {member.user.Email}}); got.status != 303 {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		mails := h.mailed(t, member.user.Email)
		if len(mails) != before+1 {
			t.Fatalf("%d mails", len(mails)-before)
		}
		return link(t, mails[before])
	}
	first := ask(t)
	ask(t)
	ask(t)
	t.Run("an account has three at a time", func(t *testing.T) {
		anyone.post(t, "/forgot", url.Values{"email": {member.user.Email}})
		if mails := h.mailed(t, member.user.Email); len(mails) != people.MaxResetLinks {
			t.Errorf("%d mails", len(mails))
		}
	})
	t.Run("after an hour", func(t *testing.T) {
		token := strings.TrimPrefix(first, "/reset/")
		now := h.site.Now()
		if _, err := h.db.Auth().ResetUser(t.Context(), credential.Token(token).Hash(), now+(59*time.Minute).Milliseconds()); err != nil {
			t.Error(err)
		}
		if _, err := h.db.Auth().ResetUser(t.Context(), credential.Token(token).Hash(), now+time.Hour.Milliseconds()); err == nil {
			t.Error("still valid")
		}
	})
	t.Run("with another password", func(t *testing.T) {
		member.post(t, "/account/password", url.Values{"current": {password}, "password": {newPassword}})
		if page := anyone.get(t, first); page.status != 404 {
			t.Errorf("%d: %s", page.status, page.body)
		}
	})
}

func TestRequestsForResetLinksAreLimited(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	anyone := h.browser()
	for n := range 6 {
		got := anyone.post(t, "/forgot", url.Values{"email": {"nobody@example.com"}})
		if limited := got.status == 429; limited != (n == 5) {
			t.Errorf("request %d: %d", n+1, got.status)
		}
	}
}

func TestWithoutMailAnOperatorResets(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	anyone := h.browser()
	if page := anyone.get(t, "/forgot"); page.status != 200 || !strings.Contains(page.body, "users reset") || strings.Contains(page.body, "<form") {
		t.Errorf("%d: %s", page.status, page.body)
	}
	if page := anyone.post(t, "/forgot", url.Values{"email": {"ada@example.com"}}); page.status != 404 {
		t.Errorf("%d: %s", page.status, page.body)
	}
	owner := h.join(t, tenancy.Owner)
	if page := owner.get(t, h.orgPath("members", "invite")); strings.Contains(page.body, `name="email"`) {
		t.Error("the invitation form asks for an address")
	}
}

func TestSecurityNoticesAreMailed(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	owner := h.join(t, tenancy.Owner)
	admin := h.withPassword(t, tenancy.Admin)
	mine := func(t *testing.T) []mailtest.Message { t.Helper(); return h.mailed(t, admin.user.Email) }
	t.Run("of a sign-in from an unknown browser", func(t *testing.T) {
		other := h.browser()
		other.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
		if got := other.post(t, "/login", url.Values{"email": {admin.user.Email}, "password": {password}}); got.status != 303 {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		mails := mine(t)
		if len(mails) != 1 || mails[0].Subject != "New sign-in to your Purser account" || !strings.Contains(mails[0].Text, "Firefox on Linux") {
			t.Fatalf("%+v", mails)
		}
		other.formToken = tokenIn(other.get(t, "/account").body)
		other.post(t, "/logout", nil)
		if got := other.post(t, "/login", url.Values{"email": {admin.user.Email}, "password": {password}}); got.status != 303 || len(mine(t)) != 1 {
			t.Errorf("%d, %d mails: the browser is known now", got.status, len(mine(t)))
		}
	})
	t.Run("of a new API key, to its creator and the owners", func(t *testing.T) {
		form := admin.get(t, h.appPath("keys", "new"))
		id := regexp.MustCompile(`name="id" value="(key_[a-z0-9]+)"`).FindStringSubmatch(form.body)
		if id == nil {
			t.Fatalf("%d: %s", form.status, form.body)
		}
		got := admin.post(t, h.appPath("keys", "new"), url.Values{"id": {id[1]}, "name": {"Server"}, "preset": {"ingestion"}, "lifetime": {"none"}})
		if got.status != 200 {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		for _, to := range []string{admin.user.Email, owner.user.Email} {
			mails := h.mailed(t, to)
			if last := mails[len(mails)-1]; last.Subject != "New API key in Chat" || !strings.Contains(last.Text, "Server") || strings.Contains(last.Raw, "psr_") {
				t.Errorf("%s: %+v", to, last)
			}
		}
	})
	t.Run("of a changed second factor", func(t *testing.T) {
		before := len(mine(t))
		admin.withFactor(t)
		if got := admin.post(t, "/account/factor/codes", nil); !strings.Contains(got.body, "Your earlier codes no longer work.") {
			t.Errorf("status %d: the page does not say that the codes were replaced", got.status)
		}
		admin.post(t, "/account/factor/remove", nil)
		mails := mine(t)[before:]
		for i, want := range []string{"turned on", "replaced", "turned off"} {
			if len(mails) != 3 || !strings.Contains(mails[i].Text, want) {
				t.Fatalf("%+v", mails)
			}
		}
	})
	t.Run("of a changed password", func(t *testing.T) {
		before := len(mine(t))
		if got := admin.post(t, "/account/password", url.Values{"current": {password}, "password": {newPassword}}); got.location != "/account" {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		if mails := mine(t); len(mails) != before+1 || mails[before].Subject != "Your Purser password was changed" {
			t.Errorf("%+v", mails)
		}
	})
}

// TestNoticesThatAMemberCausesAreBounded repeats actions that send a mail to an
// unverified address or to the owners. Mails of other tenants wait behind them.
func TestNoticesThatAMemberCausesAreBounded(t *testing.T) {
	t.Parallel()
	clock := &clock{}
	clock.ms.Store(time.Now().UnixMilli())
	h := newMailHarnessOn(t, site.Options{Now: clock.now, Elapsed: clock.elapsed})
	owner, admin := h.join(t, tenancy.Owner), h.withPassword(t, tenancy.Admin)
	admin.withFactor(t)
	sent := 1
	for ; sent <= noticesAtOnce; sent++ {
		if got := admin.post(t, "/account/factor/codes", nil); got.status != http.StatusOK {
			break
		}
	}
	if sent != noticesAtOnce {
		t.Errorf("%d notices are sent at once", sent)
	}
	createKey := func() seen {
		return admin.post(t, h.appPath("keys", "new"), url.Values{"id": {ids.New().Format(ids.APIKey)}, "name": {"Server"}, "preset": {"ingestion"}, "lifetime": {"none"}})
	}
	clock.advance(6 * time.Second)
	if got := createKey(); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "6" {
		t.Errorf("a key whose notices are too many: status %d, retry after %s", got.status, got.header.Get("Retry-After"))
	}
	if list := h.mailed(t, owner.user.Email); len(list) > 0 {
		t.Errorf("a refused key is mailed about %d times", len(list))
	}
	clock.advance(6 * time.Second)
	if got := createKey(); got.status != http.StatusOK {
		t.Errorf("a key twelve seconds later: status %d", got.status)
	}
	if got := admin.post(t, "/account/password", url.Values{"current": {password}, "password": {newPassword}}); got.location != "/account" {
		t.Errorf("a password can't be changed meanwhile: status %d", got.status)
	}
}

// A person chooses their own mails: what is chosen shows, and what they may not read is
// not offered.
func TestPeopleChooseTheirMails(t *testing.T) {
	t.Parallel()
	h := newMailHarness(t)
	support := h.join(t, tenancy.Support)
	field := func(topic tenancy.MailTopic) string { return string(topic) + "-" + h.org.Slug }
	page := support.get(t, "/account")
	if !strings.Contains(page.body, "Email notifications") || !strings.Contains(page.body, field(tenancy.MailAlerts)) || strings.Contains(page.body, field(tenancy.MailKeys)) {
		t.Errorf("%d: %s", page.status, page.body)
	}
	chosen := regexp.MustCompile(`value="live" selected`)
	if chosen.MatchString(page.body) {
		t.Error("something is chosen before anything was")
	}
	if got := support.post(t, "/account/mail", url.Values{field(tenancy.MailAlerts): {"live"}, field(tenancy.MailKeys): {"all"}}); got.status != 303 {
		t.Fatalf("%d: %s", got.status, got.body)
	}
	if page := support.get(t, "/account"); len(chosen.FindAllString(page.body, -1)) != 1 {
		t.Errorf("%d: %s", page.status, page.body)
	}
	if page := support.get(t, h.appPath("settings", "alerts")); !strings.Contains(page.body, `<a href="/account#mail">`) {
		t.Errorf("%d: the alerts don't say where their mails are turned on", page.status)
	}
	if got := support.post(t, "/account/mail", url.Values{field(tenancy.MailAlerts): {"everything"}}); got.status == 303 {
		t.Error("an unknown choice is stored")
	}
	if got := support.post(t, "/account/mail", url.Values{"alerts-another": {"all"}}); got.status != 303 { // of no organization of theirs
		t.Errorf("%d: %s", got.status, got.body)
	}
}
