package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/tenancy"
)

func TestReversePage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	charge := d.track(t, d.use("ann", "messages", 2)).Event // 3 tokens
	page := d.appPath("transactions", charge.TransactionID.Format(ids.Transaction))
	path := page + "/reverse"
	admin := d.join(t, tenancy.Admin)
	form := func(amount, reason string) url.Values {
		return url.Values{"entry": {ids.New().Format(ids.Transaction)}, "amount": {amount}, "reason": {reason}}
	}
	holds := func(t *testing.T, want string) {
		t.Helper()
		w, err := d.tenant.Wallet(t.Context(), "ann")
		if err != nil || w.Balances[0].Amount.Credits() != want {
			t.Errorf("the wallet holds %v, %v", w.Balances, err)
		}
	}

	t.Run("support and developers are not offered it, and are refused", func(t *testing.T) {
		for _, role := range []tenancy.Role{tenancy.Support, tenancy.Developer} {
			b := d.join(t, role)
			if shown := b.get(t, page); shown.status != http.StatusOK || strings.Contains(shown.body, "Reverse charge") {
				t.Errorf("%s: status %d", role, shown.status)
			}
			if get, post := b.get(t, path), b.post(t, path, form("", "x")); get.status != http.StatusForbidden || post.status != http.StatusForbidden {
				t.Errorf("%s: %d and %d", role, get.status, post.status)
			}
		}
		holds(t, "7")
	})
	t.Run("refuses no reason and too much, and keeps what was typed", func(t *testing.T) {
		says(t, admin.get(t, path), http.StatusOK, "Not yet reversed", "3 tokens")
		says(t, admin.post(t, path, form("much", "")), http.StatusUnprocessableEntity, "Enter a reason", "up to 9 decimals")
		says(t, admin.post(t, path, form("", strings.Repeat("a", store.MaxReversalReason+1))), http.StatusUnprocessableEntity, "up to 200 characters")
		refused := admin.post(t, path, form("3.000000001", "too much"))
		says(t, refused, http.StatusUnprocessableEntity, "left to reverse")
		if !strings.Contains(refused.body, `value="3.000000001"`) {
			t.Error("the amount is gone")
		}
		holds(t, "7")
	})
	t.Run("returns a part once for a form that is sent twice, with an audit entry", func(t *testing.T) {
		part := form("0.5", "the end was cut off")
		for range 2 {
			if sent := admin.post(t, path, part); sent.status != http.StatusSeeOther || sent.location != page {
				t.Fatalf("status %d, to %s", sent.status, sent.location)
			}
		}
		holds(t, "7.5")
		says(t, admin.get(t, path), http.StatusOK, "Not yet reversed", "2.5 tokens")
		log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 10})
		noError(t, err)
		if len(log) != 1 || log[0].Action != "event.reverse" || log[0].UserID != admin.user.ID || !strings.Contains(log[0].After, "the end was cut off") {
			t.Errorf("the audit log has %+v", log)
		}
		says(t, admin.get(t, d.appPath("transactions", part.Get("entry"))), http.StatusOK, "Reversal", "the end was cut off", admin.user.Name,
			charge.TransactionID.Format(ids.Transaction))
	})
	t.Run("returns the rest, and is then no longer offered", func(t *testing.T) {
		if sent := admin.post(t, path, form("", "it failed")); sent.status != http.StatusSeeOther {
			t.Fatalf("status %d", sent.status)
		}
		holds(t, "10")
		shown := admin.get(t, page)
		says(t, shown, http.StatusOK, "Reversals", "the end was cut off", "it failed", "2.5 tokens")
		if strings.Contains(shown.body, "Reverse charge") {
			t.Error("a reversed charge can be reversed")
		}
		says(t, admin.post(t, path, form("", "again")), http.StatusUnprocessableEntity, "already fully reversed")
		says(t, admin.get(t, d.walletPath(t, "ann")), http.StatusOK, "Reversal", "it failed", "Matches")
	})
	t.Run("is not for other entries", func(t *testing.T) {
		deposit := d.deposit(t, "ann", 1)
		if got := admin.get(t, d.appPath("transactions", deposit.ID.Format(ids.Transaction), "reverse")); got.status != http.StatusNotFound {
			t.Errorf("status %d", got.status)
		}
	})
}
