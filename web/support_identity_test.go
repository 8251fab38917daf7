package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/store/people"
	"purser/tenancy"
)

func TestRenamePage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	d.deposit(t, "bob", 1)
	page := d.walletPath(t, "ann")
	path := page + "/rename"
	admin := d.join(t, tenancy.Admin)
	t.Run("is not for support", func(t *testing.T) {
		b := d.join(t, tenancy.Support)
		if shown := b.get(t, page); shown.status != http.StatusOK || strings.Contains(shown.body, "/rename") {
			t.Errorf("status %d", shown.status)
		}
		if get, post := b.get(t, path), b.post(t, path, url.Values{"from": {"ann"}, "to": {"eve"}, "key": {"x"}}); get.status != http.StatusForbidden || post.status != http.StatusForbidden {
			t.Errorf("%d and %d", get.status, post.status)
		}
	})
	t.Run("refuses what can't be", func(t *testing.T) {
		says(t, admin.get(t, path), http.StatusOK, "New identity", "those of a new customer", "Rename wallet")
		says(t, admin.post(t, path, url.Values{"from": {"ann"}, "to": {""}, "key": {"x"}}), http.StatusUnprocessableEntity, "Enter an identity")
		says(t, admin.post(t, path, url.Values{"from": {"ann"}, "to": {"bob"}, "key": {"x"}}), http.StatusUnprocessableEntity, "already has a wallet")
	})
	t.Run("renames once for a form, with an audit entry that names the wallet", func(t *testing.T) {
		form := url.Values{"from": {"ann"}, "to": {"eve"}, "key": {"x"}}
		for range 2 {
			if sent := admin.post(t, path, form); sent.status != http.StatusSeeOther || sent.location != page {
				t.Fatalf("status %d, to %s", sent.status, sent.location)
			}
		}
		says(t, admin.get(t, page), http.StatusOK, "eve")
		form.Set("key", "y") // an old page
		says(t, admin.post(t, path, form), http.StatusUnprocessableEntity, "renamed meanwhile")
		log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 10})
		noError(t, err)
		if len(log) != 1 || log[0].Action != "wallet.rename" || log[0].UserID != admin.user.ID || strings.Contains(`"`+log[0].Target+`"`+log[0].After, `"ann"`) {
			t.Errorf("the audit log has %+v", log)
		}
	})
}

func TestErasePage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "leaver", 10)
	page := d.walletPath(t, "leaver")
	path := page + "/erase"
	admin := d.join(t, tenancy.Admin)
	adjusts := d.join(t, tenancy.Custom, tenancy.WalletsRead, tenancy.BalancesAdjust)
	for _, b := range []*browser{d.join(t, tenancy.Support), d.join(t, tenancy.Developer), adjusts} {
		if shown := b.get(t, page); shown.status != http.StatusOK || strings.Contains(shown.body, "/erase") {
			t.Errorf("status %d", shown.status)
		}
		if post := b.post(t, path, url.Values{"identity": {"leaver"}, "reason": {"x"}, "key": {"x"}}); post.status != http.StatusForbidden {
			t.Errorf("status %d", post.status)
		}
	}
	says(t, admin.get(t, path), http.StatusOK, "Erase customer", "Deleted", "Kept")
	says(t, admin.post(t, path, url.Values{"identity": {"other"}, "reason": {""}, "key": {"x"}}), http.StatusUnprocessableEntity, "not the identity", "Enter a reason")
	says(t, admin.post(t, path, url.Values{"identity": {"leaver"}, "reason": {"leaver asked"}, "key": {"x"}}), http.StatusUnprocessableEntity, "Don't include the identity")
	for range 2 {
		if sent := admin.post(t, path, url.Values{"identity": {"leaver"}, "reason": {"asked"}, "key": {"x"}}); sent.status != http.StatusSeeOther || sent.location != page {
			t.Fatalf("status %d, to %s", sent.status, sent.location)
		}
	}
	shown := admin.get(t, page)
	says(t, shown, http.StatusOK, "erased_")
	if strings.Contains(shown.body, "leaver") || strings.Contains(shown.body, "/erase") {
		t.Error("the page names the customer, or erases again")
	}
	log, _, err := d.db.Org(d.org.ID).AuditLog(t.Context(), people.AuditPage{Limit: 10})
	noError(t, err)
	if len(log) != 1 || log[0].Action != "wallet.erase" || strings.Contains(log[0].Target+log[0].After, "leaver") {
		t.Errorf("the audit log has %+v", log)
	}
}

