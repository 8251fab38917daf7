package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

// reset gives the browser's user a temporary password.
func (b *browser) reset(t *testing.T) {
	t.Helper()
	encoded, err := hashedOnce()
	noError(t, err)
	noError(t, b.harness.db.Auth().ResetPassword(t.Context(), people.Reset{Email: b.user.Email, Encoded: encoded, By: people.CommandLine(b.harness.site.Now())}))
}

func TestTemporaryPasswordOnlyOpensItsChange(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	member := r.join(t, tenancy.Owner)
	member.reset(t)
	b := r.browser()
	if got := b.login(t, member.user.Email, password); got.status != http.StatusSeeOther {
		t.Fatalf("status %d", got.status)
	}
	b.formToken = tokenIn(b.get(t, "/account/password").body)

	t.Run("every other page leads there", func(t *testing.T) {
		for _, path := range []string{"/o", "/account", r.orgPath(), r.orgPath("members"), r.appPath("keys"), "/account/factor"} {
			if got := b.get(t, path); !strings.HasPrefix(got.location, "/account/password") {
				t.Errorf("%s: status %d, %s", path, got.status, got.location)
			}
		}
		if got := b.post(t, "/account/name", url.Values{"name": {"Eve"}}); !strings.HasPrefix(got.location, "/account/password") {
			t.Errorf("a form: status %d, %s", got.status, got.location)
		}
		if got := b.get(t, "/docs"); got.status != http.StatusOK {
			t.Errorf("what anyone may read: status %d", got.status)
		}
	})
	t.Run("an invitation is not accepted with it", func(t *testing.T) {
		owner := r.join(t, tenancy.Owner)
		link := invitedPath(t, owner.post(t, r.orgPath("members", "invite"), url.Values{"note": {"Bob"}, "role": {"support"}}))
		if got := b.post(t, link, nil); !strings.HasPrefix(got.location, "/account/password") {
			t.Errorf("status %d, %s", got.status, got.location)
		}
	})
	t.Run("it cannot be chosen again", func(t *testing.T) {
		got := b.post(t, "/account/password", url.Values{"current": {password}, "password": {password}})
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Choose a different one") {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("a chosen one opens everything", func(t *testing.T) {
		if got := b.post(t, "/account/password", url.Values{"current": {password}, "password": {"seven slow rivers bend"}}); got.location != "/o" {
			t.Fatalf("status %d, %s\n%s", got.status, got.location, got.body)
		}
		if got := b.get(t, r.orgPath()); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("it ends after a day", func(t *testing.T) {
		late := r.join(t, tenancy.Support)
		late.reset(t)
		clock.advance(people.ResetLasts)
		if got := r.browser().login(t, late.user.Email, password); got.status != http.StatusUnprocessableEntity {
			t.Errorf("status %d", got.status)
		}
	})
}

func TestOrganizationRequiresASecondFactor(t *testing.T) {
	t.Parallel()
	r, _ := newClockHarness(t)
	owner, member := r.join(t, tenancy.Owner), r.join(t, tenancy.Admin)
	setting := r.orgPath("settings", "second-factor")
	require := url.Values{"required": {"yes"}}

	t.Run("is turned on only with an authenticator of one's own", func(t *testing.T) {
		if got := owner.post(t, setting, require); !strings.HasPrefix(got.location, "/account/factor") {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		owner.withFactor(t)
		if got := owner.post(t, setting, require); got.location != r.orgPath("settings") {
			t.Fatalf("status %d, %s", got.status, got.location)
		}
		entries, _, err := r.db.Org(r.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 1})
		noError(t, err)
		if entries[0].Action != "organization.second-factor" || entries[0].UserID != owner.user.ID {
			t.Errorf("the log says %+v", entries[0])
		}
	})
	t.Run("leads members without one to set it up", func(t *testing.T) {
		for _, path := range []string{r.orgPath(), r.orgPath("members"), r.appPath("keys"), r.appPath("wallets"), r.orgPath("audit.csv")} {
			if got := member.get(t, path); !strings.HasPrefix(got.location, "/account/factor?next=") {
				t.Errorf("%s: status %d, %s", path, got.status, got.location)
			}
		}
		if got := member.post(t, r.orgPath("settings"), url.Values{"name": {"Taken"}}); !strings.HasPrefix(got.location, "/account/factor") {
			t.Errorf("a form: status %d, %s", got.status, got.location)
		}
		if org, err := r.db.Org(r.org.ID).Organization(t.Context()); err != nil || org.Name != r.org.Name {
			t.Errorf("the form was carried out: %+v, %v", org, err)
		}
		page := member.get(t, "/account/factor")
		if !strings.Contains(page.body, "required") || !strings.Contains(page.body, r.org.Name) || !strings.Contains(page.body, `<svg class="qr"`) {
			t.Error("the page does not say why, or has no QR code")
		}
	})
	t.Run("lets members in who have one", func(t *testing.T) {
		member.withFactor(t)
		if got := member.get(t, r.orgPath()); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
		if got := member.get(t, "/account"); !strings.Contains(got.body, "You can&#39;t open "+r.org.Name+" until you set it up again.") {
			t.Error("turning it off does not say what it closes")
		}
	})
	t.Run("leaves other organizations alone", func(t *testing.T) {
		guest := r.join(t, tenancy.Support)
		home := r.newOrganization(t, "Home")
		storetest.AddMember(t, r.url, tenancy.Member{OrgID: home.ID, UserID: guest.user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: r.site.Now()})
		if got := guest.get(t, "/o/"+home.Slug); got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
	})
	t.Run("holds in every organization when the operator says so", func(t *testing.T) {
		strict := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), RequireFactor: true}})
		b := strict.join(t, tenancy.Owner)
		if got := b.get(t, strict.orgPath()); !strings.HasPrefix(got.location, "/account/factor") {
			t.Errorf("status %d, %s", got.status, got.location)
		}
	})
	t.Run("is suggested to owners of live applications", func(t *testing.T) {
		plain := newHarness(t)
		owner, support := plain.join(t, tenancy.Owner), plain.join(t, tenancy.Support)
		const suggestion = "Protect your live applications"
		if got := owner.get(t, plain.orgPath()); strings.Contains(got.body, suggestion) {
			t.Error("suggested without a live application")
		}
		plain.newApplication(t, plain.org, "Shop", true)
		if got := owner.get(t, plain.orgPath()); !strings.Contains(got.body, suggestion) {
			t.Error("not suggested")
		}
		if got := support.get(t, plain.orgPath()); strings.Contains(got.body, suggestion) {
			t.Error("suggested to who owns nothing")
		}
	})
}

