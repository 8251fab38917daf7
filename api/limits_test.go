package api

import (
	"context"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/store/people"
)

// TestBucketsHoldTheirRate compares buckets with one that counts tokens in small
// steps.
func TestBucketsHoldTheirRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.IntRange(1, 1000).Draw(t, "interval"))
		burst := rapid.Int64Range(1, 20).Draw(t, "burst")
		var now time.Duration
		b := newBuckets[int](interval, burst, func() time.Duration { return now })
		level := time.Duration(burst) * interval // in nanoseconds that have passed
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			passed := time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause"))
			now += passed
			level = min(level+passed, time.Duration(burst)*interval)
			empty, got := b.isEmpty(1), b.take(1, claim{tokens: 1})
			if level < interval {
				if !empty || got.refuse != interval-level || got.left != 0 {
					t.Fatalf("with %d of %d: %+v", level, interval, got)
				}
				continue
			}
			level -= interval
			if empty || got.refuse != 0 || got.left != int64(level/interval) || got.full != time.Duration(burst)*interval-level {
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
		b := newBuckets[int](interval, burst, func() time.Duration { return now })
		send := func(tokens int64) level {
			got := b.take(1, claim{tokens: 1, most: most})
			if got.refuse == 0 && tokens > 1 {
				got = b.take(1, claim{tokens: tokens, held: 1})
			}
			if got.refuse == 0 {
				passed += tokens
			}
			return got
		}
		for range rapid.IntRange(1, 50).Draw(t, "batches") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause"))
			tokens := rapid.Int64Range(1, most).Draw(t, "tokens")
			got := send(tokens)
			if got.refuse > 0 {
				again := send(tokens)
				if again.refuse < got.refuse || again.full > got.full+interval {
					t.Fatalf("%d tokens are refused with %+v, then with %+v", tokens, got, again)
				}
				got = again
				now += got.refuse
				if again := send(tokens); again.refuse > 0 {
					t.Fatalf("%d tokens were to wait %d, then %d", tokens, got.refuse, again.refuse)
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
	b := newBuckets[int](time.Second, burst, func() time.Duration { return 0 })
	var taken atomic.Int64
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for b.take(1, claim{tokens: 1}).refuse == 0 {
				taken.Add(1)
			}
		})
	}
	done.Wait()
	if taken.Load() != burst {
		t.Errorf("%d of %d tokens were taken", taken.Load(), burst)
	}
}

func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	var now time.Duration
	l := newKeyLimits(1, func() time.Duration { return now })
	for _, want := range []string{`"key";r=1;t=1`, `"key";r=0;t=2`, `"key";r=0;t=2`} {
		header := http.Header{}
		_ = l.take(keyName{}, claim{tokens: 1}, header)
		if got := header.Get("RateLimit"); got != want || header.Get("RateLimit-Policy") != `"key";q=2;w=2` {
			t.Errorf("RateLimit is %s of %s, want %s", got, header.Get("RateLimit-Policy"), want)
		}
	}
	now = 2 * time.Second
	if err := l.take(keyName{}, claim{tokens: 1}, nil); err != nil {
		t.Errorf("a full bucket refuses: %v", err)
	}
}

func TestTheSandboxOfEachApplicationHasARateOfItsOwn(t *testing.T) {
	t.Parallel()
	s := &Server{limits: newKeyLimits(1, func() time.Duration { return 0 })}
	one, other := ids.New(), ids.New()
	for i, want := range []time.Duration{0, 0, time.Second} {
		header := http.Header{}
		if got := s.LimitSandbox(one, header); got != want || header.Get("RateLimit") == "" {
			t.Errorf("request %d waits %s, want %s; %v", i, got, want, header)
		}
	}
	if got := s.LimitSandbox(other, http.Header{}); got != 0 {
		t.Errorf("another application waits %s", got)
	}
	if err := s.limits.take(keyName{app: one, key: ids.New()}, claim{tokens: 1}, nil); err != nil {
		t.Errorf("an API key of the same application waits: %v", err)
	}
}

// TestUnknownKeysAreLookedUpRarely counts what the directory is asked.
func TestUnknownKeysAreLookedUpRarely(t *testing.T) {
	t.Parallel()
	var now time.Duration
	var asked int
	stored := map[keys.Hash]bool{}
	find := func(_ context.Context, hash keys.Hash) (people.KeyAddress, error) {
		if asked++; stored[hash] {
			return people.KeyAddress{}, nil
		}
		return people.KeyAddress{}, fault.New(fault.InvalidAPIKey)
	}
	l := newKeyLookup(find, func() time.Duration { return now })
	network := netip.MustParsePrefix("192.0.2.0/24")
	unknown := keys.Hash{1}
	for range 100 {
		if _, err := l.resolve(t.Context(), unknown, network); !fault.Is(err, fault.InvalidAPIKey) {
			t.Fatalf("an unknown key is %v", err)
		}
	}
	if asked != unknownBurst {
		t.Errorf("the directory was asked %d times", asked)
	}
	now += time.Second
	for range 100 {
		_, _ = l.resolve(t.Context(), unknown, network)
	}
	if asked != unknownBurst+1 {
		t.Errorf("a second later it was asked %d times in all", asked)
	}

	t.Run("a key that was asked for before it was stored works at once", func(t *testing.T) {
		early := keys.Hash{2}
		_, _ = l.resolve(t.Context(), early, network)
		stored[early] = true
		if _, err := l.resolve(t.Context(), early, network); err != nil {
			t.Errorf("it is %v", err)
		}
	})
	t.Run("a caller that hung up is looked up all the same", func(t *testing.T) {
		l := newKeyLookup(func(ctx context.Context, _ keys.Hash) (people.KeyAddress, error) {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("the lookup has no deadline")
			}
			return people.KeyAddress{}, ctx.Err()
		}, sinceStart)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.resolve(gone, keys.Hash{3}, network); err != nil {
			t.Errorf("it is %v", err)
		}
	})
}

// TestGuessesWaitInAQueueOfTheirOwn fills the lane of networks that send unknown
// keys.
func TestGuessesWaitInAQueueOfTheirOwn(t *testing.T) {
	t.Parallel()
	guessing, honest := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")
	l := newKeyLookup(func(context.Context, keys.Hash) (people.KeyAddress, error) {
		return people.KeyAddress{}, fault.New(fault.InvalidAPIKey)
	}, func() time.Duration { return 0 })
	for i := range guessBurst {
		if _, err := l.resolve(t.Context(), keys.Hash{byte(i)}, guessing); !fault.Is(err, fault.InvalidAPIKey) {
			t.Fatalf("guess %d is %v", i, err)
		}
	}
	ctx, leave := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range guessesAtOnce + guessesWaiting {
		waiting.Go(func() {
			if l.slow.enter(ctx) == nil {
				<-ctx.Done()
				l.slow.leave()
			}
		})
	}
	for l.slow.admitted.Load() < guessesAtOnce+guessesWaiting {
		runtime.Gosched()
	}
	if _, err := l.resolve(t.Context(), keys.Hash{1, 1}, guessing); !fault.Is(err, fault.Overloaded) {
		t.Errorf("one guess too many is %v", err)
	}
	if _, err := l.resolve(t.Context(), keys.Hash{1, 1}, honest); !fault.Is(err, fault.InvalidAPIKey) {
		t.Errorf("the key of another network is %v", err)
	}
	leave()
	waiting.Wait()
	if _, err := l.resolve(t.Context(), keys.Hash{1, 2}, guessing); !fault.Is(err, fault.InvalidAPIKey) {
		t.Errorf("after the others have left it is %v", err)
	}
}
