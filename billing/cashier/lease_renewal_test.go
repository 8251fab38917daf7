package cashier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"purser/billing/cashier"
	"purser/ids"
	"purser/store"
	"purser/store/storetest"
)

func TestADeadNodesLeaseEndsBeforeACallersPatience(t *testing.T) {
	t.Parallel()
	if cashier.LeaseTime >= cashier.Patience {
		t.Errorf("a lease lasts %v, and a caller waits %v", cashier.LeaseTime, cashier.Patience)
	}
}

func TestALeaseIsRenewedWhileItsHolderWorks(t *testing.T) {
	r := shop(t)
	r.cashier.SetRenewal(time.Minute, time.Millisecond)
	r.check(r.cashier.HoldIdentity(t.Context(), r.scope, "ada", func(ctx context.Context) error {
		storetest.Lapse(t, storetest.URL(t), r.app.ID.String()) // as if the minute were over
		r.eventually("the lease is held again", func() bool {
			return storetest.LeasesHeld(t, storetest.URL(t), r.app.ID.String()) == 1
		})
		if _, taken, err := r.store.App(r.scope).Lease(ctx, leaseOf("ada"), ids.New(), time.Minute); taken || err != nil {
			t.Errorf("another node got the lease: %v, %v", taken, err)
		}
		return ctx.Err()
	}))
	if held := storetest.LeasesHeld(t, storetest.URL(t), r.app.ID.String()); held != 0 {
		t.Errorf("%d leases are held after the work", held)
	}
}

func TestAHolderThatLostItsLeaseIsStopped(t *testing.T) {
	r := shop(t)
	r.cashier.SetRenewal(time.Minute, time.Millisecond)
	err := r.cashier.HoldIdentity(t.Context(), r.scope, "ada", func(ctx context.Context) error {
		r.eventually("another holder has the lease", func() bool {
			storetest.Lapse(t, storetest.URL(t), r.app.ID.String())
			_, taken, err := r.store.App(r.scope).Lease(t.Context(), leaseOf("ada"), ids.New(), time.Minute)
			r.check(err)
			return taken
		})
		<-ctx.Done()
		return errors.New("the provider did not answer")
	})
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("the holder is told %v", err)
	}
}
