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
	mu   sync.Mutex
	out  *bufio.Writer
	stop chan struct{}
	done chan struct{}
}

func newLogWriter(out io.Writer) *logWriter {
	w := &logWriter{out: bufio.NewWriterSize(out, logBuffer), stop: make(chan struct{}), done: make(chan struct{})}
	go w.tick()
	return w
}

func (w *logWriter) tick() {
	defer close(w.done)
	ticker := time.NewTicker(logDelay)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.flush()
		case <-w.stop:
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

// logger writes JSON lines through the writer.
func (w *logWriter) logger() *slog.Logger {
	return slog.New(promptly{slog.NewJSONHandler(w, nil), w})
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
