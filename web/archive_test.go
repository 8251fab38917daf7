package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"purser/api"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/tenancy"
	"purser/web/site"
)

func TestArchive(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner, support := r.join(t, tenancy.Owner), r.join(t, tenancy.Support)
	key, _ := makeKey(t, owner, keys.Setup)
	form := url.Values{}
	sent := func(b *browser, path string) seen {
		t.Helper()
		return b.post(t, path, form)
	}

	t.Run("asks for the name", func(t *testing.T) {
		if page := owner.get(t, r.appPath("settings", "archive")); page.status != http.StatusOK || !strings.Contains(page.body, "What happens") {
			t.Errorf("the preview: %d", page.status)
		}
		form.Set("confirm", "Another")
		if got := sent(owner, r.appPath("settings", "archive")); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "match") {
			t.Errorf("another name: %d", got.status)
		}
		form.Set("confirm", r.app.Name)
		if got := sent(owner, r.appPath("settings", "archive")); got.status != http.StatusSeeOther || got.location != r.orgPath() {
			t.Errorf("archiving: %d %s", got.status, got.location)
		}
	})

	t.Run("leaves pages readable and refuses every change", func(t *testing.T) {
		changes, reads := 0, 0
		for _, row := range r.site.routes() {
			if !strings.HasPrefix(row.Path, site.AppPrefix) || row.Archived {
				continue
			}
			got := owner.tryRow(t, row, r)
			archived := got.status == http.StatusConflict && strings.Contains(got.body, "is archived, so nothing in it can change")
			if row.Changes() != archived {
				t.Errorf("%s %s answers %d", row.Method, row.Path, got.status)
			}
			if row.Changes() {
				changes++
			} else {
				reads++
			}
		}
		if changes < 40 || reads < 30 {
			t.Errorf("%d changes and %d pages were tried", changes, reads)
		}
		page := owner.get(t, r.appPath("wallets"))
		if page.status != http.StatusOK || !strings.Contains(page.body, "Restore application") || strings.Contains(page.body, "/wallets/new") {
			t.Errorf("the list of wallets: %d", page.status)
		}
		if page := support.get(t, r.appPath("wallets")); strings.Contains(page.body, "Restore application") {
			t.Error("support is offered to restore it")
		}
	})

	t.Run("lets access be taken away", func(t *testing.T) {
		path := r.appPath("keys", key.ID.Format(ids.APIKey))
		if page := owner.get(t, path); !strings.Contains(page.body, "Revoke key…") || strings.Contains(page.body, "Rotate key") {
			t.Errorf("the key's page: %d", page.status)
		}
		if page := owner.get(t, r.appPath("settings")); !strings.Contains(page.body, "Revoke all keys…") {
			t.Error("the settings don't offer to revoke all keys")
		}
		if got := sent(support, path+"/revoke"); got.status != http.StatusForbidden {
			t.Errorf("support revokes it: %d", got.status)
		}
		if got := sent(owner, path+"/revoke"); got.status != http.StatusSeeOther {
			t.Errorf("revoking it: %d", got.status)
		}
		stored, err := r.db.App(r.app.Scope()).Key(t.Context(), key.ID)
		noError(t, err)
		if got := stored.Status(r.site.Now()); got != keys.Revoked {
			t.Errorf("the key is %s", got)
		}
	})

	t.Run("hides it behind a filter", func(t *testing.T) {
		link := `href="` + r.appPath() + `"`
		if page := owner.get(t, r.orgPath()); strings.Contains(page.body, link) || !strings.Contains(page.body, "Archived (1)") {
			t.Error("it is among the active ones")
		}
		if page := owner.get(t, r.orgPath()+"?show=archived"); !strings.Contains(page.body, link) {
			t.Error("it is not among the archived ones")
		}
	})

	t.Run("archives the organization after its applications", func(t *testing.T) {
		form.Set("confirm", r.org.Name)
		if got := sent(owner, r.orgPath("settings", "archive")); got.status != http.StatusSeeOther {
			t.Errorf("archiving: %d", got.status)
		}
		if got := owner.get(t, r.orgPath("a", "new")); got.status != http.StatusConflict {
			t.Errorf("a new application: %d", got.status)
		}
		if got := owner.get(t, r.orgPath("members")); got.status != http.StatusOK || !strings.Contains(got.body, "Restore organization") || strings.Contains(got.body, r.orgPath("members", "invite")) {
			t.Errorf("its members: %d, or they can be invited", got.status)
		}
		if got := owner.get(t, r.appPath("search")+"?q=invite"); got.status != http.StatusOK || strings.Contains(got.body, r.orgPath("members", "invite")) {
			t.Errorf("the search: %d, or it offers to invite members", got.status)
		}
		link := `href="` + r.orgPath() + `"`
		if page := owner.get(t, "/o"); strings.Contains(page.body, link) {
			t.Error("it is among the active ones")
		}
		if page := owner.get(t, "/o?show=archived"); !strings.Contains(page.body, link) {
			t.Error("it is not among the archived ones")
		}
		if got := sent(owner, r.orgPath("settings", "restore")); got.status != http.StatusSeeOther {
			t.Errorf("restoring: %d", got.status)
		}
	})

	t.Run("is undone", func(t *testing.T) {
		if got := sent(support, r.appPath("settings", "restore")); got.status != http.StatusForbidden {
			t.Errorf("support restores it: %d", got.status)
		}
		if got := sent(owner, r.appPath("settings", "restore")); got.status != http.StatusSeeOther || got.location != r.appPath() {
			t.Errorf("restoring: %d %s", got.status, got.location)
		}
		if got := owner.get(t, r.appPath("wallets", "new")); got.status != http.StatusOK {
			t.Errorf("a form: %d", got.status)
		}
	})
}

func TestKeysOfARestoredApplicationWorkAtOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	owner := r.join(t, tenancy.Owner)
	_, secret := makeKey(t, owner, keys.Setup)
	now := r.site.Now()
	server, err := api.New(api.Options{Store: r.db, Now: func() int64 { return now }}) // a refusal is kept for ever
	noError(t, err)
	r.site.OnRestore(server.ForgetKeys)
	ask := func() error {
		request := httptest.NewRequest(http.MethodGet, "/v1/wallets", nil)
		request.Header.Set("Authorization", "Bearer "+secret)
		_, err := server.Authorize(request, tenancy.WalletsRead)
		return err
	}
	noError(t, ask())
	if got := owner.post(t, r.appPath("settings", "archive"), url.Values{"confirm": {r.app.Name}}); got.status != http.StatusSeeOther {
		t.Fatalf("archiving: %d", got.status)
	}
	if err := ask(); !fault.Is(err, fault.RevokedAPIKey) {
		t.Fatalf("the key of an archived application gets %v", err)
	}
	if got := owner.post(t, r.appPath("settings", "restore"), nil); got.status != http.StatusSeeOther {
		t.Fatalf("restoring: %d", got.status)
	}
	noError(t, ask())
}
