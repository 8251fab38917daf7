package delivery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/store/notifications"
)

// TestReadersThatWaitShareTheirLooks has requests that wait for three seconds: on its own, each would
// read every second.
func TestReadersThatWaitShareTheirLooks(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	r.announce()
	var reads atomic.Int64
	var group errgroup.Group
	const readers = 8
	for range readers {
		group.Go(func() error {
			return r.dispatcher.Wait(t.Context(), r.scope, 3500*time.Millisecond, nil, func(context.Context) (bool, error) {
				reads.Add(1)
				return false, nil
			})
		})
	}
	noError(t, group.Wait())
	// One when it begins, and one because a number is found that may be new.
	if n := reads.Load(); n > 2*readers {
		t.Errorf("%d readers read %d times", readers, n)
	}
}

func TestReadersAreWokenByNumbersOfOtherNodes(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	app := r.db.Notifications(r.scope)
	for range 2 {
		last, err := app.Last(t.Context())
		noError(t, err)
		begun := make(chan struct{}, 1)
		ended := make(chan error, 1)
		found := false
		go func() {
			ended <- r.dispatcher.Wait(t.Context(), r.scope, time.Minute, nil, func(ctx context.Context) (bool, error) {
				page, err := app.Feed(ctx, notifications.Query{After: last, Limit: 1})
				select {
				case begun <- struct{}{}:
				default:
				}
				found = len(page.Notifications) > 0
				return found, err
			})
		}()
		<-begun
		r.announce()
		noError(t, <-ended)
		if !found {
			t.Fatal("the wait ended without the notification")
		}
	}
}

// announce makes a notification, which another node numbers.
func (r *harness) announce() {
	r.Helper()
	r.deposit()
	_, err := r.db.Notifications(r.scope).Number(r.Context(), r.time().UnixMilli())
	noError(r, err)
}
