package keys

import (
	"bytes"
	"crypto/rand"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		expires, revoked int64
		want             Status
		fault            fault.Code
	}{
		"works without an end":                     {0, 0, Active, ""},
		"works until the last millisecond":         {now + 1, 0, Active, ""},
		"has expired at its expiry":                {now, 0, Expired, fault.ExpiredAPIKey},
		"works until a revocation to come":         {0, now + 1, Retiring, ""},
		"is revoked at its revocation":             {0, now, Revoked, fault.RevokedAPIKey},
		"expires before a revocation to come":      {now, now + 1, Expired, fault.ExpiredAPIKey},
		"is revoked before it expires":             {now + 1, now, Revoked, fault.RevokedAPIKey},
		"is revoked when it had expired before":    {now - 2, now - 1, Revoked, fault.RevokedAPIKey},
		"stays revoked when it would have expired": {now - 1, now - 2, Revoked, fault.RevokedAPIKey},
		"retires when it is to end in both ways":   {now + 1, now + 2, Retiring, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := APIKey{ExpiresAt: c.expires, RevokedAt: c.revoked}
			if got := key.Status(now); got != c.want {
				t.Errorf("the status is %s, want %s", got, c.want)
			}
			expect(t, key.Usable(now), c.fault)
		})
	}
}

func TestAKeyEndsAtTheEarlierOfItsEnds(t *testing.T) {
	for _, c := range []struct{ expires, revoked, want int64 }{{0, 0, 0}, {5, 0, 5}, {0, 7, 7}, {5, 7, 5}, {7, 5, 5}} {
		if got := (APIKey{ExpiresAt: c.expires, RevokedAt: c.revoked}).EndsAt(); got != c.want {
			t.Errorf("one that expires at %d and is revoked at %d ends at %d", c.expires, c.revoked, got)
		}
	}
}

func TestRevoke(t *testing.T) {
	for name, c := range map[string]struct{ was, want int64 }{
		"stops a key now":                         {0, now},
		"keeps the time of an earlier revocation": {now - 5, now - 5},
		"brings forward a revocation to come":     {now + 5, now},
	} {
		t.Run(name, func(t *testing.T) {
			key := made(t, spec())
			key.RevokedAt = c.was
			once := key.Revoke(now)
			if once.RevokedAt != c.want || once.Revoke(now+1000) != once {
				t.Errorf("revoked at %d, want %d, again at %d", once.RevokedAt, c.want, once.Revoke(now+1000).RevokedAt)
			}
			expect(t, once.Usable(now), fault.RevokedAPIKey)
			if once.Usable(0) == nil {
				t.Error("a node whose clock is behind still takes it")
			}
			if once.Revoked, once.RevokedAt = false, key.RevokedAt; once != key {
				t.Error("more than the time was changed")
			}
		})
	}
}

