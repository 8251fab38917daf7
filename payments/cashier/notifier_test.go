package cashier

import (
	"slices"
	"testing"

	"purser/ids"
	"purser/tenancy"
)

// However much there is to do for one application, and however often it is woken,
// the others get their turn.
func TestOneApplicationNeverTakesMoreThanItsTurn(t *testing.T) {
	t.Parallel()
	busy, other := tenancy.Scope{AppID: ids.New()}, tenancy.Scope{AppID: ids.New()}

	t.Run("one that is visited is not visited again meanwhile", func(t *testing.T) {
		w := newNotifier()
		w.notify(busy)
		if got := w.takeReady(); !slices.Equal(got, []tenancy.Scope{busy}) {
			t.Fatalf("took %v", got)
		}
		w.notify(busy)
		w.notify(other)
		if got := w.takeReady(); !slices.Equal(got, []tenancy.Scope{other}) {
			t.Errorf("took %v while it was visited", got)
		}
		<-w.signal
		w.done(other)
		w.done(busy)
		select {
		case <-w.signal:
		default:
			t.Error("nobody is told that it can be visited again")
		}
		if got := w.takeReady(); !slices.Equal(got, []tenancy.Scope{busy}) {
			t.Errorf("took %v after the visit", got)
		}
	})
	t.Run("nobody waits for a queue that somebody is at", func(t *testing.T) {
		c := &Cashier{}
		unlock, err := c.locks.lock(t.Context(), queueLock(busy))
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if more, err := c.tryDrain(t.Context(), busy); more || err != nil {
			t.Errorf("the visit gave %v, %v", more, err)
		}
	})
	t.Run("the lock is free again after a try", func(t *testing.T) {
		var l locks
		unlock, free := l.tryLock("queue")
		if !free {
			t.Fatal("the lock is not free")
		}
		if _, again := l.tryLock("queue"); again {
			t.Error("it was had twice")
		}
		unlock()
		if _, free := l.tryLock("queue"); !free || len(l.all) != 1 {
			t.Errorf("free %v, with %d names", free, len(l.all))
		}
	})
}
