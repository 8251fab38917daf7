package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"purser/ids"
	"purser/tenancy"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	deposit := d.deposit(t, "boris@contoso.example", 10)
	d.deposit(t, hostileIdentity, 1)
	d.deposit(t, "user-42", 10)
	charged := d.use("user-42", "messages", 1)
	d.track(t, charged)
	wallet, err := d.tenant.Wallet(t.Context(), "boris@contoso.example")
	noError(t, err)
	find := func(who *browser, query string) seen {
		return who.get(t, d.appPath("search")+"?q="+url.QueryEscape(query))
	}

	t.Run("finds customers by any part in any case", func(t *testing.T) {
		for query, want := range map[string]string{
			"BORIS@Contoso.EXAMPLE": "boris@contoso.example", "contoso": "boris@contoso.example", "42": "user-42", "USER": "user-42", "<SCRIPT": `=<script>alert(1)</s…ipt>/../"'&`,
		} {
			page := find(support, query)
			says(t, page, http.StatusOK, "Customers "+want)
			if strings.Contains(page.body, "<script>alert") {
				t.Errorf("%s: the identity is markup", query)
			}
		}
		says(t, find(support, "no-such-customer"), http.StatusOK, "No results for “ no-such-customer ”.")
	})

	t.Run("finds every kind of id", func(t *testing.T) {
		for query, path := range map[string]string{
			wallet.ID.Format(ids.Wallet):                  d.appPath("wallets", wallet.ID.Format(ids.Wallet)),
			deposit.ID.Format(ids.Deposit):                d.appPath("transactions", deposit.ID.Format(ids.Transaction)),
			deposit.ID.Format(ids.Transaction):            d.appPath("transactions", deposit.ID.Format(ids.Transaction)),
			charged.TransactionID.Format(ids.Transaction): d.appPath("transactions", charged.TransactionID.Format(ids.Transaction)),
			charged.TransactionID.Format(ids.Request):     d.appPath("requests", charged.TransactionID.Format(ids.Request)),
			charged.EventID:                               d.appPath("transactions", charged.TransactionID.Format(ids.Transaction)),
		} {
			if page := find(support, query); !strings.Contains(page.body, "Found by ID") || !strings.Contains(page.body, path) {
				t.Errorf("%s is not found", query)
			}
			if got := support.get(t, d.appPath("search")+"?go=1&q="+query); got.location != path {
				t.Errorf("%s leads to %q, not %s", query, got.location, path)
			}
		}
		for _, missing := range []string{ids.New().Format(ids.Wallet), ids.New().Format(ids.Deposit), ids.New().Format(ids.Checkout), ids.New().Format(ids.Subscription), ids.New().Format(ids.Denial), "wal_nonsense"} {
			if page := find(support, missing); page.status != http.StatusOK || strings.Contains(page.body, "Found by ID") {
				t.Errorf("%s: status %d", missing, page.status)
			}
		}
	})

	t.Run("finds pages and actions that the member may open", func(t *testing.T) {
		says(t, find(support, "denial"), http.StatusOK, "Pages and actions Denials")
		owner := d.join(t, tenancy.Owner)
		says(t, find(owner, "create key"), http.StatusOK, "Create API key")
		if page := find(support, "create key"); strings.Contains(page.body, "keys/new") {
			t.Error("support is led to keys")
		}
		key := d.key.ID.Format(ids.APIKey)
		if !strings.Contains(find(owner, key).body, "/keys/"+key) || strings.Contains(find(support, key).body, "/keys/"+key) {
			t.Error("a key is found by support, or not by an owner")
		}
	})

	t.Run("goes straight to the only customer", func(t *testing.T) {
		if got := support.get(t, d.appPath("search")+"?go=1&q=Boris"); got.location != d.walletPath(t, "boris@contoso.example") {
			t.Errorf("it leads to %q", got.location)
		}
	})

	t.Run("finds nothing of another application", func(t *testing.T) {
		other := newSupportHarness(t)
		stranger := other.join(t, tenancy.Owner)
		for _, query := range []string{"boris", wallet.ID.Format(ids.Wallet), deposit.ID.Format(ids.Deposit), charged.EventID} {
			page := stranger.get(t, other.appPath("search")+"?q="+query)
			if strings.Contains(page.body, "<h2>Customers") || strings.Contains(page.body, "Found by ID") {
				t.Errorf("%s is found", query)
			}
		}
	})
}
