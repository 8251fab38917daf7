package delivery_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"purser/ids"
	"purser/notify"
	"purser/store/notifications"
	"purser/store/queue"
	"purser/store/storetest"
)

// first is the id of the oldest notification.
func (r *harness) first() ids.ID {
	r.Helper()
	page, err := r.db.Notifications(r.scope).Feed(r.Context(), notifications.Query{After: -1, Limit: 1})
	noError(r, err)
	return page.Notifications[0].ID
}

// delivery is the only delivery of a notification.
func (r *harness) delivery(id ids.ID) notifications.Delivery {
	r.Helper()
	h, err := r.db.Notifications(r.scope).History(r.Context(), id, 1)
	noError(r, err)
	if len(h.Deliveries) != 1 {
		r.Fatalf("%d deliveries", len(h.Deliveries))
	}
	return h.Deliveries[0].Delivery
}

// A receiver that refuses one notification for ever is down for days first.
func TestADeliveryOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	var works atomic.Bool
	var refused atomic.Value
	hooks := newReceiver(t, func(_ int, w http.ResponseWriter, request *http.Request) {
		id := request.Header.Get(notify.HeaderID)
		refused.CompareAndSwap(nil, id)
		if !works.Load() || id == refused.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	e, _ := r.endpoint(hooks.URL)
	r.deposit()
	r.drain()
	for began := r.time(); r.time().Sub(began) < 100*time.Hour; {
		r.advance(2 * time.Hour)
		r.drain()
	}
	id := r.first()
	before := r.delivery(id)
	if before.Status != notify.Pending || before.Attempts < notify.MaxAttempts {
		t.Fatalf("after the outage it is %s with %d attempts", before.Status, before.Attempts)
	}
	works.Store(true)
	// retry has another one accepted, and then the refused one tried again.
	retry := func() {
		r.deposit()
		r.drain()
		r.advance(30 * time.Hour)
		r.drain()
	}
	for n := 1; n < notify.MaxAttempts-1; n++ {
		retry()
		if d := r.delivery(id); d.Status != notify.Pending || d.Attempts != before.Attempts+n {
			t.Fatalf("after %d attempts at an endpoint that works it is %s with %d", n, d.Status, d.Attempts)
		}
	}
	retry()
	if d := r.delivery(id); d.Status != notify.Failed {
		t.Errorf("it is never given up: %+v", d)
	}
	t.Run("and starts over when it is requested", func(t *testing.T) {
		_, err := r.db.Notifications(r.scope).Redeliver(t.Context(), id, e.ID, r.time().UnixMilli())
		noError(t, err)
		r.drain()
		retry()
		if d := r.delivery(id); d.Status != notify.Pending || d.Attempts < 2 {
			t.Errorf("it is %s after %d attempts", d.Status, d.Attempts)
		}
	})
}

// Five days in which nothing was sent say nothing about a receiver.
func TestTimeWithoutAnAttemptDoesNotPauseAnEndpoint(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]string{
		"while the server was down": "",
		"while its jobs failed": `UPDATE work_queue SET tries = 9, last_error = 'failed', failing_since = due_at, due_at = $2
			WHERE app_id = $1 AND kind = 'webhook'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, nil)
			hooks := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			e, _ := r.endpoint(hooks.URL)
			r.deposit()
			r.drain()
			r.pass(e.ID, 24*time.Hour)
			r.advance(notify.PauseAfter)
			if fail != "" {
				storetest.Exec(t, storetest.URL(t), fail, r.scope.AppID, r.time().UnixMilli())
			}
			sent := len(hooks.all())
			r.pass(e.ID, notify.PauseAfter-4*24*time.Hour)
			if stored := r.stored(e.ID); stored.Status != notify.Enabled || len(hooks.all()) == sent {
				t.Fatalf("after %d and %d attempts it is %s", sent, len(hooks.all())-sent, stored.Status)
			}
			r.pass(e.ID, notify.PauseAfter)
			if stored := r.stored(e.ID); stored.Status != notify.Paused {
				t.Errorf("after five days of attempts it is %s", stored.Status)
			}
		})
	}
}

// A receiver that keeps its attempts waiting fails all the while, although its job is asked
// for again during each run, as every search for due deliveries does.
func TestAttemptsOfABacklogAreNoTimeWithoutAny(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	var endpoint ids.ID
	hooks := newReceiver(t, func(_ int, w http.ResponseWriter, request *http.Request) {
		r.advance(10 * time.Second)
		job := queue.Job{Kind: queue.JobDelivery, Object: endpoint.Format(ids.WebhookEndpoint), DueAt: r.time().UnixMilli()}
		if err := r.db.Queue(r.scope).Enqueue(request.Context(), job); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	e, _ := r.endpoint(hooks.URL)
	endpoint = e.ID
	r.deposit()
	r.drain()
	since := r.stored(e.ID).FailingSince
	for range 30 {
		r.deposit()
	}
	r.drain()
	if stored := r.stored(e.ID); len(hooks.all()) < 30 || since == 0 || stored.FailingSince != since {
		t.Errorf("after %d attempts it fails since %s later", len(hooks.all()), time.Duration(stored.FailingSince-since)*time.Millisecond)
	}
}
