package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
)

// keyName names a key in a node's memory. Ids of keys are unique within their
// application only.
type keyName struct{ app, key ids.ID }

// keyLimits bounds the requests a second of each key. It is asked before the key
// is read, so a refusal costs no database work.
type keyLimits struct {
	buckets *buckets[keyName] // nil for no limit
	policy  []string
}

func newKeyLimits(perSecond float64, now func() time.Duration) *keyLimits {
	if perSecond == 0 {
		return &keyLimits{}
	}
	burst := int64(math.Ceil(2 * perSecond))
	interval := max(1, time.Duration(float64(time.Second)/perSecond))
	window := int64(math.Ceil(float64(burst) / perSecond))
	return &keyLimits{
		buckets: newBuckets[keyName](interval, burst, now),
		policy:  []string{`"key";q=` + strconv.FormatInt(burst, 10) + ";w=" + strconv.FormatInt(window, 10)},
	}
}

// take takes a token of the key and says in the reply's header what is left, as
// the IETF's draft on RateLimit headers has it.
func (l *keyLimits) take(key keyName, header http.Header) error {
	if l.buckets == nil {
		return nil
	}
	is := l.buckets.take(key)
	if header != nil {
		text := append(make([]byte, 0, 32), `"key";r=`...)
		text = strconv.AppendInt(text, is.left, 10)
		text = append(text, ";t="...)
		text = strconv.AppendInt(text, int64(math.Ceil(is.full.Seconds())), 10)
		header["Ratelimit-Policy"], header["Ratelimit"] = l.policy, []string{string(text)}
	}
	if is.refuse > 0 {
		return &waitError{fault.New(fault.RateLimited), is.refuse}
	}
	return nil
}

// LimitSandbox takes a token of the application's sandbox key: it has the rate of one
// API key, and a bucket of its own. It gives how long to wait when there was no token.
func (s *Server) LimitSandbox(app ids.ID, header http.Header) time.Duration {
	var w *waitError
	if errors.As(s.limits.take(keyName{app: app}, header), &w) {
		return w.wait
	}
	return 0
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
