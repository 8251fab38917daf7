package ids

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestFormat(t *testing.T) {
	// From the TypeID specification's list of valid examples.
	for text, want := range map[string]string{
		"prefix_00000000000000000000000000": "00000000-0000-0000-0000-000000000000",
		"prefix_00000000000000000000000001": "00000000-0000-0000-0000-000000000001",
		"prefix_0000000000000000000000000g": "00000000-0000-0000-0000-000000000010",
		"prefix_7zzzzzzzzzzzzzzzzzzzzzzzzz": "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"prefix_01h455vb4pex5vsknk084sn02q": "01890a5d-ac96-774b-bcce-b302099a8057",
	} {
		id := ID(uuid.MustParse(want))
		if got := id.Format("prefix"); got != text {
			t.Errorf("Format(%s) = %s, want %s", want, got, text)
		}
		back, err := Parse("prefix", text)
		if err != nil || back != id {
			t.Errorf("Parse(%s) = %s, %v, want %s", text, back, err, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b ID
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "a"))
		copy(b[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "b"))
		back, err := Parse(Wallet, a.Format(Wallet))
		if err != nil || back != a {
			t.Fatalf("%s came back as %s, %v", a, back, err)
		}
		if (strings.Compare(a.Format("x"), b.Format("x")) < 0) != (strings.Compare(string(a[:]), string(b[:])) < 0) {
			t.Fatalf("%s and %s sort differently as text", a, b)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	good := New().Format(Wallet)
	for name, text := range map[string]string{
		"another prefix":        "app" + good[3:],
		"upper case":            strings.ToUpper(good),
		"a letter not in use":   good[:len(good)-1] + "u",
		"one character short":   good[:len(good)-1],
		"one character long":    good + "0",
		"more than 128 bits":    "wal_8zzzzzzzzzzzzzzzzzzzzzzzzz",
		"nothing":               "",
		"a prefix and no more":  "wal_",
		"a prefix, no dividing": "wal" + good[4:],
	} {
		if _, err := Parse(Wallet, text); err == nil {
			t.Errorf("%s: %q was accepted", name, text)
		}
	}
}

func TestNewSortsByTime(t *testing.T) {
	before := New()
	for range 10_000 {
		after := New()
		if after.Format(Deposit) <= before.Format(Deposit) {
			t.Fatalf("%s came after %s", after, before)
		}
		before = after
	}
}
