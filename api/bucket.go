package api

import (
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// bucketsKept is the capacity of one set of buckets. An evicted bucket has not been used
// for long, so it was full.
const bucketsKept = 10_000

// buckets is a rate limiter with one token bucket per key.
type buckets[K comparable] struct {
	interval time.Duration // to refill one token
	burst    int64         // tokens in a full bucket
	now      func() time.Duration
	kept     *lru.Cache[K, *bucket]
}

// bucket is a token bucket as one number (GCRA): the time at which it is full.
type bucket struct{ fullAt atomic.Int64 }

// claim is what a request takes from a bucket.
type claim struct {
	tokens int64
	held   int64 // tokens that the request took before, and that are among these
	most   int64 // tokens that the request may turn out to need
}

// level is the state of a bucket after a request.
type level struct {
	left   int64         // whole tokens
	full   time.Duration // until the bucket is full
	refuse time.Duration // until there are enough tokens, for a request that got none
}

// newBuckets requires a monotonic clock.
func newBuckets[K comparable](interval time.Duration, burst int64, now func() time.Duration) *buckets[K] {
	kept, err := lru.New[K, *bucket](bucketsKept)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &buckets[K]{interval: interval, burst: burst, now: now, kept: kept}
}

// take removes tokens from the key's bucket, all of them or none, in place of those that
// are held. A refused request keeps the held ones spent: it was read. More tokens than fit
// the bucket need a full one, and the rest is owed: until it is paid, the bucket stays
// empty.
func (b *buckets[K]) take(key K, c claim) level {
	own, found := b.kept.Get(key)
	if !found {
		fresh := &bucket{}
		if own, found, _ = b.kept.PeekOrAdd(key, fresh); !found {
			own = fresh // of two concurrent first requests, one adds the bucket
		}
	}
	now := b.now()
	for {
		was := own.fullAt.Load()
		full := max(time.Duration(was)-now, 0)
		rest := max(full-time.Duration(c.held)*b.interval, 0) // once the held tokens are returned
		if rest > b.fullWith(c.tokens) {
			return level{left: b.left(full), full: full, refuse: full - b.fullWith(max(c.tokens, c.most))}
		}
		rest += time.Duration(c.tokens) * b.interval
		if own.fullAt.CompareAndSwap(was, int64(now+rest)) {
			return level{left: b.left(rest), full: rest}
		}
	}
}

// fullWith is how long a bucket that has these tokens takes to be full.
func (b *buckets[K]) fullWith(tokens int64) time.Duration {
	return time.Duration(b.burst-min(tokens, b.burst)) * b.interval
}

// left is how many whole tokens a bucket has that is full after this time.
func (b *buckets[K]) left(full time.Duration) int64 {
	return int64(max(0, b.fullWith(0)-full) / b.interval)
}

// isEmpty reports whether the key has no token left.
func (b *buckets[K]) isEmpty(key K) bool {
	own, found := b.kept.Get(key)
	return found && time.Duration(own.fullAt.Load())-b.now() > b.fullWith(1)
}

// sinceStart is the time since the process started, on the monotonic clock.
func sinceStart() time.Duration { return time.Since(started) }

var started = time.Now()