func TestNewOrganizationsAreTheOperatorsUnlessTurnedOn(t *testing.T) {
	t.Parallel()
	r := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t)}})
	owner := r.join(t, tenancy.Owner)
	if got := owner.get(t, "/o/new"); got.status != http.StatusForbidden {
		t.Errorf("the form: status %d", got.status)
	}
	name := "Mine " + ids.New().String()
	if got := owner.post(t, "/o/new", url.Values{"name": {name}}); got.status != http.StatusForbidden {
		t.Errorf("the act: status %d", got.status)
	}
	if got := owner.get(t, "/o"); strings.Contains(got.body, `href="/o/new"`) || strings.Contains(got.body, name) {
		t.Error("the list offers it, or has it")
	}
}

func TestAccountChangesAreAudited(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	b := r.join(t, tenancy.Support)
	b.withPassword(t)
	b.signIn(t)
	b.withFactor(t)
	clock.advance(time.Minute)
	b.formToken = tokenIn(b.get(t, "/account").body)
	b.post(t, "/account/factor/codes", nil)
	b.post(t, "/account/password", url.Values{"current": {password}, "password": {"seven slow rivers bend"}})
	b.formToken = tokenIn(b.get(t, "/account").body)
	b.post(t, "/account/factor/remove", nil)
	entries, _, err := r.db.Org(r.org.ID).AuditLog(t.Context(), people.AuditPage{Action: "account.", Limit: 10})
	noError(t, err)
	var actions []string
	for _, e := range entries {
		if e.UserID == b.user.ID && e.Target == b.user.ID.Format(ids.User) {
			actions = append(actions, e.Action)
		}
	}
	// The first change of the password is how the test gave one.
	if got := strings.Join(actions, " "); got != "account.factor-off account.password account.recovery-codes account.factor-on account.password" {
		t.Errorf("the log says %s", got)
	}
}

func TestARenamedAccountIsAuditedInEachOrganization(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, second := r.join(t, tenancy.Support), r.newOrganization(t, "Bolt")
	storetest.AddMember(t, r.url, tenancy.Member{OrgID: second.ID, UserID: b.user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: r.site.Now()})
	for _, name := range []string{"Eve Example", "Eve Example", "Ann"} { // the second changes nothing
		if got := b.post(t, "/account/name", url.Values{"name": {name}}); got.status != http.StatusSeeOther {
			t.Fatalf("status %d", got.status)
		}
	}
	for _, org := range []ids.ID{r.org.ID, second.ID} {
		entries, _, err := r.db.Org(org).AuditLog(t.Context(), people.AuditPage{Action: "account.rename", Limit: 10})
		noError(t, err)
		if len(entries) != 2 {
			t.Fatalf("%d entries", len(entries))
		}
		for i, want := range [][2]string{{"Eve Example", "Ann"}, {b.user.Name, "Eve Example"}} { // the newest first
			e := entries[i]
			before, after := e.Fields()
			if e.UserID != b.user.ID || e.Target != b.user.ID.Format(ids.User) || e.RequestID.IsZero() || before["name"] != want[0] || after["name"] != want[1] {
				t.Errorf("entry %d is %+v", i, e)
			}
		}
	}
}

func TestPasswordsAreNotMadeOfNamesAround(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	org := r.newOrganization(t, "Northwind Books")
	b := r.browser()
	b.user = r.newUser(t)
	storetest.AddMember(t, r.url, tenancy.Member{OrgID: org.ID, UserID: b.user.ID, Access: tenancy.Access{Role: tenancy.Owner}, CreatedAt: r.site.Now()})
	b.withPassword(t)
	b.signIn(t)
	for _, bad := range []string{"NorthwindBooks1", "Purser-Billing-1", "annexample2026"} {
		got := b.post(t, "/account/password", url.Values{"current": {password}, "password": {bad}})
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Choose another") {
			t.Errorf("%s: status %d", bad, got.status)
		}
	}
}

// TestRefusedAccessIsLogged expects warnings: the server collapses repeated ones, so that a
// member cannot fill the log.
func TestRefusedAccessIsLogged(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	var log bytes.Buffer
	r.site.Log = slog.New(slog.NewJSONHandler(&log, nil))
	support, otherTenant := r.join(t, tenancy.Support), newHarness(t).org
	support.get(t, r.orgPath("members"))
	support.get(t, "/o/"+otherTenant.Slug+"/members")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("the log is %s", log.String())
	}
	for i, want := range []string{tenancy.MembersRead.String(), site.AnyMember.String()} {
		for _, part := range []string{`"WARN"`, "access refused", support.user.ID.Format(ids.User), "GET /o/{org}/members", want} {
			if !strings.Contains(lines[i], part) {
				t.Errorf("%q is missing in %s", part, lines[i])
			}
		}
	}
}
