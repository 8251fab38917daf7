package web

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store/storetest"
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

	t.Run("check again with the amount, if it is known", func(t *testing.T) {
		quoted := d.newFeature(t, "limited", metering.Callback, metering.DeduplicateNone)
		amount := metering.Amount(2_500_000_000)
		for _, identity := range []string{"quoted", "limited"} {
			d.deposit(t, identity, 1)
		}
		storetest.PutSubscription(t, d.url, d.app.Scope(), "limited", metering.Subscription{
			ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(d.site.Now()),
			Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: quoted.ID, FeatureKey: "limited", Limit: 1, Period: metering.LimitMonth, Overage: metering.OverageBlock}}},
		})
		again := func(identity, feature string, quantity int64) (string, bool) {
			refused := d.use(identity, feature, quantity)
			refused.Amount = &amount
			if decision := d.track(t, refused); decision.Allowed() {
				t.Fatal("it is allowed")
			}
			list := support.get(t, d.walletPath(t, identity, "denials"))
			_, rest, _ := strings.Cut(list.body, `data-row href="`)
			address, _, _ := strings.Cut(rest, `"`)
			page := support.get(t, address)
			says(t, page, http.StatusOK, "Denied: "+feature)
			_, rest, found := strings.Cut(page.body, `<a class="button" href="`+d.appPath("check"))
			query, _, _ := strings.Cut(rest, `"`)
			return d.appPath("check") + html.UnescapeString(query), found
		}
		if address, found := again("quoted", "quoted", 2); !found {
			t.Error("there is no link")
		} else {
			says(t, support.get(t, address), http.StatusOK, "Needs 2.5 tokens, has 1 token.")
		}
		if address, found := again("limited", "limited", 2); found {
			t.Errorf("it leads to %s", address)
		}
	})

	t.Run("lead nowhere without a denial", func(t *testing.T) {
		if got := support.get(t, d.appPath("denials", ids.New().Format(ids.Denial))); got.status != http.StatusNotFound {
			t.Errorf("status %d", got.status)
		}
	})
}
