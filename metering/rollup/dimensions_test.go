package rollup_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"purser/metering/rollup"
)

// Whatever values arrive in whatever order, a day keeps a bounded number of them, and a
// label that an event got stays its label.
func TestValuesOfADayAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rollup.Values{}
		for n := range rollup.MaxValues - 3 {
			values.Add(0, rollup.Property("full"), fmt.Sprint(n))
		}
		for n := range rollup.MaxProperties - 3 { // and one more is full
			values.Add(0, rollup.Property(fmt.Sprint("p", n)), "x")
		}
		labels := map[string]string{}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			d := rapid.SampledFrom([]rollup.Dimension{rollup.Entity, rollup.Property("full"), rollup.Property(fmt.Sprint(rapid.IntRange(1, 25).Draw(t, "name")))}).Draw(t, "dimension")
			value := fmt.Sprint("v", rapid.IntRange(0, 9).Draw(t, "value"))
			values.Admit(0, d, value)
			label, counted := values.Label(0, d, value)
			if earlier, known := labels[string(d)+value]; known && earlier != label {
				t.Fatalf("%s of %s was added to %q before, and is to %q", value, d, earlier, label)
			}
			labels[string(d)+value] = label
			if d == rollup.Entity && (!counted || label != value) {
				t.Fatalf("the entity %s is added to %q", value, label)
			}
		}
		properties := 0
		for d, known := range values[0] {
			if len(known) > rollup.MaxValues {
				t.Fatalf("%s has %d values", d, len(known))
			}
			if d != rollup.Entity {
				properties++
			}
		}
		if properties > rollup.MaxProperties {
			t.Fatalf("%d properties", properties)
		}
		if values.Admit(1, rollup.Property("full"), "x"); len(values[1]) != 1 {
			t.Fatal("the next day has no room")
		}
	})
}
