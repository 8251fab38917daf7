package tenancy

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
)

// published is every name that rows and callers may hold. Lines are added to
// this list, never changed or removed.
var published = []string{
	"credits:read", "credits:write", "features:read", "features:write",
	"wallets:read", "wallets:write", "deposits:read", "deposits:write",
	"plans:read", "plans:write", "subscriptions:read", "subscriptions:write", "events:ingest",
	"journal:read", "events:reverse", "wallets:transfer", "notifications:read", "webhooks:write", "wallets:erase", "requests:read", "balances:adjust", "keys:read", "keys:write", "apps:write",
	"settings:write", "members:read", "members:write", "audit:read", "organization:write",
}

func TestPermissionNames(t *testing.T) {
	t.Run("are the published ones, in their order", func(t *testing.T) {
		if got := AllPermissions().Names(); !slices.Equal(got, published) {
			t.Errorf("the names are\n%q, published are\n%q", got, published)
		}
	})
	t.Run("of the API are the first nineteen", func(t *testing.T) {
		if got := APIPermissions().Names(); !slices.Equal(got, published[:19]) {
			t.Errorf("a key can have %q", got)
		}
	})
	t.Run("of the read set are all of the API that end in :read", func(t *testing.T) {
		var want []string
		for _, name := range published[:19] {
			if strings.HasSuffix(name, ":read") {
				want = append(want, name)
			}
		}
		if got := ReadPermissions().Names(); !slices.Equal(got, want) {
			t.Errorf("the read set is %q, want %q", got, want)
		}
	})
	t.Run("each say what they allow", func(t *testing.T) {
		for p := range AllPermissions().Each() {
			if len(p.Allows()) < 10 {
				t.Errorf("%s allows %q", p, p.Allows())
			}
		}
	})
}

func TestParsePermissions(t *testing.T) {
	t.Run("takes a name twice as once", func(t *testing.T) {
		got, err := ParsePermissions([]string{"wallets:read", "wallets:read"})
		if err != nil || got != PermissionsOf(WalletsRead) {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("refuses the whole for one unknown name", func(t *testing.T) {
		for _, name := range []string{"", "wallets", "Wallets:read", "wallets:read ", "wallets:*"} {
			got, err := ParsePermissions([]string{"credits:read", name})
			if !fault.Is(err, fault.InvalidRequest) || !got.IsEmpty() {
				t.Errorf("%q gave %s, %v", name, got, err)
			}
		}
	})
	t.Run("leaves unknown names out of a stored set", func(t *testing.T) {
		got := StoredPermissions([]string{"refunds:write", "credits:read", ""})
		if got != PermissionsOf(CreditsRead) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("repeats at most forty characters of what was sent", func(t *testing.T) {
		_, err := ParsePermission(strings.Repeat("x", 5000))
		if len(err.Error()) > 120 {
			t.Errorf("the refusal is %d bytes long", len(err.Error()))
		}
	})
}

func TestNoPermission(t *testing.T) {
	for _, p := range []Permission{0, lastPermission + 1, 63, 64, 255} {
		if AllPermissions().Has(p) || !PermissionsOf(p).IsEmpty() {
			t.Errorf("%d, which is no permission, is held", p)
		}
		if AllPermissions().Require(p) == nil {
			t.Errorf("%d, which is no permission, lets through", p)
		}
		if p.String() != "" || p.Allows() != "" {
			t.Errorf("%d is called %q", p, p)
		}
	}
}

func TestRequire(t *testing.T) {
	for p := range AllPermissions().Each() {
		if err := PermissionsOf(p).Require(p); err != nil {
			t.Errorf("%s does not open itself: %v", p, err)
		}
		err := AllPermissions().Minus(PermissionsOf(p)).Require(p)
		if !fault.Is(err, fault.PermissionDenied) || !strings.Contains(err.Error(), p.String()) {
			t.Errorf("without %s the refusal is %v", p, err)
		}
	}
}

// sets draws any set of permissions.
func sets() *rapid.Generator[Permissions] {
	return rapid.Custom(func(t *rapid.T) Permissions {
		return PermissionsOf(rapid.SliceOf(rapid.SampledFrom(slices.Collect(AllPermissions().Each()))).Draw(t, "list")...)
	})
}

func TestPermissionSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets().Draw(t, "a"), sets().Draw(t, "b")
		if back, err := ParsePermissions(a.Names()); err != nil || back != a || StoredPermissions(a.Names()) != a {
			t.Fatalf("%s came back as %s, %v", a, back, err)
		}
		within := true
		for p := range AllPermissions().Each() {
			if a.Union(b).Has(p) != (a.Has(p) || b.Has(p)) || a.Minus(b).Has(p) != (a.Has(p) && !b.Has(p)) {
				t.Fatalf("%s and %s disagree about %s", a, b, p)
			}
			if !a.With(p).Has(p) || !a.Within(a.With(p)) {
				t.Fatalf("%s with %s is %s", a, p, a.With(p))
			}
			within = within && (!a.Has(p) || b.Has(p))
		}
		if a.Within(b) != within || (a.CheckGrant(b) == nil) != b.Within(a) {
			t.Fatalf("%s within %s: %t", a, b, a.Within(b))
		}
	})
}
