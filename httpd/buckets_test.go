package httpd

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBucketsHoldTheirRate compares buckets with one that counts tokens in small
// steps.
func TestBucketsHoldTheirRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.IntRange(1, 1000).Draw(t, "interval"))
		burst := rapid.Int64Range(1, 20).Draw(t, "burst")
		var now time.Duration
		b := NewBuckets[int](interval, burst, func() time.Duration { return now })
		level := time.Duration(burst) * interval // in nanoseconds that have passed
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			passed := time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause"))
			now += passed
			level = min(level+passed, time.Duration(burst)*interval)
			empty, got := b.IsEmpty(1), b.Take(1, Claim{Tokens: 1})
			if level < interval {
				if !empty || got.Refuse != interval-level || got.Left != 0 {
					t.Fatalf("with %d of %d: %+v", level, interval, got)
				}
				continue
			}
			level -= interval
			if empty || got.Refuse != 0 || got.Left != int64(level/interval) || got.Full != time.Duration(burst)*interval-level {
				t.Fatalf("with %d left: %+v", level, got)
			}
		}
	})
}

// TestBatchesPassAfterTheirRetryAfter sends batches of all sizes: a refused one passes after
// its wait, costs at most one token, and no more passes than the rate and one batch.
func TestBatchesPassAfterTheirRetryAfter(t *testing.T) {
	t.Parallel()
	const most = 100
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.IntRange(1, 1000).Draw(t, "interval"))
		burst := rapid.Int64Range(1, 2*most).Draw(t, "burst")
		now := time.Hour
		began, passed := now, int64(0)
		b := NewBuckets[int](interval, burst, func() time.Duration { return now })
		send := func(tokens int64) Level {
			got := b.Take(1, Claim{Tokens: 1, Most: most})
			if got.Refuse == 0 && tokens > 1 {
				got = b.Take(1, Claim{Tokens: tokens, Held: 1})
			}
			if got.Refuse == 0 {
				passed += tokens
			}
			return got
		}
		for range rapid.IntRange(1, 50).Draw(t, "batches") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause"))
			tokens := rapid.Int64Range(1, most).Draw(t, "tokens")
			got := send(tokens)
			if got.Refuse > 0 {
				again := send(tokens)
				if again.Refuse < got.Refuse || again.Full > got.Full+interval {
					t.Fatalf("%d tokens are refused with %+v, then with %+v", tokens, got, again)
				}
				got = again
				now += got.Refuse
				if again := send(tokens); again.Refuse > 0 {
					t.Fatalf("%d tokens were to wait %d, then %d", tokens, got.Refuse, again.Refuse)
				}
			}
			if meant := burst + int64((now-began)/interval) + most; passed > meant {
				t.Fatalf("%d tokens passed of %d", passed, meant)
			}
		}
	})
}

func TestBucketsGiveEachTokenOnce(t *testing.T) {
	t.Parallel()
	const burst, callers = 100, 16
	b := NewBuckets[int](time.Second, burst, func() time.Duration { return 0 })
	var taken atomic.Int64
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for b.Take(1, Claim{Tokens: 1}).Refuse == 0 {
				taken.Add(1)
			}
		})
	}
	done.Wait()
	if taken.Load() != burst {
		t.Errorf("%d of %d tokens were taken", taken.Load(), burst)
	}
}
