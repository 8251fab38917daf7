package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	logBuffer = 64 << 10
	// How old a line may be before it is written.
	logDelay = 200 * time.Millisecond
)

// logWriter gathers lines, so that a request does not cost a system call for its
// line. Warnings and errors are written at once.
type logWriter struct {
	mu       sync.Mutex
	out      *bufio.Writer
	requests *requestLog
	repeats  *repeats
	log      *slog.Logger
	stop     chan struct{}
	done     chan struct{}
}

func newLogWriter(out io.Writer, level slog.Level, requests *requestLog) *logWriter {
	w := &logWriter{
		out: bufio.NewWriterSize(out, logBuffer), requests: requests, repeats: newRepeats(time.Now),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	w.log = slog.New(collapse{Handler: promptly{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), w}, repeats: w.repeats})
	go w.tick()
	return w
}

func (w *logWriter) tick() {
	defer close(w.done)
	ticker := time.NewTicker(logDelay)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			w.repeats.report(now)
			w.requests.report(now, w.log)
			w.flush()
		case <-w.stop:
			w.repeats.report(time.Time{})
			w.requests.report(time.Time{}, w.log)
			w.flush()
			return
		}
	}
}

// Write takes one line.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}

func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Flush() // a log that cannot be written cannot say so
}

func (w *logWriter) close() {
	close(w.stop)
	<-w.done
}

// promptly is a handler that does not keep bad news waiting.
type promptly struct {
	slog.Handler
	writer *logWriter
}

func (p promptly) Handle(ctx context.Context, r slog.Record) error {
	err := p.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		p.writer.flush()
	}
	return err
}

func (p promptly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return promptly{p.Handler.WithAttrs(attrs), p.writer}
}

func (p promptly) WithGroup(name string) slog.Handler {
	return promptly{p.Handler.WithGroup(name), p.writer}
}
