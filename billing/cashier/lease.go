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
	minPollInterval = 5 * time.Millisecond
	maxPollInterval = 50 * time.Millisecond
	// leaseAttemptTimeout bounds one attempt to take a lease. It is longer than the store's
	// limits for a lock and for a statement: only a database that does not answer
	// reaches it.
	leaseAttemptTimeout = 10 * time.Second
)

// identityLease names an identity without saying who it is: leases outlast the talk.
func identityLease(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "identity:" + hex.EncodeToString(sum[:])
}

func planLease(id ids.ID) string { return "plan:" + id.String() }

func actionLease(object string) string { return "action:" + object }

// withLease runs work while holding the lease, on all nodes together. A caller that
// does not get it, because patience or its own time is over, is told that an
// operation is in progress.
func (c *Cashier) withLease(ctx context.Context, scope tenancy.Scope, name string, work func(context.Context, store.Fence) error) error {
	waiting, cancel := context.WithTimeout(ctx, c.limits.leaseWait)
	defer cancel()
	// First among those of this node, who then do not all ask the database.
	unlock, err := c.locks.lock(waiting, scope.AppID.String()+" "+name)
	if err != nil {
		return errBusy(ctx)
	}
	defer unlock()
	fence, asked, err := c.lease(waiting, scope, name)
	if err != nil {
		return err
	}
	defer c.release(ctx, scope, fence)
	if ctx.Err() != nil { // the caller's time ended with the last attempt
		return errBusy(ctx)
	}
	return c.runRenewing(ctx, scope, fence, asked, work)
}

// lease polls the lease until it gets it or waiting ends, at least once, and says when
// it asked for the one that it got. The end of
// waiting cuts no attempt short: one that was cut short may have committed, and then
// nothing releases the lease before it expires.
func (c *Cashier) lease(waiting context.Context, scope tenancy.Scope, name string) (fence store.Fence, asked time.Time, err error) {
	holder, pause := ids.New(), minPollInterval
	for {
		asked := time.Now()
		fence, held, err := c.tryLease(waiting, scope, name, holder)
		if held || err != nil {
			return fence, asked, err
		}
		select {
		case <-waiting.Done():
			return store.Fence{}, asked, errBusy(waiting)
		case <-time.After(pause):
			pause = min(2*pause, maxPollInterval)
		}
	}
}

func (c *Cashier) tryLease(ctx context.Context, scope tenancy.Scope, name string, holder ids.ID) (store.Fence, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseAttemptTimeout)
	defer cancel()
	return c.options.Store.App(scope).Lease(ctx, name, holder, c.limits.lease)
}

// release gives the lease back, also when the time of its holder is over.
func (c *Cashier) release(ctx context.Context, scope tenancy.Scope, fence store.Fence) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.cleanup)
	defer cancel()
	if err := c.options.Store.App(scope).Release(ctx, fence); err != nil {
		// It runs out by itself.
		c.options.Log.Warn("cashier: giving a lease back", "app", scope.AppID.Format(ids.Application), "cause", err)
	}
}

func errBusy(ctx context.Context) error {
	return errors.Join(fault.New(fault.OperationInProgress), ctx.Err())
}

// locks is one lock a name, among the goroutines of this process.
type locks struct {
	mu  sync.Mutex
	all map[string]*namedLock
}

type namedLock struct {
	held    chan struct{}
	waiting int // and holding
}

// lock waits for the lock. It takes one that is free, also when ctx is done.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	if unlock, free := l.tryLock(name); free {
		return unlock, nil
	}
	n := l.ref(name)
	select {
	case n.held <- struct{}{}:
		return func() { <-n.held; l.unref(name, n) }, nil
	case <-ctx.Done():
		l.unref(name, n)
		return nil, ctx.Err()
	}
}

// tryLock takes the lock when it is free, and does not wait for it.
func (l *locks) tryLock(name string) (unlock func(), free bool) {
	n := l.ref(name)
	select {
	case n.held <- struct{}{}:
		return func() { <-n.held; l.unref(name, n) }, true
	default:
		l.unref(name, n)
		return nil, false
	}
}

func (l *locks) ref(name string) *namedLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*namedLock{}
	}
	n, known := l.all[name]
	if !known {
		n = &namedLock{held: make(chan struct{}, 1)}
		l.all[name] = n
	}
	n.waiting++
	return n
}

func (l *locks) unref(name string, n *namedLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.waiting--; n.waiting == 0 {
		delete(l.all, name)
	}
}
