package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"purser/store/storetest"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	t.Run("puts every value into the bucket that spans it", func(t *testing.T) {
		t.Parallel()
		random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
		for range 100_000 {
			v := random.Uint64() >> (1 + random.IntN(63))
			i := bucketOf(v)
			if low, high := bucketStart(i), bucketStart(i+1); v < low || v >= high {
				t.Fatalf("%d is in the bucket from %d to %d", v, low, high)
			}
		}
	})
	t.Run("takes the longest duration there is", func(t *testing.T) {
		t.Parallel()
		var h histogram
		h.add(math.MaxInt64)
		if got := h.quantile(0.5); got < math.MaxInt64/32*31 {
			t.Errorf("the median is %d", got)
		}
	})
	t.Run("finds a quantile to a sixteenth, over merged parts", func(t *testing.T) {
		t.Parallel()
		var odd, even histogram
		for i := range 10_000 {
			d := time.Duration(i) * time.Microsecond
			if i%2 == 0 {
				even.add(d)
			} else {
				odd.add(d)
			}
		}
		even.merge(&odd)
		for _, q := range []float64{0.01, 0.5, 0.99} {
			want := q * float64(10*time.Millisecond)
			if got := float64(even.quantile(q)); math.Abs(got-want) > want/16 {
				t.Errorf("the quantile %v is %v, not about %v", q, time.Duration(got), time.Duration(want))
			}
		}
	})
	t.Run("has no quantile while it is empty", func(t *testing.T) {
		t.Parallel()
		if got := new(histogram).quantile(0.5); got != 0 {
			t.Errorf("the median of nothing is %v", got)
		}
	})
}
