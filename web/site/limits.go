package site

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// keysRemembered is how many keys a Limits counts for; the one unused longest is dropped.
const keysRemembered = 10_000

// Limits counts by key, such as a network: a burst is allowed at once, and again after
// the period. Each node counts its own. It is safe for concurrent use.
type Limits[K comparable] struct {
	limiters *lru.Cache[K, *rate.Limiter]
	burst    int
	period   time.Duration
}

func NewLimits[K comparable](burst int, period time.Duration) *Limits[K] {
	limiters, err := lru.New[K, *rate.Limiter](keysRemembered)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &Limits[K]{limiters: limiters, burst: burst, period: period}
}

// Allow counts one, in milliseconds since 1970.
func (l *Limits[K]) Allow(key K, now int64) bool {
	limiter, known := l.limiters.Get(key)
	if !known {
		limiter = rate.NewLimiter(rate.Every(l.period/time.Duration(l.burst)), l.burst)
		if earlier, raced, _ := l.limiters.PeekOrAdd(key, limiter); raced {
			limiter = earlier
		}
	}
	return limiter.AllowN(time.UnixMilli(now), 1)
}
