package vault_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"purser/ids"
	"purser/tenancy/vault"
)

var (
	first  = bytes.Repeat([]byte{1}, vault.MinSecret)
	second = bytes.Repeat([]byte{2}, vault.MinSecret)
	place  = vault.Place{Purpose: "stripe api key", Org: ids.New(), App: ids.New(), Row: ids.New()}
)

func open(tb testing.TB, secrets ...[]byte) *vault.Vault {
	tb.Helper()
	v, err := vault.New(rand.Reader, secrets...)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func seal(tb testing.TB, v *vault.Vault, at vault.Place, secret string) []byte {
	tb.Helper()
	sealed, err := v.Seal(at, []byte(secret))
	if err != nil {
		tb.Fatal(err)
	}
	return sealed
}

func TestSealedTextsOpen(t *testing.T) {
	t.Parallel()
	v := open(t, first)
	for _, secret := range []string{"", "sk_test_123", strings.Repeat("long", 10_000)} {
		sealed := seal(t, v, place, secret)
		if secret != "" && bytes.Contains(sealed, []byte(secret)) {
			t.Error("the secret can be read")
		}
		got, err := v.Open(place, sealed)
		if err != nil || string(got) != secret {
			t.Errorf("%d bytes came back as %d: %v", len(secret), len(got), err)
		}
	}
	if bytes.Equal(seal(t, v, place, "same"), seal(t, v, place, "same")) {
		t.Error("the same secret looks the same twice")
	}
}

func TestASealedTextOpensOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()
	v := open(t, first)
	sealed := seal(t, v, place, "sk_test_123")
	for name, change := range map[string]func(*vault.Place){
		"another organization": func(p *vault.Place) { p.Org = ids.New() },
		"another application":  func(p *vault.Place) { p.App = ids.New() },
		"another row":          func(p *vault.Place) { p.Row = ids.New() },
		"another purpose":      func(p *vault.Place) { p.Purpose = "stripe webhook secret" },
		"a longer purpose":     func(p *vault.Place) { p.Purpose += "s" },
		"two parts exchanged":  func(p *vault.Place) { p.Org, p.App = p.App, p.Org },
		"no place":             func(p *vault.Place) { *p = vault.Place{} },
	} {
		other := place
		change(&other)
		if got, err := v.Open(other, sealed); !errors.Is(err, vault.ErrSpoilt) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestNoFlippedBitOpens(t *testing.T) {
	t.Parallel()
	v := open(t, first, second)
	sealed := seal(t, v, place, "sk_test_123")
	for bit := range len(sealed) * 8 {
		spoilt := bytes.Clone(sealed)
		spoilt[bit/8] ^= 1 << (bit % 8)
		if got, err := v.Open(place, spoilt); err == nil || got != nil {
			t.Fatalf("bit %d: %q, %v", bit, got, err)
		}
	}
	for length := range sealed {
		if _, err := v.Open(place, sealed[:length]); err == nil {
			t.Fatalf("cut to %d bytes it opens", length)
		}
	}
	if _, err := v.Open(place, append(bytes.Clone(sealed), 0)); err == nil {
		t.Error("with a byte more it opens")
	}
}

func TestASecretCanBeReplaced(t *testing.T) {
	t.Parallel()
	before, during, after := open(t, first), open(t, second, first), open(t, second)
	old := seal(t, before, place, "sk_test_123")

	t.Run("both open what the old one sealed", func(t *testing.T) {
		if got, err := during.Open(place, old); err != nil || string(got) != "sk_test_123" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("what is sealed again needs the new one alone", func(t *testing.T) {
		again, changed, err := during.Rewrap(place, old)
		if err != nil || !changed {
			t.Fatalf("changed is %v, %v", changed, err)
		}
		if got, err := after.Open(place, again); err != nil || string(got) != "sk_test_123" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := before.Open(place, again); !errors.Is(err, vault.ErrUnknownKey) {
			t.Errorf("the old one alone: %v", err)
		}
		same, changed, err := during.Rewrap(place, again)
		if err != nil || changed || !bytes.Equal(same, again) {
			t.Errorf("a second time: changed is %v, %v", changed, err)
		}
	})
	t.Run("without the old one, its texts are lost and nothing else", func(t *testing.T) {
		if _, err := after.Open(place, old); !errors.Is(err, vault.ErrUnknownKey) {
			t.Error(err)
		}
	})
	t.Run("sealing again opens only at the right place", func(t *testing.T) {
		if _, _, err := during.Rewrap(vault.Place{}, old); !errors.Is(err, vault.ErrSpoilt) {
			t.Error(err)
		}
	})
}

func TestACheckValueTellsSecretsApart(t *testing.T) {
	t.Parallel()
	one, both, other := open(t, first), open(t, second, first), open(t, second)
	if !bytes.Equal(one.CheckValue(), open(t, first).CheckValue()) || bytes.Equal(one.CheckValue(), other.CheckValue()) {
		t.Error("a check value is not its secret's alone")
	}
	if !bytes.Equal(both.CheckValue(), other.CheckValue()) {
		t.Error("the check value is not the current secret's")
	}
	if !both.Recognizes(one.CheckValue()) || !both.Recognizes(other.CheckValue()) || one.Recognizes(other.CheckValue()) || one.Recognizes(nil) {
		t.Error("it recognizes other secrets than it was given")
	}
	if bytes.Contains(one.CheckValue(), first[:4]) {
		t.Error("the secret can be read")
	}
	sealed := seal(t, one, place, "sk_test_123")
	if !one.CanOpen(sealed) || !both.CanOpen(sealed) || other.CanOpen(sealed) || one.CanOpen(nil) || one.CanOpen(sealed[:8]) {
		t.Error("it takes other texts for its own, or its own for others")
	}
}

func TestSecretsHaveALength(t *testing.T) {
	t.Parallel()
	if _, err := vault.New(rand.Reader); err == nil {
		t.Error("a vault without a secret")
	}
	if _, err := vault.New(rand.Reader, first[1:]); err == nil {
		t.Error("a vault with a secret that is too short")
	}
	if _, err := vault.New(rand.Reader, first, second[1:]); err == nil {
		t.Error("a vault with a former secret that is too short")
	}
}

func TestWithoutRandomnessNothingIsSealed(t *testing.T) {
	t.Parallel()
	v, err := vault.New(bytes.NewReader([]byte("short")), first)
	if err != nil {
		t.Fatal(err)
	}
	if sealed, err := v.Seal(place, []byte("sk_test_123")); err == nil || sealed != nil {
		t.Errorf("%q, %v", sealed, err)
	}
}

func FuzzOpen(f *testing.F) {
	v := open(f, first)
	sealed := seal(f, v, place, "sk_test_123")
	f.Add(sealed)
	f.Add(sealed[:headerAndNonce])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := v.Open(place, text)
		if err == nil && !bytes.Equal(text, sealed) {
			t.Errorf("%x opens to %q", text, got)
		}
	})
}

// headerAndNonce is the shortest text that gets as far as the cipher.
const headerAndNonce = 21
