package sandbox_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79"
	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/payments/sandbox"
	"purser/payments/sandbox/persist"
	"purser/payments/sandbox/sandboxtest"
)

// concurrency counts calls that are in progress together.
type concurrency struct {
	inside, most atomic.Int64
	first        sync.Once
	hold         func() // called by the first call
}

func (c *concurrency) enter() (leave func()) {
	for now := c.inside.Add(1); ; {
		if was := c.most.Load(); now <= was || c.most.CompareAndSwap(was, now) {
			break
		}
	}
	if c.hold != nil {
		c.first.Do(c.hold)
	}
	return func() { c.inside.Add(-1) }
}

// watchedAccounts counts concurrent changes and reads. The store takes a connection for
// each, and has four for the sandboxes of all applications.
type watchedAccounts struct {
	sandboxtest.Memory
	updates, views concurrency
}

func (w *watchedAccounts) Update(ctx context.Context, app ids.ID, want persist.Want, change func(persist.Session) (persist.Change, error)) error {
	defer w.updates.enter()()
	return w.Memory.Update(ctx, app, want, change)
}

func (w *watchedAccounts) View(ctx context.Context, app ids.ID, want persist.Want, read func(persist.Session) error) error {
	defer w.views.enter()()
	return w.Memory.View(ctx, app, want, read)
}

// sendTogether sends requests of one application; the first call that is counted waits
// until all of them have arrived.
func (r *harness) sendTogether(calls *concurrency, send func() error) {
	r.Helper()
	const requests = 10
	arrived := make(chan struct{}, requests)
	calls.hold = func() {
		for range requests {
			<-arrived
		}
	}
	r.onAdmits = func() { arrived <- struct{}{} }
	var group errgroup.Group
	for range requests {
		group.Go(send)
	}
	must(r, group.Wait())
}

func TestChangesOfOneAccountUseOneConnection(t *testing.T) {
	t.Parallel()
	accounts := &watchedAccounts{}
	r := startWith(t, "2026-03-10", accounts)
	r.sendTogether(&accounts.updates, func() error {
		_, err := r.api.Customers.New(&stripe.CustomerParams{})
		return err
	})
	if most := accounts.updates.most.Load(); most != 1 {
		t.Errorf("%d changes of one account were stored at once", most)
	}
}

func TestReadsOfOneAccountUseTwoConnections(t *testing.T) {
	t.Parallel()
	accounts := &watchedAccounts{}
	r := startWith(t, "2026-03-10", accounts)
	r.sendTogether(&accounts.views, func() error {
		_, err := r.api.Accounts.Get()
		return err
	})
	if most := accounts.views.most.Load(); most > 2 {
		t.Errorf("%d reads of one account ran at once", most)
	}
}

// Every webhook that arrives, signed or not, asks for the secrets.
func TestSecretsAreReadWithoutChangingTheAccount(t *testing.T) {
	t.Parallel()
	accounts := &watchedAccounts{}
	r := startWith(t, "2026-03-10", accounts)
	r.subscribe(r.price(2900), cardPays)
	r.passRealTime(40 * 24 * time.Hour) // timers are due
	accounts.updates.most.Store(0)
	got := ok[sandbox.Connection](t)(r.server.Connect(t.Context(), r.app, webhookURL, []string{"*"}))
	if got.WebhookSecret != r.secret || accounts.updates.most.Load() != 0 {
		t.Errorf("secret %s, want %s; the account was changed: %t", got.WebhookSecret, r.secret, accounts.updates.most.Load() != 0)
	}
}
