package reports

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRangesOfAHistoryCoverEachNumberOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Int64Range(0, 50).Draw(t, "low")
		scan := historyScan{
			low: low, high: low + rapid.Int64Range(0, 200).Draw(t, "numbers") + 1,
			step: rapid.Int64Range(1, 30).Draw(t, "step"), ascending: rapid.Bool().Draw(t, "ascending"),
		}
		want := []int64{}
		for n := scan.low + 1; n < scan.high; n++ {
			want = append(want, n)
		}
		if !scan.ascending {
			slices.Reverse(want)
		}
		got, bounds := []int64{}, scan
		for {
			low, high, ok := scan.next()
			if !ok {
				break
			}
			if high-low-1 > scan.step {
				t.Fatalf("the range between %d and %d is longer than %d", low, high, scan.step)
			}
			numbers := []int64{}
			for n := low + 1; n < high; n++ {
				numbers = append(numbers, n)
			}
			if !scan.ascending {
				slices.Reverse(numbers)
			}
			got = append(got, numbers...)
			// Another page that starts here goes on where this one ends.
			if at := scan.position(); at != 0 {
				rest := bounds
				if rest.low, rest.high = scan.low, scan.high; rest.position() != at {
					t.Fatalf("the position is %d", at)
				}
			} else if len(got) != len(want) {
				t.Fatalf("the end is reached after %d of %d numbers", len(got), len(want))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
