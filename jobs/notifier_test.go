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
}
