package delivery

import (
	"context"
	"sync"
	"time"

	"purser/ids"
)

// pollInterval is how often a waiting reader looks for what other nodes have numbered.
const pollInterval = time.Second

// hub wakes the readers of feeds that wait on this node.
type hub struct {
	mu      sync.Mutex
	waiting map[ids.ID]chan struct{} // closed by the next numbering
}

func newHub() *hub { return &hub{waiting: map[ids.ID]chan struct{}{}} }

// numbered is closed when this node numbers notifications of the application.
func (h *hub) numbered(app ids.ID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[app] == nil {
		h.waiting[app] = make(chan struct{})
	}
	return h.waiting[app]
}

func (h *hub) wake(app ids.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if signal := h.waiting[app]; signal != nil {
		close(signal)
		delete(h.waiting, app)
	}
}

// Wait calls read until it finds something, the time is over or stop is closed. It reads
// after each numbering of this node, and once a second for those of others.
func (d *Dispatcher) Wait(ctx context.Context, app ids.ID, longest time.Duration, stop <-chan struct{}, read func(context.Context) (found bool, err error)) error {
	deadline := time.NewTimer(longest)
	defer deadline.Stop()
	for {
		signal := d.hub.numbered(app) // before the read: nothing falls between
		if found, err := read(ctx); found || err != nil {
			return err
		}
		poll := time.NewTimer(pollInterval)
		select {
		case <-signal:
		case <-poll.C:
		case <-deadline.C:
			poll.Stop()
			return nil
		case <-stop:
			poll.Stop()
			return nil
		case <-ctx.Done():
			poll.Stop()
			return ctx.Err()
		}
		poll.Stop()
	}
}
