package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store/people"
	"purser/tenancy"
)

func TestTransferPage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	d.deposit(t, "bob", 1)
	page := d.walletPath(t, "ann")
	path := page + "/transfer"
	admin := d.join(t, tenancy.Admin)
	form := func(to, amount, reason string) url.Values {
		return url.Values{"entry": {ids.New().Format(ids.Transaction)}, "to": {to}, "credit": {"tokens"}, "amount": {amount}, "reason": {reason}}
	}
	holds := func(t *testing.T, identity, want string) {
		t.Helper()
		w, err := d.tenant.Wallet(t.Context(), identity)
		if err != nil || w.Balances[0].Amount.Credits() != want {
			t.Errorf("the wallet of %s holds %v, %v", identity, w.Balances, err)
		}
	}

	t.Run("support and developers are not offered it, and are refused", func(t *testing.T) {
		for _, role := range []tenancy.Role{tenancy.Support, tenancy.Developer} {
			b := d.join(t, role)
			if shown := b.get(t, page); shown.status != http.StatusOK || strings.Contains(shown.body, "Transfer credits") {
				t.Errorf("%s: status %d", role, shown.status)
			}
			if get, post := b.get(t, path), b.post(t, path, form("bob", "1", "x")); get.status != http.StatusForbidden || post.status != http.StatusForbidden {
				t.Errorf("%s: %d and %d", role, get.status, post.status)
			}
		}
	})
	t.Run("refuses what can't be, and keeps what was typed", func(t *testing.T) {
		says(t, admin.get(t, path), http.StatusOK, "Review transfer", "Receiver")
		says(t, admin.post(t, path, form("", "much", "")), http.StatusUnprocessableEntity, "Enter the identity", "up to 9 decimals", "Enter a reason")
		says(t, admin.post(t, path, form("bob", "1", strings.Repeat("a", metering.MaxTransferReason+1))), http.StatusUnprocessableEntity, "up to 200 characters")
		says(t, admin.post(t, path, form("dan", "1", "x")), http.StatusUnprocessableEntity, "No customer with this identity")
		says(t, admin.post(t, path, form("ann", "1", "x")), http.StatusUnprocessableEntity, "the same wallet")
		refused := admin.post(t, path, form("bob", "10.000000001", "too much"))
		says(t, refused, http.StatusUnprocessableEntity, "balance is 10 tokens")
		holdsText(t, refused, `value="10.000000001"`)
		confirmed := form("bob", "11", "too much")
		confirmed.Set("confirmed", "yes")
		says(t, admin.post(t, path, confirmed), http.StatusUnprocessableEntity, "balance is 10 tokens")
		holds(t, "ann", "10")
	})
	moved := form("bob", "2.5", "left the team")
	t.Run("previews both balances and moves nothing yet", func(t *testing.T) {
		says(t, admin.post(t, path, moved), http.StatusOK, "Review transfer", "Transfer credits", "−2.5", "7.5", "3.5", "left the team")
		edit := form("bob", "2.5", "left the team")
		edit.Set("edit", "yes")
		holdsText(t, admin.post(t, path, edit), `value="2.5"`, "Review transfer")
		holds(t, "ann", "10")
		holds(t, "bob", "1")
	})
	t.Run("moves once for a form that is confirmed twice, with an audit entry", func(t *testing.T) {
		moved.Set("confirmed", "yes")
		for range 2 {
			if sent := admin.post(t, path, moved); sent.status != http.StatusSeeOther || sent.location != page {
				t.Fatalf("status %d, to %s", sent.status, sent.location)
			}
		}
		holds(t, "ann", "7.5")
		holds(t, "bob", "3.5")
		log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 10})
		noError(t, err)
		if len(log) != 1 || log[0].Action != "wallet.transfer" || log[0].UserID != admin.user.ID || !strings.Contains(log[0].After, "left the team") ||
			strings.Contains(`"`+log[0].Target+`"`+log[0].After, `"ann"`) || strings.Contains(log[0].After, "bob") {
			t.Errorf("the audit log has %+v", log)
		}
	})
	t.Run("is named in both journals and links to the other wallet", func(t *testing.T) {
		says(t, admin.get(t, page), http.StatusOK, "Transfer", "To bob", "left the team", "Matches")
		holdsText(t, admin.get(t, page), `href="`+d.walletPath(t, "bob")+`"`)
		says(t, admin.get(t, d.walletPath(t, "bob")), http.StatusOK, "Transfer", "From ann", "left the team", "Matches")
		holdsText(t, admin.get(t, d.walletPath(t, "bob")), `href="`+page+`"`)
		entry := admin.get(t, d.appPath("transactions", moved.Get("entry")))
		says(t, entry, http.StatusOK, "Transfer", "left the team", admin.user.Name)
		holdsText(t, entry, `href="`+d.walletPath(t, "bob")+`"`)
		holdsText(t, admin.get(t, page+"/journal.csv"), "other identity", "transfer,left the team", ",bob,")
	})
}

// holdsText expects texts in the source of a page.
func holdsText(t *testing.T, page seen, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page.body, text) {
			t.Errorf("it does not have %s", text)
		}
	}
}
