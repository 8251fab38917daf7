package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
)

func TestAdjustPage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	path := d.walletPath(t, "ann", "adjust")
	admin := d.join(t, tenancy.Admin)
	adjustment := func(id ids.ID) url.Values {
		return url.Values{"entry": {id.Format(ids.Transaction)}, "credit": {"tokens"}, "amount": {"2.5"}, "direction": {"out"}, "reason": {"granted twice"}}
	}
	holds := func(t *testing.T, want string) {
		t.Helper()
		w, err := d.tenant.Wallet(t.Context(), "ann")
		if err != nil || w.Balances[0].Amount.Credits() != want {
			t.Errorf("the wallet holds %v, %v", w.Balances, err)
		}
	}

	t.Run("support and developers are refused, by a forged form as well", func(t *testing.T) {
		for _, role := range []tenancy.Role{tenancy.Support, tenancy.Developer} {
			b := d.join(t, role)
			if get, post := b.get(t, path), b.post(t, path, adjustment(ids.New())); get.status != http.StatusForbidden || post.status != http.StatusForbidden {
				t.Errorf("%s: %d and %d", role, get.status, post.status)
			}
		}
		holds(t, "10")
	})

	t.Run("wants everything, and keeps what was typed", func(t *testing.T) {
		page := admin.post(t, path, url.Values{"entry": {ids.New().Format(ids.Transaction)}, "amount": {"much"}, "reason": {""}})
		says(t, page, http.StatusUnprocessableEntity, "Enter a reason", "Select a credit", "up to 9 decimals")
		if !strings.Contains(page.body, `value="much"`) {
			t.Error("the amount is gone")
		}
		too := adjustment(ids.New())
		too.Set("amount", "10.000000001")
		says(t, admin.post(t, path, too), http.StatusUnprocessableEntity, "The balance is 10")
		holds(t, "10")
	})

	t.Run("writes the journal and the audit log, once for a form that is sent twice", func(t *testing.T) {
		form := adjustment(ids.New())
		for range 2 {
			if page := admin.post(t, path, form); page.status != http.StatusSeeOther || page.location != d.walletPath(t, "ann") {
				t.Fatalf("status %d, to %s", page.status, page.location)
			}
		}
		holds(t, "7.5")
		says(t, admin.get(t, d.walletPath(t, "ann")), http.StatusOK, "Adjustment", "granted twice", "−2.5 tokens", "Matches")
		log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 10})
		noError(t, err)
		if len(log) != 1 || log[0].Action != "balance.adjust" || log[0].UserID != admin.user.ID || !strings.Contains(log[0].After, "granted twice") {
			t.Errorf("the audit log has %+v", log)
		}
		whole := adjustment(ids.New())
		whole.Set("amount", "7.5")
		for range 2 {
			if page := admin.post(t, path, whole); page.status != http.StatusSeeOther {
				t.Fatalf("all of the balance: status %d", page.status)
			}
		}
		holds(t, "0")
		whole.Set("direction", "in")
		says(t, admin.post(t, path, whole), http.StatusUnprocessableEntity, "sent before, with other values")
		id := form.Get("entry")
		says(t, admin.get(t, d.appPath("transactions", id)), http.StatusOK, "granted twice", admin.user.Name)
	})
}
