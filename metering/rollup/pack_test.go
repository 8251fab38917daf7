package rollup_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"purser/metering"
	"purser/metering/rollup"
)

// anyTotal is a sum of up to three amounts, some of them past 64 bits.
func anyTotal(t *rapid.T, name string) (total metering.Total) {
	for range rapid.IntRange(0, 3).Draw(t, name+" parts") {
		total = total.Plus(metering.Amount(rapid.Uint64Range(0, uint64(metering.MaxAmount)).Draw(t, name)))
		if rapid.Bool().Draw(t, name+" is large") {
			total = total.Join(total).Join(total)
		}
	}
	return total
}

func TestPackedValuesAreUnpacked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) rollup.ValueSums {
			return rollup.ValueSums{Value: rapid.String().Draw(t, "value"), Sums: rollup.Sums{
				Events: rapid.Int64Range(0, 1<<63-1).Draw(t, "events"), Deduplicated: rapid.Int64Range(0, 1<<63-1).Draw(t, "deduplicated"),
				Quantity: anyTotal(t, "quantity"), Included: anyTotal(t, "included"), Charged: anyTotal(t, "charged"),
			}}
		})).Draw(t, "values")
		pack := rollup.PackValues(list)
		var found []rollup.ValueSums
		add := func(at int, v *rollup.ValueSums) {
			found = append(found, *v)
			if sums := rollup.SumsAt(pack, at); sums != v.Sums {
				t.Fatalf("the sums at %d are %v, expected %v", at, sums, v.Sums)
			}
		}
		if err := rollup.UnpackValues(pack, add); err != nil || !slices.Equal(found, list) {
			t.Fatalf("%v became %v: %v", list, found, err)
		}
		// A part of a pack is refused, or ends behind a value.
		found = nil
		cut := rapid.IntRange(0, len(pack)-1).Draw(t, "cut")
		if err := rollup.UnpackValues(pack[:cut], add); len(found) > len(list) || !slices.Equal(found, list[:len(found)]) ||
			err == nil && cut != len(rollup.PackValues(list[:len(found)])) {
			t.Fatalf("%d of %d bytes became %v: %v", cut, len(pack), found, err)
		}
	})
}

func TestWhatIsNoPackIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		values, size := 0, 0
		err := rollup.UnpackValues(bytes, func(_ int, v *rollup.ValueSums) { values++; size += len(v.Value) })
		if len(bytes) == 0 && err == nil || values*6+size > len(bytes) {
			t.Fatalf("%d values of %d bytes from %d: %v", values, size, len(bytes), err)
		}
	})
	if err := rollup.UnpackValues([]byte{2}, nil); err == nil {
		t.Error("a pack of another version was read")
	}
}
