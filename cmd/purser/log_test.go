package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// logged is the lines of a log, read as the machine-readable lines that they are.
func logged(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var read map[string]any
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, read)
	}
	return lines
}

func TestRepeatedErrorsAreCollapsed(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	newLog := func() (*slog.Logger, *repeats, *bytes.Buffer) {
		var out bytes.Buffer
		r := newRepeats(func() time.Time { return start })
		return slog.New(collapse{Handler: slog.NewJSONHandler(&out, nil), repeats: r}), r, &out
	}

	t.Run("an outage is one line at once and one for each interval", func(t *testing.T) {
		t.Parallel()
		log, r, out := newLog()
		for i := range 5000 {
			log.Error("request failed", "request", fmt.Sprint("req_", i), "cause", fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.1:5432: connection reset by peer", 40000+i))
		}
		if lines := logged(t, out.String()); len(lines) != 1 || lines[0]["request"] != "req_0" {
			t.Fatalf("at once: %v", lines)
		}
		r.report(start.Add(repeatInterval - 1))
		if lines := logged(t, out.String()); len(lines) != 1 {
			t.Fatalf("before the interval is over: %v", lines)
		}
		r.report(start.Add(repeatInterval))
		if lines := logged(t, out.String()); len(lines) != 2 || lines[1]["repeated"] != 4999.0 || lines[1]["request"] != "req_4999" || lines[1]["level"] != "ERROR" {
			t.Fatalf("after the interval: %v", lines)
		}
		log.Error("request failed", "request", "req_last", "cause", errors.New("read tcp 127.0.0.1:1->127.0.0.1:5432: connection reset by peer"))
		r.report(time.Time{})
		if lines := logged(t, out.String()); len(lines) != 3 || lines[2]["repeated"] != 1.0 {
			t.Errorf("at the end: %v", lines)
		}
	})
	t.Run("a cause that has gone is written at once when it comes back", func(t *testing.T) {
		t.Parallel()
		log, r, out := newLog()
		log.Warn("not ready", "cause", errors.New("gone"))
		r.report(start.Add(repeatInterval))
		log.Warn("not ready", "cause", errors.New("gone"))
		if lines := logged(t, out.String()); len(lines) != 2 || lines[1]["repeated"] != nil {
			t.Errorf("%v", lines)
		}
	})
	t.Run("lines about different things stay apart", func(t *testing.T) {
		t.Parallel()
		log, _, out := newLog()
		log.Error("request failed", "cause", errors.New("deadlock detected"))
		log.Error("request failed", "cause", errors.New("disk full"))
		log.Warn("request failed", "cause", errors.New("disk full"))
		log.Warn("sign-in refused", "address", "192.0.2.1")
		log.Warn("sign-in refused", "address", "192.0.2.2")
		log.Error("request", "route", "/v1/events", "status", 500)
		log.Error("request", "route", "/v1/check", "status", 500)
		log.Error("request", "route", "/v1/check", "status", 503)
		log.With("node", "a").Error("request", "route", "/v1/check", "status", 503)
		log.Info("request")
		log.Info("request")
		if lines := logged(t, out.String()); len(lines) != 11 {
			t.Errorf("%d lines: %v", len(lines), lines)
		}
	})
	t.Run("the number of distinct lines is bounded", func(t *testing.T) {
		t.Parallel()
		log, r, out := newLog()
		const messages = 2 * maxRepeats / maxOfMessage
		for n := range messages {
			for i := range maxOfMessage {
				log.Warn(fmt.Sprint("message ", n), "address", fmt.Sprint(i))
			}
		}
		if lines := logged(t, out.String()); len(lines) > maxRepeats+messages || len(r.seen) > maxRepeats+messages {
			t.Errorf("%d lines, %d remembered", len(lines), len(r.seen))
		}
		r.report(start.Add(repeatInterval)) // writes those that repeated
		r.report(start.Add(2 * repeatInterval))
		if len(r.seen)+len(r.ofMessage) > 0 {
			t.Errorf("%d lines of %d messages are remembered", len(r.seen), len(r.ofMessage))
		}
	})
	t.Run("many lines with one message hide no other", func(t *testing.T) {
		t.Parallel()
		log, _, out := newLog()
		for i := range maxRepeats + 500 {
			log.Warn("sign-in refused", "address", fmt.Sprint(i))
		}
		log.Warn("access refused", "user", "usr_1")
		log.Warn("access refused", "user", "usr_2")
		if lines := logged(t, out.String()); len(lines) != maxOfMessage+1+2 {
			t.Errorf("%d lines", len(lines))
		}
	})
	t.Run("a cancelled context is no error", func(t *testing.T) {
		t.Parallel()
		log, _, out := newLog()
		log.Error("request failed", "cause", fmt.Errorf("store: %w", context.Canceled))
		if lines := logged(t, out.String()); len(lines) != 1 || lines[0]["level"] != "INFO" {
			t.Errorf("%v", lines)
		}
	})
}

func TestRequestLinesAreLimited(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	count := func(setting string, status, seconds int) (lines int) {
		t.Helper()
		var c config
		if err := c.setLogRequests(setting); err != nil {
			t.Fatal(err)
		}
		l := newRequestLog(c.logSuccesses, c.logRefusals)
		for s := range seconds {
			for range 1500 {
				if l.admits(status, now.Add(time.Duration(s)*time.Second)) {
					lines++
				}
			}
		}
		return lines
	}
	for _, c := range []struct {
		setting string
		status  int
		want    int
	}{
		{"10", 201, 20}, {"10", 429, 20}, {"10", 500, 3000},
		{"all", 201, 3000}, {"all", 429, 3000},
		{"errors", 201, 0}, {"errors", 401, 20}, {"errors", 500, 3000},
		{"none", 201, 0}, {"none", 401, 0}, {"none", 503, 3000},
	} {
		if got := count(c.setting, c.status, 2); got != c.want {
			t.Errorf("PURSER_LOG_REQUESTS=%s writes %d lines for 3000 requests in two seconds with status %d, not %d", c.setting, got, c.status, c.want)
		}
	}

	t.Run("refusals do not hide successes", func(t *testing.T) {
		l := newRequestLog(1, 1)
		if !l.admits(401, now) || l.admits(401, now) || !l.admits(200, now) || l.admits(200, now) {
			t.Error("they share a limit")
		}
	})
	t.Run("requests without a line are counted once a minute and at the end", func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, nil))
		l := newRequestLog(1, 1)
		for range 5 {
			l.admits(200, now)
			l.admits(409, now)
		}
		l.report(now, log)
		l.report(now.Add(skippedInterval-1), log)
		if out.Len() > 0 {
			t.Errorf("too early: %s", out.String())
		}
		l.report(now.Add(skippedInterval), log)
		l.admits(200, now)
		l.report(time.Time{}, log)
		lines := logged(t, out.String())
		if len(lines) != 2 || lines[0]["successes"] != 4.0 || lines[0]["refusals"] != 4.0 || lines[1]["successes"] != 1.0 {
			t.Errorf("%v", lines)
		}
	})
	t.Run("the level is a setting", func(t *testing.T) {
		var out bytes.Buffer
		w := newLogWriter(&out, slog.LevelWarn, newRequestLog(1, 1))
		w.log.Info("quiet")
		w.log.Warn("loud")
		w.log.Warn("loud")
		w.close()
		if lines := logged(t, out.String()); len(lines) != 2 || lines[0]["msg"] != "loud" || lines[1]["repeated"] != 1.0 {
			t.Errorf("%v", lines)
		}
	})
}
