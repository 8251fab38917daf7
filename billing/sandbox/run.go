package sandbox

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/billing/sandbox/engine"
	"purser/ids"
)

const (
	// pollInterval is how often the documents are asked what has come due.
	pollInterval = time.Second
	// maxDue is how many applications are woken in one look.
	maxDue = 100
	// maxConcurrentApps is how many applications are served at once: one with a slow
	// receiver does not keep the others waiting.
	maxConcurrentApps = 4
)

// Run lets time pass in every world and delivers webhooks, until the context
// ends. Any number of nodes may run it.
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
				s.options.Log.Warn("sandbox: asking what is due", "cause", err)
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
				s.options.Log.Warn("sandbox: waking an application", "app", app.Format(ids.Application), "cause", err)
			}
			return nil
		})
	}
	_ = group.Wait() // each error has been told
}

// Wake lets happen what has come due in the application's world, and delivers
// its webhooks.
func (s *Server) Wake(ctx context.Context, app ids.ID) error {
	err := s.update(ctx, app, func(*engine.Account, engine.Env) error { return nil })
	if err != nil {
		return err
	}
	return s.Flush(ctx, app)
}

// dirtyApps are those whose worlds have something to deliver.
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
	apps := make([]ids.ID, 0, len(d.waiting))
	for app := range d.waiting {
		apps = append(apps, app)
	}
	clear(d.waiting)
	return apps
}
