package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
)

// keyName identifies a key in the caches of a node: key ids are unique only within their
// application.
type keyName struct{ app, key ids.ID }

// keyLimits limits the request rate of each key. It runs before the key is read, so a
// refusal costs no database work.
type keyLimits struct {
	buckets *httpd.Buckets[keyName] // nil for no limit
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
		buckets: httpd.NewBuckets[keyName](interval, burst, now),
		policy:  []string{`"key";q=` + strconv.FormatInt(burst, 10) + ";w=" + strconv.FormatInt(window, 10)},
	}
}

// take removes tokens and sets the RateLimit headers of the IETF draft.
func (l *keyLimits) take(key keyName, c httpd.Claim, header http.Header) error {
	if l.buckets == nil {
		return nil
	}
	level := l.buckets.Take(key, c)
	if header != nil {
		text := append(make([]byte, 0, 32), `"key";r=`...)
		text = strconv.AppendInt(text, level.Left, 10)
		text = append(text, ";t="...)
		text = strconv.AppendInt(text, int64(math.Ceil(level.Full.Seconds())), 10)
		header["Ratelimit-Policy"], header["Ratelimit"] = l.policy, []string{string(text)}
	}
	if level.Refuse > 0 {
		return &httpd.WaitError{Fault: fault.New(fault.RateLimited), Wait: level.Refuse}
	}
	return nil
}

// LimitSandbox removes a token from the bucket of the application's sandbox key, which
// has the rate of one API key. It returns how long to wait, or 0 if there was a token.
func (s *Server) LimitSandbox(app ids.ID, header http.Header) time.Duration {
	if w, ok := errors.AsType[*httpd.WaitError](s.limits.take(keyName{app: app}, httpd.Claim{Tokens: 1}, header)); ok {
		return w.Wait
	}
	return 0
}

// Lookup bounds the lookup of a secret of another API with those of keys.
func (s *Server) Lookup(r *http.Request, kind, secret string, find func(context.Context) (known bool, err error)) (known bool, err error) {
	return s.lookups.Find(r.Context(), httpd.Secret{Kind: kind, Hash: sha256.Sum256([]byte(secret))}, s.networkOf(r), find)
}

// CountReply counts a reply of another API with those of the application's own.
func (s *Server) CountReply(app ids.ID, size int64) (sent func(), err error) {
	return s.unsent.EnterReply(app, size)
}
