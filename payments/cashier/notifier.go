package cashier

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/tenancy"
)

// maxConcurrentApps is how many applications a node drains at once.
const maxConcurrentApps = 4

// Notify says that the application may have due jobs. It is only a hint: the jobs are
// in the queue, and a sweep finds them without it.
func (c *Cashier) Notify(scope tenancy.Scope) { c.notifier.notify(scope) }

// runNotified drains the applications that are notified on this node.
func (c *Cashier) runNotified(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(maxConcurrentApps)
	defer func() { _ = group.Wait() }() // errors are logged by each
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
					c.options.Log.Warn("queue drain failed", "app", scope.AppID.Format(ids.Application), "cause", err)
				}
				if more && err == nil {
					c.Notify(scope)
				}
				return nil
			})
		}
	}
}

// notifier is the set of notified applications. One that is being drained waits until
// that ends, so that it never takes more than one worker.
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

// takeReady removes and returns the applications that can be drained now. The caller
// must call done for each.
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
