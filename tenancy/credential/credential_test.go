package credential_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"purser/fault"
	"purser/tenancy/credential"
)

func TestPasswordHash(t *testing.T) {
	encoded, err := credential.HashPassword("a long enough phrase", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("lets the right password in and no other", func(t *testing.T) {
		for password, want := range map[string]bool{"a long enough phrase": true, "a long enough phrasE": false, "": false, "a long enough phrase ": false} {
			if right, outdated, err := credential.Check(password, encoded); right != want || outdated || err != nil {
				t.Errorf("%q: %t, %t, %v", password, right, outdated, err)
			}
		}
	})
	t.Run("names its parameters", func(t *testing.T) {
		if !strings.HasPrefix(encoded, "$argon2id$v=19$m=47104,t=2,p=1$") {
			t.Errorf("it is %s", encoded)
		}
	})
	t.Run("is another one each time", func(t *testing.T) {
		again, err := credential.HashPassword("a long enough phrase", rand.Reader)
		if err != nil || again == encoded {
			t.Errorf("%s, %v", again, err)
		}
	})
	t.Run("of cheaper times is right and outdated", func(t *testing.T) {
		cheap := "$argon2id$v=19$m=8192,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$" +
			base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("old"), make([]byte, 16), 1, 8192, 1, 32))
		if right, outdated, err := credential.Check("old", cheap); !right || !outdated || err != nil {
			t.Errorf("%t, %t, %v", right, outdated, err)
		}
	})
	t.Run("that is damaged is an error and lets nobody in", func(t *testing.T) {
		for _, bad := range []string{"", "plain", "$argon2i$v=19$m=47104,t=2,p=1$AAAA$AAAA", encoded[:40], strings.Replace(encoded, "m=47104", "m=99999999", 1), strings.Replace(encoded, "p=1", "p=0", 1)} {
			if right, _, err := credential.Check("a long enough phrase", bad); right || err == nil {
				t.Errorf("%q: %t, %v", bad, right, err)
			}
		}
	})
	t.Run("that nobody has is no error", func(t *testing.T) {
		if right, outdated, err := credential.Check("anything at all", credential.Dummy); right || outdated || err != nil {
			t.Errorf("%t, %t, %v", right, outdated, err)
		}
	})
}

func TestChoosingAPassword(t *testing.T) {
	for name, c := range map[string]struct {
		password string
		taken    bool
	}{
		"four words":                   {"marble kettle window oak", true},
		"twelve characters":            {"k9#mVq2!xTzr", true},
		"eleven characters":            {"k9#mVq2!xTz", false},
		"128 characters":               {strings.Repeat("kq", 63) + "mv", true},
		"129 characters":               {strings.Repeat("kq7w", 32) + "m", false},
		"128 characters of many bytes": {strings.Repeat("äö", 63) + "ßé", true},
		"a common word made longer":    {"Password2026!!", false},
		"a disguised common word":      {"P@55w0rd2026", false},
		"two common words":             {"LetMeIn-Please", false},
		"the same again and again":     {"abcabcabcabcabc", false},
		"one letter":                   {"aaaaaaaaaaaaaaaa", false},
		"digits in a row":              {"123456789012345", false},
		"letters in a row":             {"abcdefghijklmnop", false},
		"keys in a row":                {"qwertyuiop[]12", false},
		"the famous one":               {"correct horse battery staple", false},
		"one's own name":               {"annexample2026", false},
		"one's own address":            {"ann@example.com", false},
		"a phrase with one's name":     {"ann keeps nine green herons", true},
		"damaged text":                 {"marble kettle \xff\xfe", false},
		"a breached one of 12 letters": {"needforspeed", false},
		"a breached one, decorated":    {"Supernatural77", false},
		"a breached short one, longer": {"Leather-2026!", false},
		"one's organization":           {"NorthwindBooks1", false},
		"the product":                  {"Purser-Billing", false},
		"a phrase with the product":    {"purser pays nine green herons", true},
	} {
		err := credential.CheckChoice(c.password, "ann@example.com", "Ann Example", "Northwind Books")
		if c.taken && err != nil || !c.taken && !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEveryBreachedPasswordIsRefused goes over the list itself: a list that is read
// wrongly refuses nothing.
func TestEveryBreachedPasswordIsRefused(t *testing.T) {
	list, long := credential.Breached(), 0
	for _, password := range list {
		if len(password) < credential.MinPasswordLength {
			continue
		}
		long++
		if err := credential.CheckChoice(password); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", password, err)
		}
	}
	if len(list) < 10_000 || long < 3_000 {
		t.Errorf("the list has %d passwords, %d of them long enough to be chosen", len(list), long)
	}
}

// The vectors of RFC 6238 for SHA-1, of which six digits are taken.
func TestCodes(t *testing.T) {
	seed := credential.Seed("12345678901234567890")
	for second, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := seed.Code(second / 30); got != want {
			t.Errorf("at %d it is %s, want %s", second, got, want)
		}
	}
	const now = 1_234_567_890_000
	step := int64(now / 30_000)
	for name, c := range map[string]struct {
		code     string
		lastUsed int64
		want     bool
	}{
		"the code of now":             {seed.Code(step), 0, true},
		"with spaces":                 {" 005 924 ", 0, true},
		"the one before":              {seed.Code(step - 1), 0, true},
		"the one two before":          {seed.Code(step - 2), 0, false},
		"the one before, used":        {seed.Code(step - 1), step - 1, false},
		"the one after":               {seed.Code(step + 1), 0, false},
		"one that was used":           {seed.Code(step), step, false},
		"one after one that was used": {seed.Code(step), step - 1, true},
		"none":                        {"", 0, false},
		"half of it":                  {"005", 0, false},
	} {
		if _, found := seed.Step(c.code, c.lastUsed, now); found != c.want {
			t.Errorf("%s: %t", name, found)
		}
	}
}

func TestSeedsAreTyped(t *testing.T) {
	seed, err := credential.NewSeed(bytes.NewReader(make([]byte, 20)))
	if err != nil || seed.Text() != "AAAA AAAA AAAA AAAA AAAA AAAA AAAA AAAA" {
		t.Errorf("it reads %q, %v", seed.Text(), err)
	}
	if got := seed.Address("Purser", "ann@example.com"); got != "otpauth://totp/Purser:ann@example.com?issuer=Purser&secret=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" {
		t.Errorf("its address is %s", got)
	}
	if _, err := credential.NewSeed(bytes.NewReader(nil)); err == nil {
		t.Error("a seed was made of nothing")
	}
}

func TestRecoveryCodes(t *testing.T) {
	codes, err := credential.NewRecoveryCodes(rand.Reader)
	if err != nil || len(codes) != credential.RecoveryCodes {
		t.Fatalf("%d codes, %v", len(codes), err)
	}
	seen := map[credential.Hash]bool{}
	for _, code := range codes {
		seen[code.Hash()] = true
		typed := strings.ToUpper(strings.ReplaceAll(string(code), "-", " "))
		if credential.ParseRecoveryCode(typed).Hash() != code.Hash() {
			t.Errorf("%q is not read as %q", typed, code)
		}
	}
	if len(seen) != len(codes) {
		t.Error("two codes are the same")
	}
	if credential.ParseRecoveryCode("123456") != "" {
		t.Error("a short code is read")
	}
}
