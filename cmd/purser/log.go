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
	// logDelay is how long a line may be buffered.
	logDelay = 200 * time.Millisecond
)

// logWriter buffers lines, so that a request does not cost a system call. Warnings and
// errors are flushed at once.
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
	w.log = slog.New(collapse{Handler: flushOnWarning{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}), w}, repeats: w.repeats})
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

// Write buffers one line.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}

func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Flush() // a failing log cannot be reported
}

func (w *logWriter) close() {
	close(w.stop)
	<-w.done
}

// flushOnWarning is a handler that flushes after warnings and errors.
type flushOnWarning struct {
	slog.Handler
	writer *logWriter
}

func (p flushOnWarning) Handle(ctx context.Context, r slog.Record) error {
	err := p.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		p.writer.flush()
	}
	return err
}

func (p flushOnWarning) WithAttrs(attrs []slog.Attr) slog.Handler {
	return flushOnWarning{p.Handler.WithAttrs(attrs), p.writer}
}

func (p flushOnWarning) WithGroup(name string) slog.Handler {
	return flushOnWarning{p.Handler.WithGroup(name), p.writer}
}
