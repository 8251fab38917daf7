package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"purser/api"
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
