package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
)

// invited is the path of the link that a reply shows.
func invitedPath(t *testing.T, got seen) string {
	t.Helper()
	_, rest, found := strings.Cut(got.body, "/invite/")
	token, _, _ := strings.Cut(rest, "<")
	if got.status != http.StatusOK || !found {
		t.Fatalf("no link is shown: %d\n%s", got.status, got.body)
	}
	return "/invite/" + token
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	r, clock := newClockHarness(t)
	owner := r.join(t, tenancy.Owner)
	invite := func(t *testing.T, by *browser, fields url.Values) seen {
		t.Helper()
		return by.post(t, r.orgPath("members", "invite"), fields)
	}
	account := func() url.Values {
		return url.Values{"name": {"Bob"}, "email": {ids.New().String() + "@example.com"}, "password": {password}}
	}

	t.Run("make a support member who sees wallets and not keys", func(t *testing.T) {
		made := invite(t, owner, url.Values{"note": {"Bob <b>"}, "role": {"support"}})
		link := invitedPath(t, made)
		if list := owner.get(t, r.orgPath("members")); strings.Contains(list.body, link) || !strings.Contains(list.body, "Bob &lt;b&gt;") {
			t.Error("the list shows the link, or does not show the invitation")
		}
		b := r.browser()
		if got := b.get(t, link); got.status != http.StatusOK || !strings.Contains(got.body, r.org.Name) {
			t.Fatalf("status %d", got.status)
		}
		if got := b.post(t, link, account()); got.location != r.orgPath() {
			t.Fatalf("status %d, %s\n%s", got.status, got.location, got.body)
		}
		page := b.get(t, r.orgPath())
		if page.status != http.StatusOK {
			t.Errorf("status %d", page.status)
		}
		if got := b.get(t, r.orgPath("members")); got.status != http.StatusForbidden {
			t.Errorf("support sees members: %d", got.status)
		}
		if got := r.browser().post(t, link, account()); got.status != http.StatusNotFound {
			t.Errorf("the link works twice: %d", got.status)
		}
	})

	t.Run("let in who has an account and is signed in", func(t *testing.T) {
		link := invitedPath(t, invite(t, owner, url.Values{"note": {"Bob"}, "role": {"developer"}}))
		b := r.browser()
		b.user = r.newUser(t)
		b.signIn(t)
		if got := b.post(t, link, nil); got.location != r.orgPath() {
			t.Errorf("status %d", got.status)
		}
		again := invitedPath(t, invite(t, owner, url.Values{"note": {"Bob"}, "role": {"owner"}}))
		if got := b.post(t, again, nil); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "already a member of this organization") {
			t.Errorf("who is a member is raised by a second link: %d", got.status)
		}
	})

	t.Run("take no address that has an account", func(t *testing.T) {
		link := invitedPath(t, invite(t, owner, url.Values{"note": {"Bob"}, "role": {"support"}}))
		fields := account()
		fields.Set("email", owner.user.Email)
		if got := r.browser().post(t, link, fields); got.status != http.StatusUnprocessableEntity || strings.Contains(got.body, password) {
			t.Errorf("status %d", got.status)
		}
		if got := r.browser().post(t, link, account()); got.status != http.StatusSeeOther {
			t.Errorf("the link was spent by the refusal: %d", got.status)
		}
	})

	t.Run("give nothing that the inviter lacks, also by a forged form", func(t *testing.T) {
		helper := r.join(t, tenancy.Custom, tenancy.MembersRead, tenancy.MembersWrite, tenancy.WalletsRead)
		for name, fields := range map[string]url.Values{
			"a role with more":                 {"note": {"x"}, "role": {"admin"}},
			"an owner":                         {"note": {"x"}, "role": {"owner"}},
			"a permission that they lack":      {"note": {"x"}, "role": {"custom"}, "permission": {"wallets:read", "keys:write"}},
			"a permission that does not exist": {"note": {"x"}, "role": {"custom"}, "permission": {"everything"}},
			"no permission":                    {"note": {"x"}, "role": {"custom"}},
			"no role":                          {"note": {"x"}},
		} {
			if got := invite(t, helper, fields); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: status %d", name, got.status)
			}
		}
		open, err := r.db.Org(r.org.ID).Invitations(t.Context(), clock.now())
		noError(t, err)
		for _, i := range open {
			if i.InvitedBy == helper.user.ID {
				t.Errorf("an invitation was made: %+v", i)
			}
		}
		if got := invite(t, helper, url.Values{"note": {"x"}, "role": {"custom"}, "permission": {"wallets:read"}}); got.status != http.StatusOK {
			t.Errorf("what they have they cannot give: %d", got.status)
		}
	})

	t.Run("are taken back only by who could have sent them, also by a forged form", func(t *testing.T) {
		admin := r.join(t, tenancy.Admin)
		link := invitedPath(t, invite(t, owner, url.Values{"note": {"Second owner"}, "role": {"owner"}}))
		open, err := r.db.Org(r.org.ID).Invitations(t.Context(), clock.now())
		noError(t, err)
		withdraw := r.orgPath("invitations", open[0].ID.Format(ids.Invitation), "withdraw")
		if list := admin.get(t, r.orgPath("members")); !strings.Contains(list.body, "Second owner") || strings.Contains(list.body, withdraw) {
			t.Error("the list hides the invitation from an admin, or offers to withdraw it")
		}
		if got := admin.post(t, withdraw, nil); got.status != http.StatusForbidden {
			t.Errorf("an admin withdraws an owner's invitation: status %d", got.status)
		}
		if got := r.browser().get(t, link); got.status != http.StatusOK {
			t.Errorf("the link answers %d", got.status)
		}
		if list := owner.get(t, r.orgPath("members")); !strings.Contains(list.body, withdraw) {
			t.Error("the owner is not offered to withdraw it")
		}
		if got := owner.post(t, withdraw, nil); got.status != http.StatusSeeOther {
			t.Errorf("the owner withdraws it: status %d", got.status)
		}
	})

	t.Run("end when they are withdrawn, too old, or their sender was changed", func(t *testing.T) {
		helper := r.join(t, tenancy.Admin)
		links := map[string]string{}
		for _, name := range []string{"withdrawn", "sender", "old"} {
			links[name] = invitedPath(t, invite(t, helper, url.Values{"note": {name}, "role": {"support"}}))
		}
		open, err := r.db.Org(r.org.ID).Invitations(t.Context(), clock.now())
		noError(t, err)
		for _, i := range open {
			if i.Note == "withdrawn" {
				owner.post(t, r.orgPath("invitations", i.ID.Format(ids.Invitation), "withdraw"), nil)
			}
		}
		says(t, r.browser().get(t, links["withdrawn"]), http.StatusNotFound, "This invitation doesn't work any more", "ask for a new invitation", "Sign in")
		says(t, r.browser().post(t, links["withdrawn"], account()), http.StatusNotFound, "This invitation doesn't work any more")
		says(t, owner.get(t, links["withdrawn"]), http.StatusNotFound, "This invitation doesn't work any more", "Go to your organizations")
		if got := r.browser().get(t, links["sender"]); got.status != http.StatusOK {
			t.Errorf("the other answers %d", got.status)
		}
		if got := owner.post(t, r.orgPath("members", helper.user.ID.Format(ids.User)), url.Values{"role": {"support"}, "version": {"admin"}}); got.status != http.StatusSeeOther {
			t.Fatalf("status %d\n%s", got.status, got.body)
		}
		if got := r.browser().get(t, links["sender"]); got.status != http.StatusNotFound {
			t.Errorf("the sender was demoted, and the link answers %d", got.status)
		}
		late := invitedPath(t, invite(t, owner, url.Values{"note": {"late"}, "role": {"support"}}))
		clock.advance(invitationLasts)
		if got := r.browser().get(t, late); got.status != http.StatusNotFound {
			t.Errorf("an old one answers %d", got.status)
		}
	})
}

