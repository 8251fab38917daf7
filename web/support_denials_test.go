package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/tenancy"
)

func TestDenialPages(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	d.deposit(t, hostileIdentity, 1)
	refused := d.use(hostileIdentity, "messages", 7)
	refused.RequestID = ids.New()
	if decision := d.track(t, refused); decision.Allowed() {
		t.Fatal("it is allowed")
	}
	check := d.use("an identity without a wallet", "daily", 1)
	check.EventID = ""
	if _, err := d.usage.Check(check); err != nil {
		t.Fatal(err)
	}

	t.Run("list what was refused, with the numbers then", func(t *testing.T) {
		page := support.get(t, d.appPath("denials"))
		says(t, page, http.StatusOK, "Denials", "messages usage", "Balance too low Needs 10.5 tokens, has 1 token.", "7 messages", "daily check", "an identity without a wallet")
		if strings.Contains(page.body, "<script>alert") {
			t.Error("the identity is markup")
		}
	})

	t.Run("filter by customer, feature, reason and day", func(t *testing.T) {
		for query, found := range map[string]bool{
			"identity=" + url.QueryEscape(hostileIdentity): true, "identity=nobody": false, "feature=messages": true, "feature=quoted": false,
			"reason=insufficient_balance": true, "reason=feature_limit_exceeded": false, "from=2020-01-01": true, "to=2020-01-01": false,
		} {
			page := support.get(t, d.appPath("denials")+"?"+query)
			if got := strings.Contains(page.body, "/denials/dny_"); page.status != http.StatusOK || got != found {
				t.Errorf("%s: status %d, found %t", query, page.status, got)
			}
		}
		says(t, support.get(t, d.appPath("denials")+"?from=2026-02-01&to=2026-01-01"), http.StatusUnprocessableEntity, "Enter a day on or after the first one.")
		says(t, support.get(t, d.appPath("denials")+"?from=soon"), http.StatusUnprocessableEntity, "Enter a date such as 2026-01-31.")
	})

	t.Run("explain one from the wallet's page, as it was", func(t *testing.T) {
		d.deposit(t, hostileIdentity, 1_000)
		list := support.get(t, d.walletPath(t, hostileIdentity, "denials"))
		says(t, list, http.StatusOK, "messages usage", "Balance too low")
		_, rest, _ := strings.Cut(list.body, `data-row href="`)
		address, _, _ := strings.Cut(rest, `"`)
		says(t, support.get(t, address), http.StatusOK, "Denied: messages", "The balance does not cover this charge.", "API response: insufficient_balance", "Balance covers the charge",
			"Needs 10.5 tokens, has 1 token.", "Deposit at least 9.5 tokens.", "Price then 1.5", "Balance then 1", refused.RequestID.Format(ids.Request), refused.EventID)
	})

	t.Run("lead nowhere without a denial", func(t *testing.T) {
		if got := support.get(t, d.appPath("denials", ids.New().Format(ids.Denial))); got.status != http.StatusNotFound {
			t.Errorf("status %d", got.status)
		}
	})
}
