package metering

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseAmount(t *testing.T) {
	for text, want := range map[string]Amount{
		"0":                   0,
		"1":                   1,
		"1000000000":          PerCredit,
		"9999999999999999999": MaxAmount,
	} {
		if got, ok := ParseAmount(text); !ok || got != want {
			t.Errorf("ParseAmount(%q) = %d, %t, want %d", text, got, ok, want)
		}
	}
	for name, text := range map[string]string{
		"nothing":          "",
		"a leading zero":   "01",
		"two zeros":        "00",
		"a sign":           "+1",
		"a minus":          "-1",
		"a point":          "1.0",
		"an exponent":      "1e3",
		"a space":          " 1",
		"a line end":       "1\n",
		"hex":              "0x1",
		"another script":   "١",
		"20 digits":        "10000000000000000000",
		"a separator":      "1_000",
		"digits then junk": "12a",
	} {
		if got, ok := ParseAmount(text); ok {
			t.Errorf("%s: %q was read as %d", name, text, got)
		}
	}
}

func FuzzParseAmount(f *testing.F) {
	for _, seed := range []string{"0", "9999999999999999999", "18446744073709551616", "-1", "007"} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`\A(0|[1-9][0-9]{0,18})\z`)
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := ParseAmount(text)
		if ok != form.MatchString(text) {
			t.Fatalf("ParseAmount(%q) accepted: %t", text, ok)
		}
		if ok && got.String() != text {
			t.Fatalf("%q came back as %s", text, got)
		}
	})
}

func TestAmountArithmetic(t *testing.T) {
	if sum, ok := MaxAmount.Add(0); !ok || sum != MaxAmount {
		t.Error("the largest amount plus nothing is refused")
	}
	if _, ok := MaxAmount.Add(1); ok {
		t.Error("20 digits are accepted")
	}
	if _, ok := MaxAmount.Add(MaxAmount); ok {
		t.Error("a sum past 64 bits is accepted")
	}
	if _, ok := Amount(0).Sub(1); ok {
		t.Error("a difference below zero is accepted")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyAmount.Draw(t, "a"), anyAmount.Draw(t, "b")
		sum, sumOK := a.Add(b)
		expectBig(t, "sum", sum, sumOK, new(big.Int).Add(bigOf(a), bigOf(b)))
		difference, differenceOK := a.Sub(b)
		expectBig(t, "difference", difference, differenceOK, new(big.Int).Sub(bigOf(a), bigOf(b)))
	})
}

// anyAmount prefers the ends, where arithmetic goes wrong.
var anyAmount = rapid.Map(rapid.OneOf(
	rapid.Uint64Range(0, uint64(MaxAmount)),
	rapid.Uint64Range(0, 5),
	rapid.Uint64Range(uint64(MaxAmount)-5, uint64(MaxAmount)),
	rapid.Uint64Range(1<<63-2, 1<<63+2),
), func(n uint64) Amount { return Amount(n) })

func bigOf(a Amount) *big.Int { return new(big.Int).SetUint64(uint64(a)) }

var bigMax, _ = new(big.Int).SetString(strings.Repeat("9", 19), 10)

// expectBig says that a result is the exact number, or absent because the exact
// number is no amount.
func expectBig(t rapid.TB, what string, got Amount, ok bool, want *big.Int) {
	t.Helper()
	if ok != (want.Sign() >= 0 && want.Cmp(bigMax) <= 0) {
		t.Fatalf("%s: accepted is %t, and the exact result is %s", what, ok, want)
	}
	if ok && bigOf(got).Cmp(want) != 0 {
		t.Fatalf("%s is %s, exactly it is %s", what, got, want)
	}
}