// TestSpaceAroundAnIdentity is of two customers whose identities look the same.
func TestSpaceAroundAnIdentity(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	d.deposit(t, "ann", 10)
	d.deposit(t, "ann ", 1)
	admin := d.join(t, tenancy.Admin)
	page, spaced := d.walletPath(t, "ann"), d.walletPath(t, "ann ")

	t.Run("the check of a wallet is its own", func(t *testing.T) {
		link := `href="` + d.appPath("check") + `?identity=ann+"`
		if got := admin.get(t, spaced); !strings.Contains(got.body, link) {
			t.Fatalf("the page has no %s", link)
		}
		says(t, admin.get(t, d.appPath("check")+"?feature=messages&quantity=2&identity=ann+"), http.StatusOK, "Needs 3 tokens, has 1 token.")
		says(t, admin.get(t, d.appPath("check")+"?feature=messages&quantity=2&identity=+ann"), http.StatusOK, "Allowed")
		says(t, admin.get(t, d.appPath("check")+"?feature=messages&quantity=2&exact=1&identity=+ann"), http.StatusOK, "has 0")
		d.deposit(t, "ann\n", 2)
		says(t, admin.get(t, d.appPath("check")+"?feature=messages&quantity=2&identity=ann%0A"), http.StatusOK, "Needs 3 tokens, has 2 tokens.")
	})
	t.Run("lists of a customer are their own", func(t *testing.T) {
		for identity, want := range map[string]string{"ann+": "1 token", "+ann": "10 tokens", "ann": "10 tokens"} {
			got := admin.get(t, d.appPath("deposits")+"?identity="+identity)
			says(t, got, http.StatusOK, want)
			if strings.Count(got.body, `href="`+page) > 0 == strings.Contains(got.body, `href="`+spaced) {
				t.Errorf("%q lists both customers, or none", identity)
			}
		}
	})
	t.Run("a rename is of the wallet of its page", func(t *testing.T) {
		says(t, admin.post(t, spaced+"/rename", url.Values{"from": {"ann"}, "to": {"eve"}, "key": {"x"}}), http.StatusUnprocessableEntity, "renamed meanwhile")
		for range 2 {
			if sent := admin.post(t, spaced+"/rename", url.Values{"from": {"ann "}, "to": {"bob"}, "key": {"y"}}); sent.status != http.StatusSeeOther || sent.location != spaced {
				t.Fatalf("status %d, to %s", sent.status, sent.location)
			}
		}
		if d.walletPath(t, "ann") != page || d.walletPath(t, "bob") != spaced {
			t.Error("another wallet was renamed")
		}
		says(t, admin.post(t, page+"/rename", url.Values{"from": {"ann "}, "to": {"bob"}, "key": {"y"}}), http.StatusUnprocessableEntity, "idempotency")
	})
	t.Run("a browser sends other line breaks", func(t *testing.T) {
		lines := d.walletPath(t, "ann\n")
		if sent := admin.post(t, lines+"/rename", url.Values{"from": {"ann\r\n"}, "to": {"joe"}, "key": {"z"}}); sent.status != http.StatusSeeOther || d.walletPath(t, "joe") != lines {
			t.Errorf("status %d", sent.status)
		}
	})
	t.Run("an erasure is confirmed by what a person can type", func(t *testing.T) {
		d.deposit(t, " the\tcus\u200btomer ", 1)
		path := d.walletPath(t, " the\tcus\u200btomer ")
		says(t, admin.post(t, path+"/erase", url.Values{"identity": {"customer"}, "reason": {"asked"}, "key": {"x"}}), http.StatusUnprocessableEntity, "not the identity")
		if sent := admin.post(t, path+"/erase", url.Values{"identity": {"the customer"}, "reason": {"asked"}, "key": {"x"}}); sent.status != http.StatusSeeOther {
			t.Errorf("status %d", sent.status)
		}
	})
}
