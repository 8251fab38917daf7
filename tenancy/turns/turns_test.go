package turns

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCallersOfAKeyWaitForEachOther(t *testing.T) {
	t.Parallel()
	turns := New[string](2)
	var going, most atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			done, err := turns.Take(t.Context(), "ann")
			if err != nil {
				t.Error(err)
				return
			}
			n := going.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			going.Add(-1)
			done()
		})
	}
	all.Wait()
	if most.Load() > 2 {
		t.Errorf("%d went on at once", most.Load())
	}
	if len(turns.lines) != 0 {
		t.Errorf("%d keys are kept", len(turns.lines))
	}
}

func TestOtherKeysDoNotWait(t *testing.T) {
	t.Parallel()
	turns := New[string](1)
	done, err := turns.Take(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.Take(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	other()

	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := turns.Take(ended, "ann"); err == nil {
		t.Error("a turn beside the one that is taken")
	}
	done()
	done, err = turns.Take(ended, "ann")
	if err != nil {
		t.Errorf("a free place is refused: %v", err)
	} else {
		done()
	}
	if len(turns.lines) != 0 {
		t.Errorf("%d keys are kept", len(turns.lines))
	}
}
