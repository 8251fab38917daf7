package pg

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// ReadyTimeout is how long a probe may take, and how long its callers wait.
	ReadyTimeout = 2 * time.Second
	// readyEvery is how long a result is good for, however many ask.
	readyEvery = time.Second
)

// Readiness shares one probe among all who ask, and logs each change of its result
// once.
type Readiness struct {
	Probe   func(context.Context) error
	Elapsed func() time.Duration // a monotonic clock
	Log     *slog.Logger

	mu      sync.Mutex
	running chan struct{} // closed when the probe under way has ended; nil for none
	probed  bool
	at      time.Duration // of the last result
	err     error
}

// errSilent is said of a probe that did not end in time.
var errSilent = &NotReady{Sentence: "the database did not answer within 2 seconds"}

// Check is the result of a probe that ended less than a second ago, or of the next.
func (r *Readiness) Check(ctx context.Context) error {
	r.mu.Lock()
	if r.running == nil && r.probed && r.Elapsed()-r.at < readyEvery {
		defer r.mu.Unlock()
		return r.err
	}
	if r.running == nil {
		r.running = make(chan struct{})
		go r.run()
	}
	running := r.running
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, ReadyTimeout)
	defer cancel()
	select {
	case <-running:
	case <-ctx.Done():
		return errSilent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *Readiness) run() {
	ctx, cancel := context.WithTimeout(context.Background(), ReadyTimeout)
	defer cancel()
	err := r.Probe(ctx)
	if err != nil && ctx.Err() != nil {
		err = &NotReady{Sentence: errSilent.Sentence, Cause: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logChange(err)
	r.err, r.probed, r.at = err, true, r.Elapsed()
	close(r.running)
	r.running = nil
}

func (r *Readiness) logChange(err error) {
	switch {
	case err != nil && (r.err == nil || Reason(r.err) != Reason(err)):
		r.Log.Error("not ready", "reason", Reason(err), "cause", errors.Unwrap(err))
	case err == nil && r.err != nil:
		r.Log.Info("ready again")
	}
}
