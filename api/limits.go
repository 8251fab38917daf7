package api

import (
	"errors"
	"math"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"purser/fault"
	"purser/ids"
)

// limitedKeys is how many keys a node keeps a bucket for. The bucket of a key
// that falls out was not used for long, so it was full anyway.
const limitedKeys = 10_000

// keyLimits holds a bucket of tokens for each key.
type keyLimits struct {
	perSecond rate.Limit
	burst     int
	buckets   *lru.Cache[ids.ID, *rate.Limiter]
}

func newKeyLimits(perSecond float64) (*keyLimits, error) {
	buckets, err := lru.New[ids.ID, *rate.Limiter](limitedKeys)
	if err != nil {
		return nil, err
	}
	return &keyLimits{perSecond: rate.Limit(perSecond), burst: int(math.Ceil(2 * perSecond)), buckets: buckets}, nil
}

// take takes a token of the key, or says how long until there is one.
func (l *keyLimits) take(key ids.ID) error {
	if l.perSecond == 0 {
		return nil
	}
	bucket, found := l.buckets.Get(key)
	if !found {
		// Of two requests that come first at once, one bucket wins.
		fresh := rate.NewLimiter(l.perSecond, l.burst)
		if bucket, found, _ = l.buckets.PeekOrAdd(key, fresh); !found {
			bucket = fresh
		}
	}
	token := bucket.Reserve()
	if wait := token.Delay(); wait > 0 {
		token.Cancel()
		return &waitError{fault.New(fault.RateLimited), wait}
	}
	return nil
}

// waitError is a refusal that knows when to come back.
type waitError struct {
	*fault.Fault
	wait time.Duration
}

func (w *waitError) Unwrap() error { return w.Fault }

// retryAfter is how many whole seconds to wait, at least one.
func retryAfter(err error) int {
	var w *waitError
	if errors.As(err, &w) {
		return max(1, int(math.Ceil(w.wait.Seconds())))
	}
	return 1
}
