package store_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/fault"
	"purser/store"
	"purser/store/storetest"
)

// TestAnOrganizationLeavesConnectionsToOthers has reads of one organization wait for a lock
// with all connections that it may have: another's go on.
func TestAnOrganizationLeavesConnectionsToOthers(t *testing.T) {
	t.Parallel()
	const conns, share = 4, 3
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{MaxConns: conns})
	noError(t, err)
	t.Cleanup(db.Close)
	slow, other := newTenant(t, db), newTenant(t, db)
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `LOCK TABLE subscriptions IN ACCESS EXCLUSIVE MODE`)
	var reading errgroup.Group
	for range 2 * conns {
		reading.Go(func() error {
			_, err := slow.Payments().Subscription(t.Context(), "ann")
			return err
		})
	}
	watch := connect(t, url)
	most := 0
	waiting := func() int {
		most = max(most, waitingFor(t, watch, "subscriptions"))
		return most
	}
	soon(t, "all of its connections wait", func() bool { return waiting() >= share })
	for range 50 {
		waiting()
	}
	if most > share {
		t.Errorf("%d reads of one organization have a connection", most)
	}
	if _, err := other.Feature(t.Context(), "message"); !fault.Is(err, fault.FeatureNotFound) {
		t.Errorf("another organization's read: %v", err)
	}
	ended, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if _, err := slow.Feature(ended, "message"); !fault.Is(err, fault.Overloaded) {
		t.Errorf("a further read gets %v", err)
	}
	noError(t, lock.Rollback(t.Context()))
	_ = reading.Wait() // none has a subscription
}
