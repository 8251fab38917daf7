package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"purser/api"
	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestWalletExport(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, hostileIdentity, 10)
	d.track(t, d.use(hostileIdentity, "messages", 2))
	page := d.walletPath(t, hostileIdentity)
	admin := d.join(t, tenancy.Admin)
	t.Run("is not offered without the API", func(t *testing.T) {
		if strings.Contains(admin.get(t, page).body, "Export everything") || admin.get(t, page+"/export.json").status != http.StatusNotFound {
			t.Error("it is")
		}
	})
	server, err := api.New(api.Options{Store: d.db, Usage: d.usage})
	noError(t, err)
	d.site.SetExportWallet(server.ExportWallet)
	t.Run("downloads everything about the customer", func(t *testing.T) {
		holdsText(t, admin.get(t, page), "Export everything as JSON", page+"/export.json")
		got := admin.get(t, page+"/export.json")
		var export struct {
			Identity string
			Entries  []struct{ Kind string }
			Complete bool
		}
		if err := json.Unmarshal([]byte(got.body), &export); err != nil || got.status != http.StatusOK || !export.Complete ||
			export.Identity != hostileIdentity || len(export.Entries) != 2 {
			t.Errorf("status %d, %v: %s", got.status, err, got.body)
		}
	})
	t.Run("support may not have it", func(t *testing.T) {
		support := d.join(t, tenancy.Support)
		if got := support.get(t, page+"/export.json"); got.status != http.StatusForbidden {
			t.Errorf("status %d", got.status)
		}
		if strings.Contains(support.get(t, page).body, "Export everything") {
			t.Error("it is offered")
		}
	})
	t.Run("is not of another application's wallet", func(t *testing.T) {
		other := newSupportHarness(t)
		other.site.SetExportWallet(server.ExportWallet)
		if got := other.join(t, tenancy.Admin).get(t, other.appPath("wallets", page[strings.LastIndex(page, "/")+1:], "export.json")); got.status != http.StatusNotFound {
			t.Errorf("status %d", got.status)
		}
	})
}

// An export takes up to ten minutes: access that ends meanwhile ends it.
func TestWalletExportsEndWithTheMembersAccess(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	path := d.walletPath(t, "ann", "export.json")
	owner := d.join(t, tenancy.Owner)
	server, err := api.New(api.Options{Store: d.db, Usage: d.usage})
	noError(t, err)
	var change func(by *browser) // once the export has begun
	var by *browser
	d.site.SetExportWallet(func(ctx context.Context, scope tenancy.Scope, identity string, begin func() io.Writer, admit func() error) error {
		return server.ExportWallet(ctx, scope, identity, func() io.Writer {
			change(by)
			return begin()
		}, admit)
	})
	custom := func(permissions string) func(*browser) {
		return func(b *browser) {
			storetest.Exec(t, d.url, `UPDATE members SET role = 'custom', permissions = $3::text[] WHERE org_id = $1 AND user_id = $2`, d.org.ID, b.user.ID, permissions)
		}
	}
	for name, c := range map[string]struct {
		change    func(*browser)
		completes bool
	}{
		"nothing changes": {func(*browser) {}, true},
		"the member is removed": {func(b *browser) {
			if got := owner.post(t, d.orgPath("members", b.user.ID.Format(ids.User), "remove"), nil); got.status != http.StatusSeeOther {
				t.Errorf("removing answers %d", got.status)
			}
		}, false},
		"the membership alone ends": {func(b *browser) {
			storetest.Exec(t, d.url, `DELETE FROM members WHERE org_id = $1 AND user_id = $2`, d.org.ID, b.user.ID)
		}, false},
		"the member signs out": {func(b *browser) {
			storetest.Exec(t, d.url, `DELETE FROM sessions WHERE user_id = $1`, b.user.ID)
		}, false},
		"the member keeps both permissions": {custom("{wallets:write,journal:read,wallets:read}"), true},
		"the member may not read journals":  {custom("{wallets:write,wallets:read}"), false},
		"the member may not change wallets": {custom("{journal:read,wallets:read}"), false},
		"the organization requires two-factor": {func(*browser) {
			storetest.Exec(t, d.url, `UPDATE organizations SET requires_factor = true WHERE id = $1`, d.org.ID)
		}, false},
	} {
		change, by = c.change, d.join(t, tenancy.Admin)
		got := by.get(t, path)
		storetest.Exec(t, d.url, `UPDATE organizations SET requires_factor = false WHERE id = $1`, d.org.ID)
		if completed := strings.Contains(got.body, `"complete":true`); got.status != http.StatusOK || completed != c.completes || strings.Contains(got.body, `"seq":1`) != c.completes {
			t.Errorf("%s: status %d, the export is complete: %t", name, got.status, completed)
		}
	}
}
