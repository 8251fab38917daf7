package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// repeatInterval is how often a repeated warning or error is written.
	repeatInterval = 30 * time.Second
	// maxRepeats bounds the distinct lines of one interval, and maxOfMessage those with one
	// message, so that many of one leave room for others. Beyond it, lines with the same
	// message share one entry, whatever their attributes.
	maxRepeats   = 1000
	maxOfMessage = 100
)

// repeats collapses warnings and errors with the same cause: the first is written at
// once, then one line per interval with the number of repetitions.
type repeats struct {
	mu        sync.Mutex
	now       func() time.Time
	seen      map[string]*repeated
	ofMessage map[string]int
}

type repeated struct {
	since   time.Time
	message string
	count   int
	last    slog.Record
	to      slog.Handler
}

func newRepeats(now func() time.Time) *repeats {
	return &repeats{now: now, seen: map[string]*repeated{}, ofMessage: map[string]int{}}
}

// isFirst counts a record and reports whether to write it.
func (r *repeats) isFirst(key, message string, record slog.Record, to slog.Handler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[key] == nil && (len(r.seen) >= maxRepeats || r.ofMessage[message] >= maxOfMessage) {
		key = message
	}
	e := r.seen[key]
	if e == nil {
		if len(r.seen) < 2*maxRepeats { // beyond that the messages differ, and each is written
			r.seen[key] = &repeated{since: r.now(), message: message, to: to}
			r.ofMessage[message]++
		}
		return true
	}
	e.count++
	e.last, e.to = record.Clone(), to
	return false
}

// report writes the counts of intervals that ended by now, or all of them if now is the
// zero time.
func (r *repeats) report(now time.Time) {
	r.mu.Lock()
	var due []repeated
	for key, e := range r.seen {
		if !now.IsZero() && now.Sub(e.since) < repeatInterval {
			continue
		}
		if e.count == 0 {
			delete(r.seen, key)
			if r.ofMessage[e.message]--; r.ofMessage[e.message] == 0 {
				delete(r.ofMessage, e.message)
			}
			continue
		}
		due = append(due, *e)
		*e = repeated{since: now, message: e.message, to: e.to}
	}
	r.mu.Unlock()
	for _, e := range due {
		e.last.AddAttrs(slog.Int("repeated", e.count))
		_ = e.to.Handle(context.Background(), e.last) // a failing log cannot be reported
	}
}

// collapse is a handler that counts repeated warnings and errors.
type collapse struct {
	slog.Handler
	repeats *repeats
	bound   string // attributes bound to the logger
}

func (c collapse) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && cancelled(r) {
		r.Level = slog.LevelInfo
		if !c.Handler.Enabled(ctx, r.Level) {
			return nil
		}
	}
	if r.Level < slog.LevelWarn {
		return c.Handler.Handle(ctx, r)
	}
	message := r.Level.String() + " " + r.Message
	key := strings.Builder{}
	key.WriteString(message)
	key.WriteString(c.bound)
	r.Attrs(func(a slog.Attr) bool {
		key.WriteString(causeKey(a))
		return true
	})
	if !c.repeats.isFirst(key.String(), message, r, c.Handler) {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// cancelled reports a record whose cause is a cancelled context: a client disconnected
// or the server stops. Neither is a server error.
func cancelled(r slog.Record) (found bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		found = is && errors.Is(err, context.Canceled)
		return !found
	})
	return found
}

// causeKey identifies the cause of an attribute. Ids and measurements differ in every
// line and are ignored, and so are words with digits in error texts: ports, ids and
// addresses.
func causeKey(a slog.Attr) string {
	switch a.Key {
	case "request", "trace", "key", "ms":
		return ""
	case "status":
		return " status=" + a.Value.String()
	}
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		if a.Key == "cause" || a.Key == "error" {
			return " " + a.Key + "=" + wordsWithDigits.ReplaceAllString(v.String(), "#")
		}
		return " " + a.Key + "=" + strconv.Quote(v.String())
	case slog.KindAny:
		return " " + a.Key + "=" + wordsWithDigits.ReplaceAllString(fmt.Sprint(v.Any()), "#")
	default:
		return ""
	}
}

var wordsWithDigits = regexp.MustCompile(`[A-Za-z_-]*[0-9][0-9A-Za-z_-]*`)

// WithAttrs implements slog.Handler.
func (c collapse) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		c.bound += causeKey(a)
	}
	c.Handler = c.Handler.WithAttrs(attrs)
	return c
}

// WithGroup implements slog.Handler.
func (c collapse) WithGroup(name string) slog.Handler {
	c.bound += " " + name + "."
	c.Handler = c.Handler.WithGroup(name)
	return c
}