func TestRotate(t *testing.T) {
	const later = now + 10*24*hour
	rotate := func(key APIKey, overlap Overlap) (Rotated, error) {
		return Rotate(key, Rotation{ID: ids.New(), By: ids.New(), Overlap: overlap}, tenancy.AllPermissions(), later, rand.Reader)
	}

	t.Run("makes the same key with another secret", func(t *testing.T) {
		old := made(t, spec())
		old.LastUsedAt = later - 1
		rotation := Rotation{ID: ids.New(), By: ids.New(), Overlap: NoOverlap}
		got, err := Rotate(old, rotation, tenancy.AllPermissions(), later, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		want := APIKey{
			ID: rotation.ID, Scope: old.Scope, Name: old.Name, Preset: old.Preset, Permissions: old.Permissions, Live: old.Live,
			Last4: got.Secret.Last4(), Hash: got.Secret.Hash(), CreatedBy: rotation.By, CreatedAt: later, Replaces: old.ID,
		}
		if got.New != want || got.New.Hash == old.Hash {
			t.Errorf("made %+v, want %+v", got.New, want)
		}
		old.Revoked, old.RevokedAt, old.ReplacedBy = true, later, rotation.ID
		if got.Old != old {
			t.Errorf("left %+v, want %+v", got.Old, old)
		}
		expect(t, got.New.Usable(later), "")
	})

	for overlap, length := range map[Overlap]int64{NoOverlap: 0, OneHour: 3_600_000, OneDay: 86_400_000, OneWeek: 604_800_000} {
		t.Run("lets the old key work for an overlap of "+string(overlap), func(t *testing.T) {
			got, err := rotate(made(t, spec()), overlap)
			if err != nil || got.Old.RevokedAt != later+length {
				t.Fatalf("revoked at %d, %v", got.Old.RevokedAt, err)
			}
			if length > 0 {
				expect(t, got.Old.Usable(later+length-1), "")
			}
			expect(t, got.Old.Usable(later+length), fault.RevokedAPIKey)
		})
	}
	t.Run("lets the old key work until it is revoked by hand", func(t *testing.T) {
		got, err := rotate(made(t, spec()), UntilRevoked)
		if err != nil || got.Old.Status(lastMoment) != Active {
			t.Fatalf("left %+v, %v", got.Old, err)
		}
		expect(t, got.Old.Revoke(later).Usable(later), fault.RevokedAPIKey)
	})
	t.Run("offers every overlap that it takes, and no other", func(t *testing.T) {
		for _, overlap := range Overlaps() {
			if _, err := rotate(made(t, spec()), overlap); err != nil {
				t.Errorf("%s: %v", overlap, err)
			}
		}
		for _, overlap := range []Overlap{"", "2h", "forever"} {
			_, err := rotate(made(t, spec()), overlap)
			expect(t, err, fault.InvalidRequest)
		}
	})

	t.Run("keeps what the old key has, not what its preset has today", func(t *testing.T) {
		old := made(t, spec())
		old.Permissions = tenancy.PermissionsOf(tenancy.CreditsRead) // from before its preset grew
		got, err := rotate(old, NoOverlap)
		if err != nil || got.New.Permissions != old.Permissions || got.New.Preset != Setup {
			t.Errorf("made %+v, %v", got.New, err)
		}
	})
	t.Run("gives the replacement as long a life", func(t *testing.T) {
		s := spec()
		s.ExpiresAt = now + 30*24*hour
		got, err := rotate(made(t, s), OneDay)
		if err != nil || got.New.ExpiresAt != later+30*24*hour || got.Old.ExpiresAt != s.ExpiresAt {
			t.Errorf("%d became %d, %v", s.ExpiresAt, got.New.ExpiresAt, err)
		}
		s.ExpiresAt = lastMoment
		if got, err = rotate(made(t, s), OneDay); err != nil || got.New.ExpiresAt != lastMoment {
			t.Errorf("%d became %d, %v", s.ExpiresAt, got.New.ExpiresAt, err)
		}
	})
	t.Run("lets no overlap outlast the old key's expiry", func(t *testing.T) {
		s := spec()
		s.ExpiresAt = later + hour
		got, err := rotate(made(t, s), OneWeek)
		expect(t, err, "")
		expect(t, got.Old.Usable(later+hour), fault.ExpiredAPIKey)
	})

	t.Run("refuses a key that no longer works or was replaced", func(t *testing.T) {
		replaced, err := rotate(made(t, spec()), UntilRevoked)
		expect(t, err, "")
		expiring := spec()
		expiring.ExpiresAt = later
		for name, key := range map[string]APIKey{
			"revoked":             made(t, spec()).Revoke(later),
			"expired":             made(t, expiring),
			"replaced":            replaced.Old,
			"about to be revoked": made(t, spec()).Revoke(later + 1),
		} {
			got, err := rotate(key, OneDay)
			if !fault.Is(err, fault.APIKeyNotRotatable) || got != (Rotated{}) {
				t.Errorf("a key that is %s became %+v, %v", name, got, err)
			}
		}
		_, err = rotate(replaced.New, NoOverlap)
		expect(t, err, "")
	})
	t.Run("shows no secret to someone who lacks what it opens", func(t *testing.T) {
		for want, rotator := range map[fault.Code]tenancy.Permissions{
			fault.PermissionNotHeld: tenancy.PermissionsOf(tenancy.KeysWrite, tenancy.EventsIngest),
			fault.PermissionDenied:  tenancy.APIPermissions(),
		} {
			got, err := Rotate(made(t, spec()), Rotation{ID: ids.New(), Overlap: OneDay}, rotator, later, rand.Reader)
			expect(t, err, want)
			if got != (Rotated{}) {
				t.Errorf("a refusal made %+v", got)
			}
		}
	})
	t.Run("leaves everything when the random source fails", func(t *testing.T) {
		got, err := Rotate(made(t, spec()), Rotation{Overlap: OneDay}, tenancy.AllPermissions(), later, bytes.NewReader(nil))
		if err == nil || got != (Rotated{}) {
			t.Errorf("made %+v, %v", got, err)
		}
	})
}

func expect(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestAKeyExpiresSoon(t *testing.T) {
	t.Parallel()
	const day = int64(24 * 60 * 60 * 1000)
	notice := ExpiryNotice.Milliseconds()
	key := APIKey{CreatedAt: 100 * day, ExpiresAt: 130 * day}
	for name, c := range map[string]struct {
		change func(*APIKey)
		now    int64
		want   bool
	}{
		"seven days before":              {nil, key.ExpiresAt - notice, true},
		"a moment earlier":               {nil, key.ExpiresAt - notice - 1, false},
		"a moment before its end":        {nil, key.ExpiresAt - 1, true},
		"at its end":                     {nil, key.ExpiresAt, false},
		"one that is revoked":            {func(k *APIKey) { k.Revoked, k.RevokedAt = true, 101*day }, key.ExpiresAt - day, false},
		"one that is replaced":           {func(k *APIKey) { k.RevokedAt = key.ExpiresAt - 1 }, key.ExpiresAt - day, false},
		"one that is replaced for now":   {func(k *APIKey) { k.ReplacedBy = ids.New() }, key.ExpiresAt - day, false},
		"one without an end":             {func(k *APIKey) { k.ExpiresAt = 0 }, key.ExpiresAt - day, false},
		"one that was made for a week":   {func(k *APIKey) { k.CreatedAt = k.ExpiresAt - notice }, key.ExpiresAt - day, false},
		"one that was made for a little": {func(k *APIKey) { k.CreatedAt = k.ExpiresAt - notice - 1 }, key.ExpiresAt - day, true},
	} {
		k := key
		if c.change != nil {
			c.change(&k)
		}
		if got := k.ExpiresSoon(c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
