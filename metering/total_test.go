package metering_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"purser/metering"
)

func TestTotal(t *testing.T) {
	t.Parallel()

	t.Run("adds past what a wallet can hold, exactly", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		var total metering.Total
		want := new(big.Int)
		for range 1000 {
			a := metering.Amount(random.Uint64N(uint64(metering.MaxAmount) + 1))
			total = total.Plus(a)
			want.Add(want, new(big.Int).SetUint64(uint64(a)))
			if total.String() != want.String() {
				t.Fatalf("got %s, want %s", total, want)
			}
			if again, ok := metering.ParseTotal(total.String()); !ok || again != total {
				t.Fatalf("%s is read as %s", total, again)
			}
		}
	})

	t.Run("is what it was without what was added, and never below nothing", func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		draw := func() (total metering.Total) {
			for range random.IntN(30) {
				total = total.Plus(metering.Amount(random.Uint64N(uint64(metering.MaxAmount) + 1)))
			}
			return total
		}
		for range 1000 {
			a, b := draw(), draw()
			if got := a.Join(b).Minus(b); got != a {
				t.Fatalf("%s and %s without it make %s", a, b, got)
			}
			if got := a.Minus(a.Join(b).Plus(1)); !got.IsZero() {
				t.Fatalf("%s without more makes %s", a, got)
			}
		}
	})

	t.Run("is shown in credits, without zeros at the end", func(t *testing.T) {
		for text, want := range map[string]string{
			"0": "0", "1": "0.000000001", "1000000000": "1", "1500000000": "1.5", "123456789012345678901234567890": "123456789012345678901.23456789",
		} {
			total, ok := metering.ParseTotal(text)
			if got := total.Credits(); !ok || got != want {
				t.Errorf("%s is %s, not %s", text, got, want)
			}
		}
	})

	t.Run("is not read from anything but digits", func(t *testing.T) {
		for _, text := range []string{"", "-1", "01", "1.5", " 1", strings.Repeat("9", 39)} {
			if total, ok := metering.ParseTotal(text); ok {
				t.Errorf("%q is read as %s", text, total)
			}
		}
	})
}
