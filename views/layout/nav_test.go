package layout

import (
	"strings"
	"testing"

	"purser/tenancy"
)

func labels(groups []NavGroup) string {
	var all []string
	for _, group := range groups {
		for _, item := range group.Items {
			all = append(all, item.Key)
		}
	}
	return strings.Join(all, " ")
}

func TestNavigation(t *testing.T) {
	t.Parallel()

	t.Run("shows only pages that the member may open", func(t *testing.T) {
		t.Parallel()
		got := labels(AppNav("/o/acme/a/shop", tenancy.PermissionsOf(tenancy.WalletsRead, tenancy.PlansRead)))
		if want := "overview wallets plans quickstart"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})

	t.Run("leaves out a heading that has nothing below it", func(t *testing.T) {
		t.Parallel()
		for _, group := range AppNav("/o/acme/a/shop", tenancy.PermissionsOf(tenancy.WalletsRead)) {
			if group.Title == "Catalog" || len(group.Items) == 0 {
				t.Errorf("the group %q is there with %d items", group.Title, len(group.Items))
			}
		}
	})

	t.Run("leads below the place's own address", func(t *testing.T) {
		t.Parallel()
		groups := AppNav("/o/acme/a/shop", tenancy.AllPermissions())
		if first, second := groups[0].Items[0].Href, groups[0].Items[1].Href; first != "/o/acme/a/shop" || second != "/o/acme/a/shop/wallets" {
			t.Errorf("%s and %s", first, second)
		}
	})

	t.Run("shows every member the applications of the organization", func(t *testing.T) {
		t.Parallel()
		if got := labels(OrgNav("/o/acme", tenancy.Permissions{})); got != "applications" {
			t.Errorf("got %s", got)
		}
	})
}

func TestFrameSaysThatMoneyIsNotReal(t *testing.T) {
	t.Parallel()
	app := Application{Place: Place{Name: "Shop", Href: "/o/acme/a/shop"}}
	if got := (Frame{Title: "Wallets", App: app}).page().Title; got != "[Test] Wallets · Shop" {
		t.Errorf("title %q", got)
	}
	app.Live = true
	if got := (Frame{Title: "Wallets", App: app}).page().Title; got != "Wallets · Shop" {
		t.Errorf("title %q", got)
	}
	if got := (Frame{Title: "Wallets", App: app, Org: Place{Name: "Acme"}}).page().Title; got != "Wallets · Shop · Acme" {
		t.Errorf("title %q", got)
	}
	if got := (Frame{Title: "Members", Org: Place{Name: "Acme"}}).page().Title; got != "Members · Acme" {
		t.Errorf("title %q", got)
	}
	if got := (Frame{Title: "Account"}).page().Title; got != "Account" {
		t.Errorf("title %q", got)
	}
}
