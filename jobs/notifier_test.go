package jobs

import (
	"slices"
	"testing"

	"purser/ids"
	"purser/tenancy"
)

// However many jobs an application has, and however often it is notified, the others
// get their turn.
func TestOneApplicationNeverTakesMoreThanItsTurn(t *testing.T) {
	t.Parallel()
	busy, other := target{scope: tenancy.Scope{AppID: ids.New()}}, target{scope: tenancy.Scope{AppID: ids.New()}}

	t.Run("a queue is not drained twice at once", func(t *testing.T) {
		w := newNotifier()
		w.notify(busy)
		if got := w.takeReady(); !slices.Equal(got, []target{busy}) {
			t.Fatalf("took %v", got)
		}
		w.notify(busy)
		w.notify(other)
		if got := w.takeReady(); !slices.Equal(got, []target{other}) {
			t.Errorf("took %v while it was drained", got)
		}
		<-w.signal
		w.done(other)
		w.done(busy)
		select {
		case <-w.signal:
		default:
			t.Error("no signal says that it can be drained again")
		}
		if got := w.takeReady(); !slices.Equal(got, []target{busy}) {
			t.Errorf("took %v after the drain", got)
		}
	})

	t.Run("a lane that is full leaves the others alone, and goes by the order", func(t *testing.T) {
		w := newNotifier()
		var slow []target
		for range maxConcurrentApps + 2 {
			slow = append(slow, target{scope: tenancy.Scope{AppID: ids.New()}, lane: "slow"})
			w.notify(slow[len(slow)-1])
		}
		w.notify(other)
		if got := w.takeReady(); !slices.Equal(got, append(slices.Clone(slow[:maxConcurrentApps]), other)) {
			t.Fatalf("took %d", len(got))
		}
		w.notify(busy)
		if got := w.takeReady(); !slices.Equal(got, []target{busy}) {
			t.Fatalf("took %v beside a full lane", got)
		}
		<-w.signal
		w.done(slow[3])
		select {
		case <-w.signal:
		default:
			t.Error("no signal says that the lane has room")
		}
		w.notify(slow[3])
		if got := w.takeReady(); !slices.Equal(got, slow[maxConcurrentApps:maxConcurrentApps+1]) {
			t.Errorf("took %v after the drain", got)
		}
	})
}
