package httpd

import (
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// bucketsKept is the capacity of one set of buckets. An evicted bucket has not been used
// for long, so it was full.
const bucketsKept = 10_000

// Buckets is a rate limiter with one token bucket per key.
type Buckets[K comparable] struct {
	interval time.Duration // to refill one token
	burst    int64         // tokens in a full bucket
	now      func() time.Duration
	kept     *lru.Cache[K, *bucket]
}

// bucket is a token bucket as one number (GCRA): the time at which it is full.
type bucket struct{ fullAt atomic.Int64 }

// Claim is what a request takes from a bucket.
type Claim struct {
	Tokens int64
	Held   int64 // tokens that the request took before, and that are among these
	Most   int64 // tokens that the request may turn out to need
}

// Level is the state of a bucket after a request.
type Level struct {
	Left   int64         // whole tokens
	Full   time.Duration // until the bucket is full
	Refuse time.Duration // until there are enough tokens, for a request that got none
}

// NewBuckets requires a monotonic clock.
func NewBuckets[K comparable](interval time.Duration, burst int64, now func() time.Duration) *Buckets[K] {
	kept, err := lru.New[K, *bucket](bucketsKept)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &Buckets[K]{interval: interval, burst: burst, now: now, kept: kept}
}

// Take removes tokens from the key's bucket, all of them or none, in place of those that
// are held. A refused request keeps the held ones spent: it was read. More tokens than fit
// the bucket need a full one, and the rest is owed: until it is paid, the bucket stays
// empty.
func (b *Buckets[K]) Take(key K, c Claim) Level {
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
		rest := max(full-time.Duration(c.Held)*b.interval, 0) // once the held tokens are returned
		if rest > b.fullWith(c.Tokens) {
			return Level{Left: b.left(full), Full: full, Refuse: full - b.fullWith(max(c.Tokens, c.Most))}
		}
		rest += time.Duration(c.Tokens) * b.interval
		if own.fullAt.CompareAndSwap(was, int64(now+rest)) {
			return Level{Left: b.left(rest), Full: rest}
		}
	}
}

// fullWith is how long a bucket that has these tokens takes to be full.
func (b *Buckets[K]) fullWith(tokens int64) time.Duration {
	return time.Duration(b.burst-min(tokens, b.burst)) * b.interval
}

// left is how many whole tokens a bucket has that is full after this time.
func (b *Buckets[K]) left(full time.Duration) int64 {
	return int64(max(0, b.fullWith(0)-full) / b.interval)
}

// IsEmpty reports whether the key has no token left.
func (b *Buckets[K]) IsEmpty(key K) bool {
	own, found := b.kept.Get(key)
	return found && time.Duration(own.fullAt.Load())-b.now() > b.fullWith(1)
}

// SinceStart is the time since the process started, on the monotonic clock.
func SinceStart() time.Duration { return time.Since(started) }

var started = time.Now()
