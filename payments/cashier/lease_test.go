package cashier_test

import (
	"context"
	"testing"

	"purser/fault"
	"purser/store/queue"
	"purser/store/storetest"
)

// The time of a caller may end at any moment of its wait, also while Postgres makes
// it wait for the lease's row.
func TestACallerWhoseTimeEndsWhileItWaitsGetsOperationInProgress(t *testing.T) {
	t.Parallel()
	r := start(t)
	lease := func(ctx context.Context) (worked bool, err error) {
		err = r.cashier.WithLease(ctx, r.scope, "identity:ada", func(context.Context, queue.Fence) error {
			worked = true
			return nil
		})
		return worked, err
	}
	_, err := lease(t.Context())
	r.check(err)
	blocked, unlock := storetest.LockLeases(t, storetest.URL(t), r.app.ID.String())
	type result struct {
		worked bool
		err    error
	}
	ended := make(chan result)
	ctx, timeIsOver := context.WithCancel(t.Context())
	go func() {
		worked, err := lease(ctx)
		ended <- result{worked, err}
	}()
	blocked()
	timeIsOver()
	unlock()
	got := <-ended
	wantFault(t, got.err, fault.OperationInProgress)
	if got.worked {
		t.Error("it did its work when its time was over")
	}
	// The lease is free at once, whether the last attempt got it or not.
	if _, held, err := r.store.Queue(r.scope).Lease(t.Context(), "identity:ada", r.app.ID, 0); !held || err != nil {
		t.Errorf("the next caller has it: %v, %v", held, err)
	}
}
