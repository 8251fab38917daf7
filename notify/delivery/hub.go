package delivery

import (
	"context"
	"sync"
	"time"

	"purser/ids"
	"purser/tenancy"
)

// pollInterval is how often the waiting readers of one feed ask for what other nodes have
// numbered: one reader for all.
const pollInterval = time.Second

// hub wakes the readers of feeds that wait on this node.
type hub struct {
	mu   sync.Mutex
	apps map[ids.ID]*watch
}

// watch is a feed that readers wait for.
type watch struct {
	readers  int
	numbered chan struct{} // closed by the next numbering
	last     int64         // the highest number that was found
	polling  bool          // one of the readers asks for a higher one
	polledAt time.Time
}

func newHub() *hub { return &hub{apps: map[ids.ID]*watch{}} }

func (h *hub) enter(app ids.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.apps[app] == nil {
		h.apps[app] = &watch{numbered: make(chan struct{})}
	}
	h.apps[app].readers++
}

func (h *hub) leave(app ids.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.apps[app].readers--; h.apps[app].readers == 0 {
		delete(h.apps, app)
	}
}

// numbered is closed when notifications of the application have been numbered.
func (h *hub) numbered(app ids.ID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.apps[app].numbered
}

func (h *hub) wake(app ids.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.apps[app]; w != nil {
		w.wake()
	}
}

func (w *watch) wake() {
	close(w.numbered)
	w.numbered = make(chan struct{})
}

// poll wakes the readers when there is a higher number than any found before. They
// have asked for the signal before they read, so a number that they missed wakes them.
func (h *hub) poll(app ids.ID, last func() (int64, error)) error {
	h.mu.Lock()
	w := h.apps[app]
	if w.polling || time.Since(w.polledAt) < pollInterval/2 {
		h.mu.Unlock()
		return nil
	}
	w.polling = true
	h.mu.Unlock()
	found, err := last()
	h.mu.Lock()
	defer h.mu.Unlock()
	w.polling, w.polledAt = false, time.Now()
	if found > w.last {
		w.last = found
		w.wake()
	}
	return err
}

// Wait calls read until it finds something, the time is over or stop is closed. It reads
// after each numbering, of which those of other nodes are noticed within seconds.
func (d *Dispatcher) Wait(ctx context.Context, scope tenancy.Scope, longest time.Duration, stop <-chan struct{}, read func(context.Context) (found bool, err error)) error {
	deadline, poll := time.NewTimer(longest), time.NewTicker(pollInterval)
	defer deadline.Stop()
	defer poll.Stop()
	d.hub.enter(scope.AppID)
	defer d.hub.leave(scope.AppID)
	for {
		signal := d.hub.numbered(scope.AppID) // before the read: nothing falls between
		if found, err := read(ctx); found || err != nil {
			return err
		}
		for woken := false; !woken; {
			select {
			case <-signal:
				woken = true
			case <-poll.C:
				err := d.hub.poll(scope.AppID, func() (int64, error) { return d.options.Store.Notifications(scope).Last(ctx) })
				if err != nil {
					return err
				}
			case <-deadline.C:
				return nil
			case <-stop:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
