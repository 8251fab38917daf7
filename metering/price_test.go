package metering

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestPrice(t *testing.T) {
	for _, c := range []struct {
		claim                      string
		cost                       Amount
		perUnit, billable, multipl int64
		want                       Amount
	}{
		{"a unit costs its cost", 1000, 100, 100, ListPrice, 1000},
		{"half a unit costs half", 1000, 100, 50, ListPrice, 500},
		{"a fraction is rounded up", 1000, 3, 1, ListPrice, 334},
		{"the smallest fraction costs one nanocredit", 1, MaxQuantity, 1, 1, 1},
		{"nothing used costs nothing", MaxAmount, 1, 0, ListPrice, 0},
		{"a free feature costs nothing", 0, 1, MaxQuantity, MaxBasisPoints, 0},
		{"basis points of zero are free", MaxAmount, 1, MaxQuantity, 0, 0},
		{"rounds once: half of a third of ten", 10, 3, 1, 5000, 2},
		{"a multiplier above the list price", 1000, 1, 3, 12_500, 3750},
		{"the largest amount", MaxAmount, 1, 1, ListPrice, MaxAmount},
		{"large factors that cancel", MaxAmount, MaxQuantity, MaxQuantity, ListPrice, MaxAmount},
		{"all factors at their largest but the cost", 1, MaxQuantity, MaxQuantity, MaxBasisPoints, 100},
		{"a product that carries past 128 bits", 37778931862957981, MaxQuantity, MaxQuantity, MaxBasisPoints, 3777893186295798100},
	} {
		got, ok := Price(c.cost, c.perUnit, c.billable, c.multipl)
		if !ok || got != c.want {
			t.Errorf("%s: got %s, %t, want %s", c.claim, got, ok, c.want)
		}
	}
	for _, c := range []struct {
		claim                      string
		cost                       Amount
		perUnit, billable, multipl int64
	}{
		{"one past 19 digits", MaxAmount, 9_999, 10_000, ListPrice},
		{"past 19 digits by rounding up alone", MaxAmount, 1, 1, 10_001},
		{"just past 64 bits", 1 << 62, 1, 4, ListPrice},
		{"past 128 bits", MaxAmount, 1, MaxQuantity, MaxBasisPoints},
	} {
		if got, ok := Price(c.cost, c.perUnit, c.billable, c.multipl); ok {
			t.Errorf("%s: got %s, want a refusal", c.claim, got)
		}
	}
}

func TestPriceIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comparePrice(t,
			anyAmount.Draw(t, "cost"),
			anyQuantity.Draw(t, "quantityPerUnit"),
			anyQuantity.Draw(t, "billable")-1,
			rapid.OneOf(rapid.Int64Range(0, MaxBasisPoints), rapid.Just(ListPrice)).Draw(t, "basisPoints"))
	})
}

func FuzzPrice(f *testing.F) {
	f.Add(uint64(MaxAmount), uint64(1), uint64(MaxQuantity), uint64(MaxBasisPoints))
	f.Add(uint64(1), uint64(MaxQuantity), uint64(1), uint64(1))
	f.Add(uint64(10), uint64(3), uint64(1), uint64(5000))
	f.Add(uint64(37778931862957981), uint64(MaxQuantity), uint64(MaxQuantity), uint64(MaxBasisPoints))
	f.Fuzz(func(t *testing.T, cost, perUnit, billable, basisPoints uint64) {
		comparePrice(t,
			Amount(cost%(uint64(MaxAmount)+1)),
			int64(perUnit%uint64(MaxQuantity))+1,
			int64(billable%(uint64(MaxQuantity)+1)),
			int64(basisPoints%(uint64(MaxBasisPoints)+1)))
	})
}

func comparePrice(t rapid.TB, cost Amount, perUnit, billable, basisPoints int64) {
	t.Helper()
	got, ok := Price(cost, perUnit, billable, basisPoints)
	numerator := new(big.Int).Mul(bigOf(cost), big.NewInt(billable))
	numerator.Mul(numerator, big.NewInt(basisPoints))
	denominator := new(big.Int).Mul(big.NewInt(perUnit), big.NewInt(10_000))
	expectBig(t, "price", got, ok, bigCeil(numerator, denominator))
}

func TestPortionIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := anyQuantity.Draw(t, "whole")
		comparePortion(t, anyAmount.Draw(t, "amount"), rapid.Int64Range(0, whole).Draw(t, "part"), whole)
	})
}

func FuzzPortion(f *testing.F) {
	f.Add(uint64(MaxAmount), uint64(MaxQuantity), uint64(MaxQuantity))
	f.Add(uint64(10), uint64(1), uint64(3))
	f.Fuzz(func(t *testing.T, amount, part, whole uint64) {
		w := int64(whole%uint64(MaxQuantity)) + 1
		comparePortion(t, Amount(amount%(uint64(MaxAmount)+1)), int64(part%(uint64(w)+1)), w)
	})
}

func comparePortion(t rapid.TB, amount Amount, part, whole int64) {
	t.Helper()
	want := bigCeil(new(big.Int).Mul(bigOf(amount), big.NewInt(part)), big.NewInt(whole))
	expectBig(t, "portion", portion(amount, part, whole), true, want)
}

// bigCeil divides with a remainder, as one does on paper.
func bigCeil(numerator, denominator *big.Int) *big.Int {
	quotient, rest := new(big.Int).QuoRem(numerator, denominator, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

// anyQuantity is at least 1 and prefers the ends.
var anyQuantity = rapid.OneOf(
	rapid.Int64Range(1, MaxQuantity),
	rapid.Int64Range(1, 10),
	rapid.Int64Range(MaxQuantity-5, MaxQuantity),
)
