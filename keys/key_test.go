package keys

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

const now = int64(1_800_000_000_000)

var app = tenancy.Application{ID: ids.New(), OrgID: ids.New(), Live: true}

func spec() Spec {
	return Spec{ID: ids.New(), App: app, Name: "server", Preset: Setup, CreatedBy: ids.New()}
}

func made(t testing.TB, s Spec) APIKey {
	t.Helper()
	key, _, err := New(s, tenancy.AllPermissions(), now, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestPresets(t *testing.T) {
	for preset, want := range map[Preset]struct {
		title string
		names []string
	}{
		Setup:     {"Setup and ingestion", tenancy.APIPermissions().Names()},
		Ingestion: {"Ingestion", []string{"events:ingest"}},
		ReadOnly: {"Read only", []string{"credits:read", "features:read", "wallets:read", "deposits:read",
			"plans:read", "subscriptions:read", "journal:read", "notifications:read"}},
		Custom: {"Custom", []string{}},
	} {
		if got := preset.Permissions().Names(); !slices.Equal(got, want.names) || preset.Title() != want.title {
			t.Errorf("%s is %q with %q", preset, preset.Title(), got)
		}
	}
	for _, text := range []string{"setup", "ingestion", "read-only", "custom"} {
		if p, err := ParsePreset(text); err != nil || string(p) != text || !slices.Contains(Presets(), p) {
			t.Errorf("%s gave %q, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "Setup", "readonly", "admin"} {
		if _, err := ParsePreset(text); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNew(t *testing.T) {
	t.Run("keeps the hash and the last four of the secret that it shows", func(t *testing.T) {
		s := spec()
		s.Name, s.ExpiresAt = " server ", now+1
		key, secret, err := New(s, tenancy.Admin.Permissions(), now, rand.Reader)
		want := APIKey{
			ID: s.ID, Scope: app.Scope(), Name: "server", Preset: Setup, Permissions: tenancy.APIPermissions(), Live: true,
			Last4: secret.Last4(), Hash: secret.Hash(), CreatedBy: s.CreatedBy, CreatedAt: now, ExpiresAt: now + 1,
		}
		if err != nil || key != want {
			t.Errorf("made %+v, %v, want %+v", key, err, want)
		}
		if key.Masked() != secret.String() {
			t.Errorf("the key shows %s, its secret %s", key.Masked(), secret)
		}
	})
	t.Run("marks the secret live for a live application and no other", func(t *testing.T) {
		for live, prefix := range map[bool]string{true: "psr_live_", false: "psr_test_"} {
			s := spec()
			s.App.Live = live
			key, secret, err := New(s, tenancy.AllPermissions(), now, rand.Reader)
			if err != nil || key.Live != live || !strings.HasPrefix(secret.Reveal(), prefix) {
				t.Errorf("live %t: %+v, %s, %v", live, key, secret, err)
			}
		}
	})
	t.Run("makes no key when the random source fails", func(t *testing.T) {
		key, secret, err := New(spec(), tenancy.AllPermissions(), now, bytes.NewReader(nil))
		if err == nil || key != (APIKey{}) || secret != (Secret{}) {
			t.Errorf("made %+v, %v", key, err)
		}
	})
	t.Run("takes an expiry up to the end of the year 9999", func(t *testing.T) {
		s := spec()
		s.ExpiresAt = lastMoment
		made(t, s)
	})

	custom := func(list ...tenancy.Permission) func(*Spec) {
		return func(s *Spec) { s.Preset, s.Custom = Custom, tenancy.PermissionsOf(list...) }
	}
	keeper := tenancy.PermissionsOf(tenancy.KeysWrite, tenancy.EventsIngest)
	for name, c := range map[string]struct {
		change  func(*Spec)
		creator tenancy.Permissions
		want    fault.Code
	}{
		"refuses no name":                            {func(s *Spec) { s.Name = " " }, tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses a name of 121":                      {func(s *Spec) { s.Name = strings.Repeat("a", 121) }, tenancy.AllPermissions(), fault.InvalidRequest},
		"takes a name of 120":                        {func(s *Spec) { s.Name = strings.Repeat("a", 120) }, tenancy.AllPermissions(), ""},
		"refuses an expiry now":                      {func(s *Spec) { s.ExpiresAt = now }, tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses an expiry in the past":              {func(s *Spec) { s.ExpiresAt = -1 }, tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses an expiry past the year 9999":       {func(s *Spec) { s.ExpiresAt = lastMoment + 1 }, tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses an unknown preset":                  {func(s *Spec) { s.Preset = "root" }, tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses a preset with chosen permissions":   {func(s *Spec) { s.Custom = keeper }, tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses a custom key that may do nothing":   {custom(), tenancy.AllPermissions(), fault.InvalidRequest},
		"refuses a key with a member's permission":   {custom(tenancy.KeysWrite), tenancy.AllPermissions(), fault.InvalidRequest},
		"takes a custom set":                         {custom(tenancy.WalletsRead, tenancy.DepositsWrite), tenancy.AllPermissions(), ""},
		"lets an admin make any":                     {func(*Spec) {}, tenancy.Admin.Permissions(), ""},
		"lets no developer make one":                 {func(s *Spec) { s.Preset = Ingestion }, tenancy.Developer.Permissions(), fault.PermissionDenied},
		"lets no support make one":                   {func(s *Spec) { s.Preset = ReadOnly }, tenancy.Support.Permissions(), fault.PermissionDenied},
		"lets a holder of keys:write give their own": {func(s *Spec) { s.Preset = Ingestion }, keeper, ""},
		"lets nobody give what they lack":            {func(s *Spec) { s.Preset = ReadOnly }, keeper, fault.PermissionNotHeld},
		"lets nobody give what they lack by choice":  {custom(tenancy.EventsIngest, tenancy.DepositsWrite), keeper, fault.PermissionNotHeld},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec()
			c.change(&s)
			key, secret, err := New(s, c.creator, now, rand.Reader)
			if c.want == "" && (err != nil || secret.Hash() != key.Hash) || c.want != "" && !fault.Is(err, c.want) {
				t.Errorf("got %+v, %v, want %q", key, err, c.want)
			}
			if err != nil && (key != (APIKey{}) || secret != (Secret{})) {
				t.Errorf("a refusal made %+v", key)
			}
		})
	}
}

func TestNoKeyHasMoreThanItsMaker(t *testing.T) {
	sets := rapid.Custom(func(t *rapid.T) tenancy.Permissions {
		return tenancy.PermissionsOf(rapid.SliceOf(rapid.SampledFrom(slices.Collect(tenancy.AllPermissions().Each()))).Draw(t, "list")...)
	})
	rapid.Check(t, func(t *rapid.T) {
		s, creator, rotator := spec(), sets.Draw(t, "creator").With(tenancy.KeysWrite), sets.Draw(t, "rotator")
		if s.Preset = rapid.SampledFrom(Presets()).Draw(t, "preset"); s.Preset == Custom {
			s.Custom = sets.Draw(t, "custom")
		}
		key, _, err := New(s, creator, now, rand.Reader)
		if err != nil {
			return
		}
		if key.Permissions.IsEmpty() || !key.Permissions.Within(creator) || !key.Permissions.Within(tenancy.APIPermissions()) {
			t.Fatalf("who has %s made a key with %s", creator, key.Permissions)
		}
		rotated, err := Rotate(key, Rotation{ID: ids.New(), Overlap: OneDay}, rotator, now, rand.Reader)
		if may := rotator.Has(tenancy.KeysWrite) && key.Permissions.Within(rotator); may != (err == nil) {
			t.Fatalf("who has %s rotates %s: %v", rotator, key.Permissions, err)
		}
		if err == nil && rotated.New.Permissions != key.Permissions {
			t.Fatalf("%s became %s", key.Permissions, rotated.New.Permissions)
		}
	})
}

func TestTouchDue(t *testing.T) {
	for name, c := range map[string]struct {
		lastUsed int64
		want     bool
	}{
		"a key never used":                     {0, true},
		"a use in this millisecond":            {now, false},
		"a use 59.999 seconds ago":             {now - 59_999, false},
		"a use a minute ago":                   {now - 60_000, true},
		"a use on a node whose clock is ahead": {now + 5_000, false},
	} {
		if got := TouchDue(c.lastUsed, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
