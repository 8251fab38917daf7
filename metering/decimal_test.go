package metering

import (
	"math/big"
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestParseCredits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Amount{
		"0":                    0,
		"0.000000001":          1,
		"1":                    PerCredit,
		"1.5":                  1_500_000_000,
		"0012.50":              12_500_000_000,
		"9999999999.999999999": MaxAmount,
		"00000000000000000001": PerCredit,
	} {
		if got, ok := ParseCredits(text); !ok || got != want {
			t.Errorf("ParseCredits(%q) = %d, %t, want %d", text, got, ok, want)
		}
	}
	for name, text := range map[string]string{
		"nothing":                  "",
		"a point alone":            ".",
		"no whole part":            ".5",
		"no fraction":              "5.",
		"a tenth decimal":          "0.0000000001",
		"a tenth decimal of zero":  "0.0000000000",
		"two points":               "1.2.3",
		"a comma":                  "1,5",
		"a thousands separator":    "1,000.5",
		"a sign":                   "+1",
		"a minus":                  "-1",
		"a minus in the fraction":  "0.-1",
		"an exponent":              "1e3",
		"a space":                  "1 ",
		"another script":           "١",
		"one more than the most":   "10000000000",
		"a nanocredit past it all": "10000000000.000000000",
	} {
		if got, ok := ParseCredits(text); ok {
			t.Errorf("%s: %q was read as %d", name, text, got)
		}
	}
}

// FuzzParseDecimal compares with arithmetic that has no limits.
func FuzzParseDecimal(f *testing.F) {
	for _, seed := range []string{"0", "1.5", "00.50", ".5", "5.", "9999999999.999999999", "10000000000", "1,5", "-1", "1e3"} {
		f.Add(seed, uint8(9))
		f.Add(seed, uint8(0))
	}
	form := regexp.MustCompile(`\A[0-9]+(?:\.([0-9]+))?\z`)
	most := new(big.Int).SetUint64(uint64(MaxAmount))
	f.Fuzz(func(t *testing.T, text string, p uint8) {
		places := int(p % 10)
		got, ok := ParseDecimal(text, places)
		want := new(big.Rat)
		match := form.FindStringSubmatch(text)
		fits := match != nil && len(match[1]) <= places
		if fits {
			want.SetString(text)
			want.Mul(want, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
			fits = want.Num().Cmp(most) <= 0
		}
		if ok != fits || ok && (!want.IsInt() || want.Num().Uint64() != got) {
			t.Fatalf("ParseDecimal(%q, %d) = %d, %t, want %s, %t", text, places, got, ok, want, fits)
		}
		if ok {
			if again, ok := ParseDecimal(FormatDecimal(got, places), places); !ok || again != got {
				t.Fatalf("%d is written as %q, and read as %d", got, FormatDecimal(got, places), again)
			}
		}
	})
}

func TestCreditsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := Amount(rapid.Uint64Range(0, uint64(MaxAmount)).Draw(t, "amount"))
		if got, ok := ParseCredits(amount.Credits()); !ok || got != amount {
			t.Fatalf("%d is written as %q, and read as %d", amount, amount.Credits(), got)
		}
	})
}
