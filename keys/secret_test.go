package keys

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"purser/fault"
)

func mint(t testing.TB, number [32]byte, live bool) Secret {
	t.Helper()
	secret, err := Mint(bytes.NewReader(number[:]), live)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func numbers() *rapid.Generator[[32]byte] {
	return rapid.Custom(func(t *rapid.T) [32]byte {
		return [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
	})
}

// sealed gives any text the checksum that Mint would.
func sealed(text string) string {
	var sum [checksumLength]byte
	writeChecksum(sum[:], []byte(text))
	return text + string(sum[:])
}

func TestMint(t *testing.T) {
	zero, full := [32]byte{}, [32]byte(bytes.Repeat([]byte{0xff}, 32))
	t.Run("keeps its form from release to release", func(t *testing.T) {
		for want, got := range map[string]Secret{
			sealed("psr_test_" + strings.Repeat("0", 43)):       mint(t, zero, false),
			sealed("psr_live_" + strings.Repeat("0", 42) + "1"): mint(t, [32]byte{31: 1}, true),
			sealed("psr_live_" + highest):                       mint(t, full, true),
			// Written out, so that checksum and digits cannot change together.
			"psr_live_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp12pZ3Rm": mint(t, full, true),
		} {
			if got.Reveal() != want {
				t.Errorf("minted %s, want %s", got.Reveal(), want)
			}
		}
	})
	t.Run("takes 32 bytes of the source", func(t *testing.T) {
		source := bytes.NewReader(make([]byte, 40))
		if _, err := Mint(iotest.OneByteReader(source), true); err != nil || source.Len() != 8 {
			t.Errorf("%d bytes are left, %v", source.Len(), err)
		}
	})
	t.Run("makes nothing when the source fails or runs dry", func(t *testing.T) {
		for _, source := range []io.Reader{iotest.ErrReader(errors.New("broken")), bytes.NewReader(make([]byte, 31))} {
			if secret, err := Mint(source, true); err == nil || secret.Reveal() != "" {
				t.Errorf("made %q, %v", secret.Reveal(), err)
			}
		}
	})
}

func TestMintThenParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number, live := numbers().Draw(t, "number"), rapid.Bool().Draw(t, "live")
		minted, err := Mint(bytes.NewReader(number[:]), live)
		if err != nil {
			t.Fatal(err)
		}
		text := minted.Reveal()
		parsed, err := Parse(text)
		if err != nil || parsed.Reveal() != text {
			t.Fatalf("%s came back as %s, %v", text, parsed.Reveal(), err)
		}
		if parsed.Live() != live || parsed.Last4() != text[len(text)-4:] || parsed.Hash() != sha256.Sum256([]byte(text)) {
			t.Fatalf("%s: live %t, last four %s, hash %x", text, parsed.Live(), parsed.Last4(), parsed.Hash())
		}
		if !parsed.Hash().Matches(minted.Hash()) {
			t.Fatalf("%s does not match itself", text)
		}
		value := new(big.Int)
		for _, digit := range text[prefixLength:randomEnd] {
			value.Mul(value, big.NewInt(62)).Add(value, big.NewInt(int64(strings.IndexRune(digits, digit))))
		}
		if value.Cmp(new(big.Int).SetBytes(number[:])) != 0 {
			t.Fatalf("%x was written as %s", number, text)
		}
	})
}

func TestParseRefusesAnyOneChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := numbers().Draw(t, "number")
		secret, _ := Mint(bytes.NewReader(number[:]), true)
		text := []byte(secret.Reveal())
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		was := text[at]
		for changed := range 256 {
			if text[at] = byte(changed); text[at] == was {
				continue
			}
			if _, err := Parse(string(text)); !fault.Is(err, fault.InvalidAPIKey) {
				t.Fatalf("%q was taken for %q: %v", text, secret.Reveal(), err)
			}
		}
	})
}

func TestParseRefuses(t *testing.T) {
	good := mint(t, [32]byte{1, 2, 3}, true).Reveal()
	above := highest[:len(highest)-1] + "2"
	for name, c := range map[string]struct {
		text string
		want fault.Code
	}{
		"no key":                            {"", fault.MissingAPIKey},
		"a publishable live key":            {"pub_live_abc", fault.UnsupportedKeyKind},
		"a publishable test key":            {"pub_test_", fault.UnsupportedKeyKind},
		"a publishable key without a mode":  {"pub_abc", fault.InvalidAPIKey},
		"another prefix":                    {"sk_live_" + good[8:], fault.InvalidAPIKey},
		"another mode with a good checksum": {sealed("psr_prod_" + good[9:randomEnd]), fault.InvalidAPIKey},
		"the other mode":                    {"psr_test_" + good[9:], fault.InvalidAPIKey},
		"one character short":               {good[:len(good)-1], fault.InvalidAPIKey},
		"one character long":                {good + "0", fault.InvalidAPIKey},
		"one digit short, good checksum":    {sealed(good[:randomEnd-1]), fault.InvalidAPIKey},
		"one digit long, good checksum":     {sealed(good[:randomEnd] + "0"), fault.InvalidAPIKey},
		"another alphabet, good checksum":   {sealed(good[:randomEnd-1] + "-"), fault.InvalidAPIKey},
		"2^256, good checksum":              {sealed("psr_live_" + above), fault.InvalidAPIKey},
		"62^43 - 1, good checksum":          {sealed("psr_live_" + strings.Repeat("z", 43)), fault.InvalidAPIKey},
		"a prefix and no more":              {"psr_live_", fault.InvalidAPIKey},
		"upper case":                        {strings.ToUpper(good), fault.InvalidAPIKey},
		"space before":                      {" " + good, fault.InvalidAPIKey},
		"space after":                       {good + " ", fault.InvalidAPIKey},
		"the scheme left in front":          {"Bearer " + good, fault.InvalidAPIKey},
		"a masked key":                      {"psr_live_…9fQ2", fault.InvalidAPIKey},
		"a megabyte":                        {strings.Repeat(good, 1<<20/len(good)), fault.InvalidAPIKey},
	} {
		t.Run(name, func(t *testing.T) {
			secret, err := Parse(c.text)
			if !fault.Is(err, c.want) || secret != (Secret{}) {
				t.Errorf("got %q, %v, want %s", secret.Reveal(), err, c.want)
			}
			if err != nil && len(c.text) > 20 && strings.Contains(err.Error(), c.text[9:20]) {
				t.Errorf("the refusal repeats the key: %v", err)
			}
		})
	}
}

