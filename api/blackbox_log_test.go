package api_test

import (
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// logbook is what every server of the suite logs into. It keeps no lines but
// those that show something they must not, so it stays small while fuzzing.
var logbook = &watchedLog{}

// holderMark begins every identity that the suite makes up, so that one shows in
// a log in whatever form it got there.
const holderMark = "holder-"

var (
	forbiddenTexts = []string{holderMark, "psr_live_", "psr_test_", "pub_live_", "pub_test_", "Bearer", "Authorization", "Basic "}

	// secretBody is the random part of a key, with or without what stands before
	// it. Nothing else that is logged is so long without a break.
	secretBody = regexp.MustCompile(`[0-9A-Za-z]{43}`)
)

type watchedLog struct {
	mu     sync.Mutex
	lines  int
	causes int
	leaked []string
}

// Write takes one line, as slog's handlers write them.
func (w *watchedLog) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines++
	text := string(line)
	if strings.Contains(text, `"cause"`) {
		w.causes++
	}
	if shows(text) && len(w.leaked) < 5 {
		w.leaked = append(w.leaked, text)
	}
	return len(line), nil
}

func shows(line string) bool {
	for _, text := range forbiddenTexts {
		if strings.Contains(line, text) {
			return true
		}
	}
	return secretBody.MatchString(line)
}

func (w *watchedLog) leaks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leaked
}

func (w *watchedLog) counts() (lines, causes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines, w.causes
}

func newLog() *slog.Logger {
	return slog.New(slog.NewJSONHandler(logbook, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// The claim that no secret is logged is made at the end, by TestMain. This is
// the claim that it would be noticed.
func TestWatchedLog(t *testing.T) {
	t.Parallel()
	secret := mintSecret(t).Reveal()
	for name, text := range map[string]string{
		"a whole secret":            secret,
		"a secret without a prefix": strings.TrimPrefix(secret, "psr_test_"),
		"a header":                  "Authorization: x",
		"an identity":               newHolder(),
		"an identity in a path":     "/v1/wallets/" + newHolder() + "%2F",
	} {
		t.Run("notices "+name, func(t *testing.T) {
			own := &watchedLog{}
			slog.New(slog.NewJSONHandler(own, nil)).Info("request", "cause", "reading "+text+" failed")
			if len(own.leaks()) != 1 {
				t.Errorf("%q passes", text)
			}
		})
	}
	t.Run("lets the line of a request pass", func(t *testing.T) {
		own := &watchedLog{}
		slog.New(slog.NewJSONHandler(own, nil)).Info("request", "request", "req_01jb8v3k9xf6tq2m4n5p7r8s0w", "route", "/v1/wallets/:identity/billing-period")
		if leaks := own.leaks(); len(leaks) != 0 {
			t.Errorf("%q", leaks)
		}
	})
}
