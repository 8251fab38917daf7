package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/metering"
	"purser/store/people"
	"purser/store/storetest"
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
	walletID := func(t *testing.T, identity string) string {
		t.Helper()
		w, err := d.tenant.Wallet(t.Context(), identity)
		noError(t, err)
		return w.ID.Format(ids.Wallet)
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
		confirmed.Set("to_wallet", walletID(t, "bob"))
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
		moved.Set("to_wallet", walletID(t, "bob"))
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

// An identity gets another wallet between the preview and the confirmation: the credits stay
// where they are until the new preview is confirmed.
func TestTransfersAreBetweenTheWalletsOfThePreview(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	for _, identity := range []string{"ann", "bob", "cid"} {
		d.deposit(t, identity, 10)
	}
	admin := d.join(t, tenancy.Admin)
	rename := func(from, to string) {
		storetest.Exec(t, d.url, `UPDATE wallets SET identity = $3, version = version + 1 WHERE app_id = $1 AND identity = $2`, d.app.ID, from, to)
	}
	credits := func(identity string) string {
		w, err := d.tenant.Wallet(t.Context(), identity)
		noError(t, err)
		return w.Balances[0].Amount.Credits()
	}
	path, entry := d.walletPath(t, "ann", "transfer"), ids.New().Format(ids.Transaction)
	form := url.Values{"entry": {entry}, "to": {"bob"}, "credit": {"tokens"}, "amount": {"4"}, "reason": {"split"}}
	confirm := func(preview seen) seen {
		form.Set("confirmed", "yes")
		form.Set("to_wallet", hidden(preview.body, "to_wallet"))
		return admin.post(t, path, form)
	}
	preview := admin.post(t, path, form)
	rename("bob", "old bob")
	rename("cid", "bob")
	says := func(got seen, status int, text string) {
		if got.status != status || !strings.Contains(textOf(got.body), text) {
			t.Errorf("status %d, without %q: %s", got.status, text, textOf(got.body))
		}
	}
	again := confirm(preview)
	says(again, http.StatusConflict, "Nothing was transferred")
	holdsText(t, again, d.walletPath(t, "bob"), "Review transfer")
	if credits("ann") != "10" || credits("bob") != "10" || credits("old bob") != "10" {
		t.Errorf("after the conflict: %s, %s, %s", credits("ann"), credits("bob"), credits("old bob"))
	}
	rename("bob", "cid")
	says(confirm(again), http.StatusUnprocessableEntity, "No customer with this identity has a wallet.")
	rename("cid", "bob")
	if got := confirm(seen{}); got.status != http.StatusConflict || credits("ann") != "10" {
		t.Errorf("without the wallet: status %d", got.status)
	}
	if got := confirm(again); got.status != http.StatusSeeOther || credits("ann") != "6" || credits("bob") != "14" || credits("old bob") != "10" {
		t.Errorf("after the new preview: status %d, %s, %s, %s", got.status, credits("ann"), credits("bob"), credits("old bob"))
	}
}

// The wallet of the page gets another identity while the transfer waits for it: a new wallet
// of the old identity must not pay.
func TestATransferIsFromTheWalletOfThePage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	for _, identity := range []string{"ann", "bob", "cid"} {
		d.deposit(t, identity, 10)
	}
	admin, path := d.join(t, tenancy.Admin), d.walletPath(t, "ann", "transfer")
	form := url.Values{"entry": {ids.New().Format(ids.Transaction)}, "to": {"bob"}, "credit": {"tokens"}, "amount": {"4"}, "reason": {"split"}}
	form.Set("to_wallet", hidden(admin.post(t, path, form).body, "to_wallet"))
	form.Set("confirmed", "yes")
	rename := storetest.Session(t, d.url)
	rename("BEGIN")
	for _, move := range [][2]string{{"ann", "eve"}, {"cid", "ann"}} {
		rename(`UPDATE wallets SET identity = '` + move[1] + `', version = version + 1 WHERE app_id = '` + d.app.ID.String() + `' AND identity = '` + move[0] + `'`)
	}
	answered := make(chan seen, 1)
	go func() { answered <- admin.post(t, path, form) }()
	rename(`DO $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))) LOOP
			PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
		END LOOP;
	END $$`)
	rename("COMMIT")
	got := <-answered
	says(t, got, http.StatusConflict, "Nothing was transferred", "eve")
	for _, identity := range []string{"ann", "bob", "eve"} {
		if w, err := d.tenant.Wallet(t.Context(), identity); err != nil || w.Balances[0].Amount != 10*metering.PerCredit {
			t.Errorf("%s has %+v, %v", identity, w, err)
		}
	}
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
