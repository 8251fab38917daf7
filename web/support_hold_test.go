package web

import (
	"net/http"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/site"
)

func TestPaymentHold(t *testing.T) {
	t.Parallel()
	db, payments := storetest.Open(t), newTestCashier(t)
	r := newHarnessOn(t, Options{Options: site.Options{Store: db, Cashier: payments, BaseURL: "https://purser.example"}})
	live := r.newApplication(t, r.org, "Shop", true)
	owe := func(app tenancy.Application) string {
		t.Helper()
		tenant := db.App(app.Scope())
		w, _, err := tenant.CreateWallet(t.Context(), ids.New(), "late", r.site.Now())
		noError(t, err)
		storetest.PutSubscription(t, r.url, app.Scope(), "late", metering.Subscription{
			ID: ids.New(), Status: metering.StatusPastDue, Period: metering.MonthOf(r.site.Now()),
		})
		return site.PathOf([]string{"o", r.org.Slug, "a", app.Slug, "wallets", w.ID.Format(ids.Wallet)})
	}
	inTest, inLive := owe(r.app), owe(live)
	owner, support := r.join(t, tenancy.Owner), r.join(t, tenancy.Support)

	t.Run("leads who tries things out to the page on which it is paid", func(t *testing.T) {
		page := owner.get(t, inTest+"/subscription")
		says(t, page, http.StatusOK, "Payment overdue", "Open customer portal")
		if !strings.Contains(page.body, `action="`+inTest+`/portal"`) {
			t.Error("nothing opens it")
		}
	})
	t.Run("ends with a cancellation at once, and the page says so", func(t *testing.T) {
		page := owner.get(t, inTest)
		says(t, page, http.StatusOK, "The renewal is not paid, so the plan ends now. You can't undo this.", "Cancel now")
		if strings.Contains(page.body, "You can undo this until then") {
			t.Error("it promises the rest of the period")
		}
	})
	t.Run("offers nothing to who may change nothing", func(t *testing.T) {
		page := support.get(t, inTest+"/subscription")
		says(t, page, http.StatusOK, "Payment overdue")
		says(t, support.get(t, inTest), http.StatusOK, "View subscription")
		if strings.Contains(page.body, "/portal") {
			t.Error("it does")
		}
		if got := support.post(t, inTest+"/portal", nil); got.status != http.StatusForbidden {
			t.Errorf("the form answers %d", got.status)
		}
	})
	t.Run("is the customer's own affair in a live application", func(t *testing.T) {
		page := owner.get(t, inLive+"/subscription")
		says(t, page, http.StatusOK, "Payment overdue", "POST /v1/billing-portal")
		if got := owner.post(t, inLive+"/portal", nil); strings.Contains(page.body, "/portal\"") || got.status != http.StatusNotFound {
			t.Errorf("the form answers %d", got.status)
		}
	})
}
