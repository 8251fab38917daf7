package cashier

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/tenancy"
)

// maxConcurrentApps is how many applications are worked for at once on a node.
const maxConcurrentApps = 4

// Notify says that there may be something to do for the application. It is a hint,
// and costs nothing: what is to be done is on the queue, and found there anyway.
func (c *Cashier) Notify(scope tenancy.Scope) { c.notifier.notify(scope) }

// runNotified works for applications as they are woken on this node.
func (c *Cashier) runNotified(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(maxConcurrentApps)
	defer func() { _ = group.Wait() }() // each error has been told
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.notifier.signal:
		}
		for _, scope := range c.notifier.takeReady() {
			group.Go(func() error {
				defer c.notifier.done(scope)
				more, err := c.tryDrain(ctx, scope)
				if err != nil && ctx.Err() == nil {
					c.options.Log.Warn("cashier: working for an application", "app", scope.AppID.Format(ids.Application), "cause", err)
				}
				if more && err == nil {
					c.Notify(scope)
				}
				return nil
			})
		}
	}
}

// notifier are the applications that somebody has woken. One that is being visited
// waits until that is over, so that it never takes more than its own turn.
type notifier struct {
	mu      sync.Mutex
	waiting map[tenancy.Scope]bool
	running map[tenancy.Scope]bool
	signal  chan struct{}
}

func newNotifier() *notifier {
	return &notifier{waiting: map[tenancy.Scope]bool{}, running: map[tenancy.Scope]bool{}, signal: make(chan struct{}, 1)}
}

func (n *notifier) notify(scope tenancy.Scope) {
	n.mu.Lock()
	n.waiting[scope] = true
	n.mu.Unlock()
	n.sendSignal()
}

// takeReady gives those that can be visited now. Each has to be done at some time.
func (n *notifier) takeReady() []tenancy.Scope {
	n.mu.Lock()
	defer n.mu.Unlock()
	var scopes []tenancy.Scope
	for scope := range n.waiting {
		if n.running[scope] {
			continue
		}
		delete(n.waiting, scope)
		n.running[scope] = true
		scopes = append(scopes, scope)
	}
	return scopes
}

func (n *notifier) done(scope tenancy.Scope) {
	n.mu.Lock()
	delete(n.running, scope)
	again := n.waiting[scope]
	n.mu.Unlock()
	if again {
		n.sendSignal()
	}
}

func (n *notifier) sendSignal() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}
