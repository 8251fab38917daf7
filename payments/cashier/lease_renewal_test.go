package cashier_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/billing"
	"purser/ids"
	"purser/payments/cashier"
	"purser/store/queue"
	"purser/store/storetest"
)

func TestADeadNodesLeaseEndsBeforeACallersPatience(t *testing.T) {
	t.Parallel()
	if cashier.LeaseDuration >= cashier.LeaseWait {
		t.Errorf("a lease lasts %v, and a caller waits %v", cashier.LeaseDuration, cashier.LeaseWait)
	}
}

func TestALeaseIsRenewedWhileItsHolderWorks(t *testing.T) {
	r := shop(t)
	r.cashier.SetRenewal(time.Minute, time.Millisecond)
	r.check(r.cashier.HoldIdentity(t.Context(), r.scope, "ada", func(ctx context.Context) error {
		storetest.Lapse(t, storetest.URL(t), r.app.ID.String()) // as if the minute were over
		r.eventually("the lease is held again", func() bool {
			return r.leasesHeld() == 1
		})
		if _, taken, err := r.store.Queue(r.scope).Lease(ctx, leaseOf("ada"), ids.New(), time.Minute); taken || err != nil {
			t.Errorf("another node got the lease: %v, %v", taken, err)
		}
		return ctx.Err()
	}))
	if held := r.leasesHeld(); held != 0 {
		t.Errorf("%d leases are held after the work", held)
	}
}

func TestAHolderThatLostItsLeaseIsStopped(t *testing.T) {
	r := shop(t)
	r.cashier.SetRenewal(time.Minute, time.Millisecond)
	err := r.cashier.HoldIdentity(t.Context(), r.scope, "ada", func(ctx context.Context) error {
		r.stealLease(time.Minute)
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Minute): // the lease is renewed every millisecond
			t.Error("the holder goes on")
		}
		return errors.New("the provider did not answer")
	})
	if !errors.Is(err, queue.ErrFenced) {
		t.Errorf("the holder is told %v", err)
	}
}

// upgrades counts what is asked of the provider that costs a customer money.
type upgrades struct{ asked *atomic.Int64 }

func (u upgrades) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && strings.Contains(request.URL.Path, "/v1/subscriptions/") {
		u.asked.Add(1)
	}
	return http.DefaultTransport.RoundTrip(request)
}

// A process that was stopped for a while may wake up after its lease went to another
// node, which then charges the customer.
func TestAHolderWhoseTimeIsOverDoesNotCallTheProvider(t *testing.T) {
	r := shop(t)
	r.subscribe("basic", cardPays)
	var asked atomic.Int64
	slow := r.newCashier(func(o *cashier.Options) { o.SandboxTransport = upgrades{&asked} })
	slow.SetRenewal(time.Nanosecond, time.Hour)
	_, err := slow.Change(t.Context(), r.scope, billing.ChangeRequest{Identity: "ada", PlanKey: "pro"}, newKey())
	if err == nil || asked.Load() != 0 {
		t.Errorf("it answers %v and asked the provider for %d changes", err, asked.Load())
	}
}
