package cashier

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/tenancy"
)

// maxAwake is how many applications are worked for at once on a node.
const maxAwake = 4

// Wake says that there may be something to do for the application. It is a hint,
// and costs nothing: what is to be done is on the queue, and found there anyway.
func (c *Cashier) Wake(scope tenancy.Scope) { c.awake.mark(scope) }

// attendAll works for applications as they are woken on this node.
func (c *Cashier) attendAll(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(maxAwake)
	defer func() { _ = group.Wait() }() // each error has been told
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.awake.signal:
		}
		for _, scope := range c.awake.take() {
			group.Go(func() error {
				defer c.awake.done(scope)
				more, err := c.visit(ctx, scope)
				if err != nil && ctx.Err() == nil {
					c.options.Log.Warn("cashier: working for an application", "app", scope.AppID.Format(ids.Application), "cause", err)
				}
				if more && err == nil {
					c.Wake(scope)
				}
				return nil
			})
		}
	}
}

// wakes are the applications that somebody has woken. One that is being visited
// waits until that is over, so that it never takes more than its own turn.
type wakes struct {
	mu      sync.Mutex
	waiting map[tenancy.Scope]bool
	visited map[tenancy.Scope]bool
	signal  chan struct{}
}

func newWakes() *wakes {
	return &wakes{waiting: map[tenancy.Scope]bool{}, visited: map[tenancy.Scope]bool{}, signal: make(chan struct{}, 1)}
}

func (w *wakes) mark(scope tenancy.Scope) {
	w.mu.Lock()
	w.waiting[scope] = true
	w.mu.Unlock()
	w.ring()
}

// take gives those that can be visited now. Each has to be done at some time.
func (w *wakes) take() []tenancy.Scope {
	w.mu.Lock()
	defer w.mu.Unlock()
	var scopes []tenancy.Scope
	for scope := range w.waiting {
		if w.visited[scope] {
			continue
		}
		delete(w.waiting, scope)
		w.visited[scope] = true
		scopes = append(scopes, scope)
	}
	return scopes
}

func (w *wakes) done(scope tenancy.Scope) {
	w.mu.Lock()
	delete(w.visited, scope)
	again := w.waiting[scope]
	w.mu.Unlock()
	if again {
		w.ring()
	}
}

func (w *wakes) ring() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