func TestMembers(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner, developer := r.join(t, tenancy.Owner), r.join(t, tenancy.Developer)
	path := func(b *browser) string { return r.orgPath("members", b.user.ID.Format(ids.User)) }
	role := func(t *testing.T, b *browser) tenancy.Role {
		t.Helper()
		loaded, err := r.db.User(b.user.ID).PageContext(t.Context(), r.org.Slug)
		noError(t, err)
		return loaded.Member.Role
	}

	t.Run("are signed out when their role changes", func(t *testing.T) {
		if got := owner.post(t, path(developer), url.Values{"role": {"support"}, "version": {"developer"}}); got.status != http.StatusSeeOther {
			t.Fatalf("status %d\n%s", got.status, got.body)
		}
		if got := developer.get(t, r.orgPath()); got.status != http.StatusSeeOther || !strings.HasPrefix(got.location, "/login") {
			t.Errorf("status %d", got.status)
		}
	})

	t.Run("keep what another admin changed while the form was open", func(t *testing.T) {
		admin, helper := r.join(t, tenancy.Admin), r.join(t, tenancy.Custom, tenancy.WalletsRead, tenancy.JournalRead)
		access := func() tenancy.Access {
			loaded, err := r.db.User(helper.user.ID).PageContext(t.Context(), r.org.Slug)
			noError(t, err)
			return loaded.Member.Access
		}
		stale := url.Values{"version": {hidden(owner.get(t, path(helper)).body, "version")}, "role": {"custom"}, "permission": {"wallets:read", "journal:read", "plans:read"}}
		fields := url.Values{"version": {hidden(admin.get(t, path(helper)).body, "version")}, "role": {"custom"}, "permission": {"wallets:read"}}
		if got := admin.post(t, path(helper), fields); got.status != http.StatusSeeOther {
			t.Fatalf("the first form: status %d\n%s", got.status, got.body)
		}
		kept := tenancy.Access{Role: tenancy.Custom, Custom: tenancy.PermissionsOf(tenancy.WalletsRead)}
		got := owner.post(t, path(helper), stale)
		if got.status != http.StatusConflict || access() != kept {
			t.Errorf("the stale form: status %d, the access is %v", got.status, access())
		}
		wantTexts(t, got.body, "This changed while you were editing", "<bdi>"+tenancy.PermissionsOf(tenancy.WalletsRead, tenancy.JournalRead, tenancy.PlansRead).String()+"</bdi>", "<bdi>wallets:read</bdi>")
		if !strings.Contains(got.body, `value="wallets:read" checked`) || strings.Contains(got.body, `value="journal:read" checked`) {
			t.Error("the form does not show the saved access")
		}
		stale.Del("permission")
		invalid := owner.post(t, path(helper), stale)
		if invalid.status != http.StatusUnprocessableEntity || hidden(invalid.body, "version") != stale.Get("version") {
			t.Errorf("an invalid form gets version %q, status %d", hidden(invalid.body, "version"), invalid.status)
		}
		stale.Del("version")
		stale.Set("role", "support")
		if got := owner.post(t, path(helper), stale); got.status != http.StatusConflict || access() != kept {
			t.Errorf("without the version: status %d", got.status)
		}
		fields.Set("version", hidden(got.body, "version"))
		fields["permission"] = []string{"wallets:read", "plans:read"}
		if got := owner.post(t, path(helper), fields); got.status != http.StatusSeeOther {
			t.Errorf("the form of the conflict: status %d\n%s", got.status, got.body)
		}
	})

	t.Run("do not climb, also by a forged form", func(t *testing.T) {
		admin, helper := r.join(t, tenancy.Admin), r.join(t, tenancy.Custom, tenancy.MembersWrite)
		for name, got := range map[string]seen{
			"an admin makes themselves an owner": admin.post(t, path(admin), url.Values{"role": {"owner"}}),
			"an admin demotes an owner":          admin.post(t, path(owner), url.Values{"role": {"support"}}),
			"a helper makes themselves an admin": helper.post(t, path(helper), url.Values{"role": {"admin"}}),
			"a helper demotes an admin":          helper.post(t, path(admin), url.Values{"role": {"custom"}, "permission": {"members:write"}}),
		} {
			if got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: status %d", name, got.status)
			}
		}
		if got := admin.post(t, path(owner)+"/remove", nil); got.status != http.StatusForbidden {
			t.Errorf("an admin removes an owner: status %d", got.status)
		}
		if got := admin.get(t, path(owner)); got.status != http.StatusForbidden || strings.Contains(got.body, "<form class=\"form\"") {
			t.Errorf("an admin gets the form for an owner: status %d", got.status)
		}
		if role(t, owner) != tenancy.Owner || role(t, admin) != tenancy.Admin || role(t, helper) != tenancy.Custom {
			t.Error("another member's role has changed")
		}
	})

	t.Run("leave, except the last owner", func(t *testing.T) {
		if got := owner.post(t, r.orgPath("leave"), nil); got.status != http.StatusConflict || !strings.Contains(got.body, "only owner") {
			t.Errorf("the last owner leaves: %d", got.status)
		}
		if got := owner.post(t, path(owner), url.Values{"role": {"admin"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("the last owner steps down: %d", got.status)
		}
		guest := r.join(t, tenancy.Support)
		if got := guest.post(t, r.orgPath("leave"), nil); got.location != "/o" {
			t.Errorf("status %d", got.status)
		}
		if got := guest.get(t, r.orgPath()); got.status != http.StatusNotFound {
			t.Errorf("who has left still sees the organization: %d", got.status)
		}
	})

	t.Run("of another organization are not there", func(t *testing.T) {
		other := newHarness(t)
		otherTenant := other.join(t, tenancy.Owner)
		for _, got := range []seen{
			owner.get(t, path(otherTenant)), owner.post(t, path(otherTenant), url.Values{"role": {"support"}}), owner.post(t, path(otherTenant)+"/remove", nil),
			owner.get(t, r.orgPath("members", "usr_nonsense")),
		} {
			if got.status != http.StatusNotFound {
				t.Errorf("status %d", got.status)
			}
		}
	})

	t.Run("own at most 100 organizations", func(t *testing.T) {
		busy := r.join(t, tenancy.Owner)
		storetest.Exec(t, r.url, `
			WITH made AS (
				INSERT INTO organizations (id, slug, name, created_at) SELECT gen_random_uuid(), gen_random_uuid()::text, 'Many', 0 FROM generate_series(2, 100) RETURNING id
			)
			INSERT INTO members (org_id, user_id, role, permissions, created_at) SELECT id, $1, 'owner', '{}', 0 FROM made`, busy.user.ID)
		if got := busy.post(t, "/o/new", url.Values{"name": {"New"}}); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "You own 100 organizations, and an account can own 100.") {
			t.Errorf("status %d", got.status)
		}
	})

	t.Run("make one of each with a form that is sent twice", func(t *testing.T) {
		sent := func(by *browser, path string, form url.Values) (first, second seen) {
			t.Helper()
			form.Set("id", hidden(by.get(t, path).body, "id"))
			return by.post(t, path, form), by.post(t, path, form)
		}
		first, second := sent(owner, "/o/new", url.Values{"name": {"Twice"}})
		if first.status != http.StatusSeeOther || first.location != second.location {
			t.Errorf("the organizations %s and %s", first.location, second.location)
		}
		app := url.Values{"name": {"Twice"}, "mode": {"live"}}
		other := first.location + "/a/new"
		first, second = sent(owner, r.orgPath("a", "new"), app)
		if first.location != r.orgPath("a", "twice", "quickstart") || first.location != second.location {
			t.Errorf("the applications %s and %s", first.location, second.location)
		}
		app.Set("name", "Thrice")
		if got := owner.post(t, r.orgPath("a", "new"), app); got.location != r.orgPath("a", "thrice", "quickstart") {
			t.Errorf("the form with another name: status %d, to %s", got.status, got.location)
		}
		app.Set("name", "Twice")
		if got := owner.post(t, other, app); !strings.HasPrefix(got.location, strings.TrimSuffix(other, "new")+"twice") {
			t.Errorf("the form of another organization: status %d, to %s", got.status, got.location)
		}
		first, second = sent(owner, r.orgPath("members", "invite"), url.Values{"note": {"Tina"}, "role": {"support"}})
		invitedPath(t, first)
		says(t, second, http.StatusConflict, "This invitation already exists")
		if open, err := r.db.Org(r.org.ID).Invitations(t.Context(), r.site.Now()); err != nil || len(open) != 1 {
			t.Errorf("the invitations %+v, %v", open, err)
		}
	})

	t.Run("make organizations and applications of their own", func(t *testing.T) {
		if got := owner.post(t, "/o/new", url.Values{"name": {"New"}}); got.status != http.StatusSeeOther || !strings.HasPrefix(got.location, "/o/new-organization") {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		if got := owner.post(t, r.orgPath("a", "new"), url.Values{"name": {"Shop"}, "mode": {"live"}}); got.location != r.orgPath("a", "shop", "quickstart") {
			t.Errorf("status %d, %s", got.status, got.location)
		}
		if got := owner.post(t, r.orgPath("a", "new"), url.Values{"name": {"Shop"}}); got.status != http.StatusUnprocessableEntity {
			t.Errorf("an application for nothing: %d", got.status)
		}
		if got := owner.get(t, r.orgPath()); !strings.Contains(got.body, "Shop") || got.status != http.StatusOK {
			t.Errorf("status %d", got.status)
		}
	})
}

func TestAuditLog(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner := r.join(t, tenancy.Owner)
	for _, name := range []string{"One", "=cmd()", "<b>Three</b>"} {
		if got := owner.post(t, r.orgPath("settings"), url.Values{"name": {name}, "version": {hidden(owner.get(t, r.orgPath("settings")).body, "version")}}); got.status != http.StatusSeeOther {
			t.Fatalf("status %d", got.status)
		}
	}
	owner.post(t, r.orgPath("a", "new"), url.Values{"name": {"Shop"}, "mode": {"development"}})

	t.Run("says who did what, with what was before and after", func(t *testing.T) {
		got := owner.get(t, r.orgPath("audit"))
		for _, want := range []string{owner.user.Email, "organization.rename", "&lt;b&gt;Three&lt;/b&gt;", "application.create", "127.0.0.1"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%q is missing", want)
			}
		}
	})
	t.Run("is filtered", func(t *testing.T) {
		if got := owner.get(t, r.orgPath("audit")+"?action=application"); strings.Contains(got.body, "organization.rename") || !strings.Contains(got.body, "application.create") {
			t.Error("the filter by noun does not hold")
		}
		if got := owner.get(t, r.orgPath("audit")+"?actor=nobody"); !strings.Contains(got.body, "No entries match") {
			t.Error("the filter by actor does not hold")
		}
		if got := owner.get(t, r.orgPath("audit")+"?action=nothing"); !strings.Contains(got.body, "No entries match") {
			t.Error("an unknown noun shows everything")
		}
		if got := owner.get(t, r.orgPath("audit")+"?before=x&action=%00"); got.status != http.StatusOK {
			t.Errorf("nonsense answers %d", got.status)
		}
	})
	t.Run("is exported without formulas", func(t *testing.T) {
		got := owner.get(t, r.orgPath("audit.csv"))
		if got.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(got.body, "organization.rename") || strings.Contains(got.body, ",=") {
			t.Errorf("%s\n%s", got.header.Get("Content-Type"), got.body)
		}
	})
	t.Run("is whole", func(t *testing.T) {
		verification, err := r.db.Org(r.org.ID).VerifyAudit(t.Context())
		if err != nil || len(verification.Differences) > 0 || verification.Head.Number != 4 {
			t.Errorf("%+v, %v", verification, err)
		}
	})
	t.Run("goes over several pages", func(t *testing.T) {
		for range auditPage {
			noError(t, r.db.Org(r.org.ID).By(owner.actor()).Rename(t.Context(), "Again "+time.Now().Format(time.StampNano)))
		}
		newest := owner.get(t, r.orgPath("audit"))
		_, rest, found := strings.Cut(newest.body, `href="`+r.orgPath("audit")+`?before=`)
		number, _, _ := strings.Cut(rest, `"`)
		if !found {
			t.Fatal("no older page is offered")
		}
		if older := owner.get(t, r.orgPath("audit")+"?before="+number); !strings.Contains(older.body, "=cmd()") || !strings.Contains(older.body, "Newer") {
			t.Error("the older page does not go on")
		}
	})
}
