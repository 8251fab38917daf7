package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/store/reports"
	"purser/tenancy"
)

func TestRequestPages(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support, owner := d.join(t, tenancy.Support), d.join(t, tenancy.Owner)
	d.deposit(t, hostileIdentity, 10)
	record := func(r reports.Request) ids.ID {
		r.ID, r.At, r.KeyID, r.TookMicros = ids.New(), d.site.Now(), d.key.ID, 1_500
		d.db.Stats().RecordRequest(d.app.Scope(), r)
		return r.ID
	}
	failed := record(reports.Request{
		Method: "POST", Route: "/v1/deposits", Status: 400, Code: fault.InvalidRequest, Message: "amountNanocredits must be a string.",
		Identity: hostileIdentity, Authenticated: true,
	})
	record(reports.Request{Method: "GET", Route: "/v1/wallets/:identity", Status: 200, Identity: "ann"})

	t.Run("are open to support, without the keys", func(t *testing.T) {
		page := support.get(t, d.appPath("requests"))
		says(t, page, http.StatusOK, "POST /v1/deposits", "400 invalid_request", "GET /v1/wallets/:identity", "ann", "took 1.5 ms")
		if strings.Contains(page.body, `name="key"`) || strings.Contains(page.body, "/keys/") {
			t.Error("support is led to keys")
		}
		if !strings.Contains(owner.get(t, d.appPath("requests")).body, `name="key"`) {
			t.Error("an owner cannot filter by key")
		}
	})

	t.Run("are filtered in both lists", func(t *testing.T) {
		for _, tab := range []string{"", "show=failed&"} {
			for query, found := range map[string]bool{
				"identity=" + url.QueryEscape(hostileIdentity): true, "identity=nobody": false, "status=4": true, "status=5": false,
				"code=invalid_request": true, "code=rate_limited": false, "route=" + url.QueryEscape("POST /v1/deposits"): true, "route=x": false,
				"key=" + d.key.ID.Format(ids.APIKey): true, "key=" + ids.New().Format(ids.APIKey): false,
			} {
				page := owner.get(t, d.appPath("requests")+"?"+tab+query)
				if got := strings.Contains(page.body, failed.Format(ids.Request)); page.status != http.StatusOK || got != found {
					t.Errorf("%s%s: status %d, found %t", tab, query, page.status, got)
				}
			}
		}
	})

	t.Run("are found by their id", func(t *testing.T) {
		if got := support.get(t, d.appPath("requests")+"?request="+failed.Format(ids.Request)); got.location != d.appPath("requests", failed.Format(ids.Request)) {
			t.Errorf("it leads to %q", got.location)
		}
		says(t, support.get(t, d.appPath("requests")+"?request=nonsense"), http.StatusUnprocessableEntity, "Enter a request ID")
		if got := support.get(t, d.appPath("requests", ids.New().Format(ids.Request))); got.status != http.StatusNotFound {
			t.Errorf("an unknown one answers %d", got.status)
		}
	})

	t.Run("show the error as it was sent, the customer, the key and the time", func(t *testing.T) {
		says(t, support.get(t, d.appPath("requests", failed.Format(ids.Request))), http.StatusOK,
			"amountNanocredits must be a string.", "Error code: invalid_request", "Took 1.5 ms", "API key Server", failed.Format(ids.Request))
	})

	t.Run("show what they did, even when only that is kept", func(t *testing.T) {
		charged := d.use(hostileIdentity, "messages", 1)
		charged.RequestID = charged.TransactionID
		d.track(t, charged)
		says(t, support.get(t, d.appPath("requests", charged.TransactionID.Format(ids.Request))), http.StatusOK, "Only the result is kept", "View charge", "messages")
		refused := d.use("ben", "messages", 70)
		refused.RequestID = ids.New()
		d.track(t, refused)
		page := support.get(t, d.appPath("requests", refused.RequestID.Format(ids.Request)))
		says(t, page, http.StatusOK, "Only the result is kept", "Balance too low", "Needs 105 tokens, has 0 tokens.", "ben")
	})

	t.Run("are not shown to other organizations", func(t *testing.T) {
		other := newHarness(t)
		path := "/o/" + other.org.Slug + "/a/" + other.app.Slug + "/requests/" + failed.Format(ids.Request)
		if got := other.join(t, tenancy.Owner).do(t, http.MethodGet, path, nil); got.status != http.StatusNotFound {
			t.Errorf("status %d", got.status)
		}
	})
}
