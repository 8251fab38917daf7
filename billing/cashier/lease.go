package cashier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
)

// The pauses between two looks at a lease that another node holds. On each node one
// waits for it, whoever else is behind them, so looking often costs little.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 50 * time.Millisecond
)

// ofIdentity names an identity without saying who it is: leases outlast the talk.
func ofIdentity(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "identity:" + hex.EncodeToString(sum[:])
}

func ofPlan(id ids.ID) string { return "plan:" + id.String() }

func ofAction(object string) string { return "action:" + object }

// withLease runs work while holding the lease, on all nodes together. Whoever
// waits longer than patience is told that something is under way.
func (c *Cashier) withLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, store.Fence) error) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// First among those of this node, who then do not all ask the database.
	unlock, err := c.locks.lock(waiting, scope.AppID.String()+" "+name)
	if err != nil {
		return busy(ctx)
	}
	defer unlock()
	fence, err := c.lease(ctx, scope, name, waiting.Done())
	if err != nil {
		return err
	}
	defer c.release(ctx, scope, fence)
	return c.renewing(ctx, scope, fence, work)
}

// lease takes the lease, unless enough comes first. It comes between two tries only:
// one that was cut off may have got the lease, which then nobody has until it runs
// out.
func (c *Cashier) lease(ctx context.Context, scope tenancy.Scope, name string, enough <-chan struct{}) (store.Fence, error) {
	holder, pause := ids.New(), shortestPause
	for {
		fence, held, err := c.options.Store.App(scope).Lease(ctx, name, holder, c.limits.lease)
		if held || err != nil {
			return fence, err
		}
		select {
		case <-enough:
			return fence, busy(ctx)
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		}
	}
}

// release gives the lease back, also when the time of its holder is over.
func (c *Cashier) release(ctx context.Context, scope tenancy.Scope, fence store.Fence) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	if err := c.options.Store.App(scope).Release(ctx, fence); err != nil {
		// It runs out by itself.
		c.options.Log.Warn("cashier: giving a lease back", "app", scope.AppID.Format(ids.Application), "cause", err)
	}
}

func busy(ctx context.Context) error {
	return errors.Join(fault.New(fault.OperationInProgress), ctx.Err())
}

// locks is one lock a name, among the goroutines of this process.
type locks struct {
	mu  sync.Mutex
	all map[string]*named
}

type named struct {
	held    chan struct{}
	waiting int // and holding
}

func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	n := l.come(name)
	select {
	case n.held <- struct{}{}:
		return func() { <-n.held; l.leave(name, n) }, nil
	case <-ctx.Done():
		l.leave(name, n)
		return nil, ctx.Err()
	}
}

// tryLock takes the lock when it is free, and does not wait for it.
func (l *locks) tryLock(name string) (unlock func(), free bool) {
	n := l.come(name)
	select {
	case n.held <- struct{}{}:
		return func() { <-n.held; l.leave(name, n) }, true
	default:
		l.leave(name, n)
		return nil, false
	}
}

func (l *locks) come(name string) *named {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*named{}
	}
	n, known := l.all[name]
	if !known {
		n = &named{held: make(chan struct{}, 1)}
		l.all[name] = n
	}
	n.waiting++
	return n
}

func (l *locks) leave(name string, n *named) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.waiting--; n.waiting == 0 {
		delete(l.all, name)
	}
}
