package httpd

import (
	"context"
	"sync"
	"time"
)

// Detach gives a request its own deadline. A client that disconnects does not cancel its
// queries: pgx closes the connection of a cancelled query, so disconnects could exhaust
// the pool.
//
// The timer starts with the first call of Done. A usage event that finds everything in
// the caches only passes its deadline on, and needs none.
func Detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	d := &detached{Context: context.WithoutCancel(ctx), deadline: time.Now().Add(limit)}
	return d, d.end
}

// detached is a context with a deadline whose timer is made when it is needed. The
// embedded context has the values and is never done.
type detached struct {
	context.Context
	deadline time.Time

	mu     sync.Mutex
	ended  bool
	timed  context.Context // nil until Done is called
	cancel context.CancelFunc
}

func (d *detached) Deadline() (time.Time, bool) { return d.deadline, true }

func (d *detached) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.deadline)
		if d.ended {
			d.cancel()
		}
	}
	return d.timed.Done()
}

// Value lets contexts derived from this one find the timed context, which cancels them
// without a goroutine for each.
func (d *detached) Value(key any) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed != nil {
		return d.timed.Value(key)
	}
	return d.Context.Value(key)
}

func (d *detached) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.timed != nil:
		return d.timed.Err()
	case d.ended:
		return context.Canceled
	case !time.Now().Before(d.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

func (d *detached) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.cancel != nil {
		d.cancel()
	}
}
