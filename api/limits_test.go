package api

import (
	"net/http"
	"testing"
	"time"

	"purser/httpd"
	"purser/ids"
)

func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	var now time.Duration
	l := newKeyLimits(1, func() time.Duration { return now })
	for _, want := range []string{`"key";r=1;t=1`, `"key";r=0;t=2`, `"key";r=0;t=2`} {
		header := http.Header{}
		_ = l.take(keyName{}, httpd.Claim{Tokens: 1}, header)
		if got := header.Get("RateLimit"); got != want || header.Get("RateLimit-Policy") != `"key";q=2;w=2` {
			t.Errorf("RateLimit is %s of %s, want %s", got, header.Get("RateLimit-Policy"), want)
		}
	}
	now = 2 * time.Second
	if err := l.take(keyName{}, httpd.Claim{Tokens: 1}, nil); err != nil {
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
	if err := s.limits.take(keyName{app: one, key: ids.New()}, httpd.Claim{Tokens: 1}, nil); err != nil {
		t.Errorf("an API key of the same application waits: %v", err)
	}
}
