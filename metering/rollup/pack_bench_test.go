package rollup_test

import (
	"fmt"
	"testing"

	"purser/metering"
	"purser/metering/rollup"
)

func BenchmarkUnpackValues(b *testing.B) {
	var list []rollup.ValueSums
	for i := range rollup.MaxValues {
		list = append(list, rollup.ValueSums{Value: fmt.Sprint("order-", i), Sums: rollup.Event{Quantity: 1, Amount: metering.Amount(1_000_000)}.Sums()})
	}
	pack := rollup.PackValues(list)
	b.ReportAllocs()
	for b.Loop() {
		if err := rollup.UnpackValues(pack, func(int, *rollup.ValueSums) {}); err != nil {
			b.Fatal(err)
		}
	}
}
