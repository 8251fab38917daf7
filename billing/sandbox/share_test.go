package sandbox_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stripe/stripe-go/v79"
	"golang.org/x/sync/errgroup"

	"purser/billing/sandbox/persist"
	"purser/billing/sandbox/sandboxtest"
	"purser/ids"
)

// oneAtATime counts the changes that are inside of Update together.
type oneAtATime struct {
	sandboxtest.Memory
	inside, most atomic.Int64
	first        sync.Once
	meet         func() // called by the first change
}

func (d *oneAtATime) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	d.most.Store(max(d.most.Load(), d.inside.Add(1)))
	defer d.inside.Add(-1)
	if d.meet != nil {
		d.first.Do(d.meet)
	}
	return d.Memory.Update(ctx, app, want, change)
}

// The store takes a connection for each change, and has few of them for the sandbox.
func TestChangesOfOneAccountUseOneConnection(t *testing.T) {
	t.Parallel()
	const requests = 10
	accounts := &oneAtATime{}
	r := startWith(t, "2026-03-10", accounts)
	arrived := make(chan struct{}, requests)
	accounts.meet = func() { // holds the account until every request has come
		for range requests {
			<-arrived
		}
	}
	r.onAdmits = func() { arrived <- struct{}{} }
	var group errgroup.Group
	for range requests {
		group.Go(func() error {
			_, err := r.api.Customers.New(&stripe.CustomerParams{})
			return err
		})
	}
	must(t, group.Wait())
	if limit := accounts.most.Load(); limit != 1 {
		t.Errorf("%d changes of one account were stored at once", limit)
	}
}