func TestParseCopiesNothingLong(t *testing.T) {
	long := mint(t, [32]byte{1}, true).Reveal() + strings.Repeat("a", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := Parse(long); err == nil {
			t.Fatal("a megabyte was taken for a key")
		}
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
		t.Errorf("100 refusals took %d bytes", taken)
	}
}

func TestParseTakesTheHighest(t *testing.T) {
	if _, err := Parse(sealed("psr_live_" + highest)); err != nil {
		t.Error(err)
	}
}

func TestChecksum(t *testing.T) {
	// CRC-32 of the catalogued check string is cbf43926; of four bytes ff, ffffffff;
	// of nothing, 0.
	for text, want := range map[string]string{"": "000000", "123456789": "3jZRME", "\xff\xff\xff\xff": "4gfFC3"} {
		if got := sealed(text)[len(text):]; got != want {
			t.Errorf("the checksum of %q is %s, want %s", text, got, want)
		}
	}
}

func TestSecretStaysHidden(t *testing.T) {
	secret := mint(t, [32]byte{7, 7, 7}, true)
	shown := "psr_live_…" + secret.Last4()
	hidden := secret.Reveal()[prefixLength : prefixLength+20]
	type held struct {
		Open   Secret
		Many   []Secret
		Ptr    *Secret
		hidden Secret
	}
	holder := held{secret, []Secret{secret}, &secret, secret}

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%100s", "%!"} {
		for what, value := range map[string]any{
			"a secret": secret, "a pointer": &secret, "a holder": holder, "a pointer to a holder": &holder,
			"a map": map[Secret]Secret{secret: secret}, "an error": fmt.Errorf("no: %v", secret),
		} {
			printed := fmt.Sprintf(verb, value)
			if strings.Contains(printed, hidden) || strings.Contains(printed, fmt.Sprintf("%x", hidden)) {
				t.Errorf("%s prints %s as %s", verb, what, printed)
			}
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, secret); got != shown {
			t.Errorf("%s prints %s, want %s", verb, got, shown)
		}
	}
	if got := secret.GoString(); got != shown {
		t.Errorf("GoString is %s", got)
	}

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "key", secret, "holder", holder)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "key", secret, "holder", holder)
	if strings.Contains(log.String(), hidden) || strings.Count(log.String(), shown) < 4 {
		t.Errorf("logged %s", log.String())
	}

	encoded, err := json.Marshal(map[string]any{"secret": secret, "holder": holder})
	if err != nil || strings.Contains(string(encoded), hidden) || !strings.Contains(string(encoded), shown) {
		t.Errorf("encoded as %s, %v", encoded, err)
	}
}

func TestNoSecret(t *testing.T) {
	var none Secret
	if none.String() != "(no secret)" || none.Reveal() != "" || none.Last4() != "" || none.Live() || none.Hash() != (Hash{}) {
		t.Errorf("no secret is %s", none)
	}
}

func FuzzParse(f *testing.F) {
	good := mint(f, [32]byte{9}, false).Reveal()
	for _, text := range []string{"", good, good[:57], "pub_live_x", sealed("psr_live_" + strings.Repeat("z", 43)), "psr_test_\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, text := range []string{text, sealed("psr_live_" + text)} {
			secret, err := Parse(text)
			if err == nil && (secret.Reveal() != text || len(text) != secretLength) {
				t.Errorf("%q was read as %q", text, secret.Reveal())
			}
			var refusal *fault.Fault
			if err != nil && (!errors.As(err, &refusal) || secret != (Secret{})) {
				t.Errorf("%q: %q, %v", text, secret.Reveal(), err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	good := mint(b, [32]byte{9}, true).Reveal()
	b.Run("and hash a good key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			secret, _ := Parse(good)
			_ = secret.Hash()
		}
	})
	b.Run("a typing error", func(b *testing.B) {
		b.ReportAllocs()
		wrong := good[:20] + "-" + good[21:]
		for b.Loop() {
			_, _ = Parse(wrong)
		}
	})
	b.Run("a megabyte", func(b *testing.B) {
		b.ReportAllocs()
		long := livePrefix + strings.Repeat("a", 1<<20)
		for b.Loop() {
			_, _ = Parse(long)
		}
	})
}
