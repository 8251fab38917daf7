package sketch_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"purser/ids"
	"purser/store/internal/sketch"
)

func TestSketch(t *testing.T) {
	t.Parallel()

	t.Run("is exact up to its limit, however often each comes", func(t *testing.T) {
		s := sketch.New()
		list := make([]ids.ID, sketch.Exact)
		for i := range list {
			list[i] = ids.New()
		}
		for range 3 {
			for _, id := range list {
				s.Add(id)
			}
		}
		if n, exact := s.Count(); n != sketch.Exact || !exact {
			t.Errorf("it counts %d, exact %v", n, exact)
		}
		s.Add(ids.New())
		if _, exact := s.Count(); exact {
			t.Error("one past the limit it still calls itself exact")
		}
	})

	t.Run("is right to five in a hundred past it", func(t *testing.T) {
		// The same ids in every run: a count is off by 1.6 in a hundred on average, so that one
		// in some hundred runs with other ids is off by more than five.
		s, random := sketch.New(), rand.NewChaCha8([32]byte{1})
		for n, at := 0, int64(1_000); at <= 300_000; at = at * 3 {
			for ; n < int(at); n++ {
				var id ids.ID
				_, _ = random.Read(id[:]) // never fails
				s.Add(id)
			}
			if got, _ := s.Count(); got < at*95/100 || got > at*105/100 {
				t.Errorf("it counts %d of %d", got, at)
			}
		}
	})

	t.Run("counts nobody twice who is in both of two", func(t *testing.T) {
		for _, size := range []int{100, 400, 5_000} {
			a, b, all := sketch.New(), sketch.New(), sketch.New()
			for i := range size {
				id := ids.New()
				all.Add(id)
				if i%3 != 0 {
					a.Add(id)
				}
				if i%3 != 1 {
					b.Add(id)
				}
			}
			a.Merge(b)
			got, _ := a.Count()
			if want, _ := all.Count(); got != want {
				t.Errorf("of %d it counts %d, one alone counts %d", size, got, want)
			}
		}
	})

	t.Run("is the same after it was stored", func(t *testing.T) {
		for _, size := range []int{0, 1, sketch.Exact, 2_000} {
			s := sketch.New()
			for range size {
				s.Add(ids.New())
			}
			again, err := sketch.Decode(s.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again.Encode(), s.Encode()) {
				t.Errorf("with %d it is another", size)
			}
		}
	})

	t.Run("is not read from anything else", func(t *testing.T) {
		for _, text := range [][]byte{{0}, {1, 2}, {2, 0}, bytes.Repeat([]byte{1}, 1+8*(sketch.Exact+1)), {3}} {
			if _, err := sketch.Decode(text); err == nil {
				t.Errorf("%d bytes are read", len(text))
			}
		}
	})
}
