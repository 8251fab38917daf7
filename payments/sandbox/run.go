package sandbox

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/payments/sandbox/engine"
)

const (
	// pollInterval is how often the store is polled for due accounts.
	pollInterval = time.Second
	// maxDue is how many applications are woken in one poll.
	maxDue = 100
	// maxConcurrentApps is how many applications are woken concurrently: one with a slow
	// receiver does not delay the others.
	maxConcurrentApps = 4
)

// Run fires due timers and delivers webhooks of all accounts until the context ends.
// Any number of nodes may run it.
func (s *Server) Run(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		var apps []ids.ID
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.dirty.signal:
			apps = s.dirty.drain()
		case <-ticker.C:
			due, err := s.options.Accounts.Due(ctx, s.realNow(), maxDue)
			if err != nil {
				s.options.Log.Warn("sandbox due accounts not read", "cause", err)
				continue
			}
			apps = due
		}
		s.wakeAll(ctx, apps)
	}
}

func (s *Server) wakeAll(ctx context.Context, apps []ids.ID) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentApps)
	for _, app := range apps {
		group.Go(func() error {
			if err := s.Wake(ctx, app); err != nil && ctx.Err() == nil {
				s.options.Log.Warn("sandbox account not woken, will retry", "app", app.Format(ids.Application), "cause", err)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are logged above
}

// Wake fires the due timers of the application's account and delivers its webhooks.
func (s *Server) Wake(ctx context.Context, app ids.ID) error {
	err := s.update(ctx, app, func(*engine.Account, engine.Env) error { return nil })
	if err != nil {
		return err
	}
	return s.Flush(ctx, app)
}

// dirtyApps are the applications with due timers or deliveries.
type dirtyApps struct {
	mu      sync.Mutex
	waiting map[ids.ID]bool
	signal  chan struct{}
}

func (d *dirtyApps) add(app ids.ID) {
	d.mu.Lock()
	d.waiting[app] = true
	d.mu.Unlock()
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

func (d *dirtyApps) drain() []ids.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	apps := slices.Collect(maps.Keys(d.waiting))
	clear(d.waiting)
	return apps
}
