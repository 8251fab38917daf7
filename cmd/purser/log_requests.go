package main

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// defaultRequestLines is how many requests per second are logged: every request
	// during a trial, and less than half a gigabyte a day on a busy server.
	defaultRequestLines = 10
	maxRequestLines     = 1_000_000
	// skippedInterval is how often the number of requests that were not logged is
	// logged.
	skippedInterval = time.Minute
)

// requestLog decides which requests are logged. Server errors always are, and are
// collapsed like other errors.
type requestLog struct {
	successes, refusals requestClass
	reported            time.Time
}

// requestClass limits the lines per second of successes or of refusals, so that neither
// hides the other.
type requestClass struct {
	limit   int64 // lines a second
	second  atomic.Int64
	used    atomic.Int64
	skipped atomic.Int64
}

// parseRequestLog parses PURSER_LOG_REQUESTS.
func parseRequestLog(value string) (successes, refusals int64, err error) {
	switch value {
	case "all":
		return maxRequestLines, maxRequestLines, nil
	case "errors":
		return 0, defaultRequestLines, nil
	case "none":
		return 0, 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || n > maxRequestLines {
		return 0, 0, errors.New("must be all, errors, none or a number of requests per second from 1 to a million")
	}
	return n, n, nil
}

func newRequestLog(successes, refusals int64) *requestLog {
	l := &requestLog{}
	l.successes.limit, l.refusals.limit = successes, refusals
	return l
}

// admits reports whether a request with this status is logged.
func (l *requestLog) admits(status int, now time.Time) bool {
	switch {
	case status >= http.StatusInternalServerError:
		return true
	case status >= http.StatusBadRequest:
		return l.refusals.admits(now)
	default:
		return l.successes.admits(now)
	}
}

func (c *requestClass) admits(now time.Time) bool {
	switch c.limit {
	case 0:
		return false
	case maxRequestLines:
		return true
	}
	second := now.Unix()
	if before := c.second.Load(); before != second && c.second.CompareAndSwap(before, second) {
		c.used.Store(0)
	}
	if c.used.Add(1) <= c.limit {
		return true
	}
	c.skipped.Add(1)
	return false
}

// report logs how many requests were not logged, once per interval, or at once if now is
// the zero time. Only one goroutine may call it.
func (l *requestLog) report(now time.Time, log *slog.Logger) {
	if l.reported.IsZero() {
		l.reported = now
	}
	if !now.IsZero() && now.Sub(l.reported) < skippedInterval {
		return
	}
	l.reported = now
	successes, refusals := l.successes.skipped.Swap(0), l.refusals.skipped.Swap(0)
	if successes+refusals > 0 {
		log.Info("requests not logged", "successes", successes, "refusals", refusals, "setting", "PURSER_LOG_REQUESTS")
	}
}
