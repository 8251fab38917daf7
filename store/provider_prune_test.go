package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/storetest"
)

func TestUnneededRowsAreDeleted(t *testing.T) {
	t.Parallel()
	s := newStorefront(t, storetest.Open(t))
	owner := connect(t, storetest.URL(t))
	const day = int64(24 * 60 * 60 * 1000)
	now := time.Now().UnixMilli()
	event := func(id string, age int64) {
		t.Helper()
		noError(t, s.Accounts().ReceiveEvent(t.Context(), s.connection.ID, payments.WebhookEvent{ID: id, Type: "invoice.paid", Object: "in_1", Outcome: "queued"}, nil))
		exec(t, owner, `UPDATE webhook_events SET id = $3 WHERE app_id = $1 AND event_id = $2`, s.application.ID, id, store.IDAt(now-age*day))
	}
	lease := func(name string, age int64) (f queue.Fence) {
		t.Helper()
		f, _, err := s.Queue().Lease(t.Context(), name, ids.New(), time.Hour)
		noError(t, err)
		if age > 0 {
			noError(t, s.Queue().Release(t.Context(), f))
			exec(t, owner, `UPDATE leases SET held_until = held_until - $3::bigint WHERE app_id = $1 AND name = $2`, s.application.ID, name, age*day)
		}
		return f
	}
	prune := func() {
		t.Helper()
		for more := true; more; {
			var err error
			more, err = s.Prune(t.Context(), 1)
			noError(t, err)
		}
	}
	for _, age := range []int64{95, 92, 91} {
		event(fmt.Sprint("evt_old_", age), age)
	}
	event("evt_known", 89)
	event("evt_new", 0)
	old := lease("identity:old", 8)
	lease("identity:older", 30)
	lease("identity:recent", 6)
	held := lease("identity:held", 0)

	prune()
	if kept := texts(t, owner, `SELECT event_id FROM webhook_events WHERE app_id = $1 ORDER BY id DESC`, s.application.ID); !slices.Equal(kept, []string{"evt_new", "evt_known"}) {
		t.Errorf("kept %q", kept)
	}
	if names := texts(t, owner, `SELECT name FROM leases WHERE app_id = $1 AND name LIKE 'identity:%' ORDER BY name`, s.application.ID); !slices.Equal(names, []string{"identity:held", "identity:recent"}) {
		t.Errorf("there are the leases %q", names)
	}
	if _, taken, err := s.Queue().Lease(t.Context(), "identity:held", ids.New(), time.Hour); taken || err != nil {
		t.Errorf("a held one was let go of: %v, %v", held, err)
	}

	t.Run("and the number of a lease that is created again is higher than before", func(t *testing.T) {
		if again := lease("identity:old", 0); again.Number <= old.Number {
			t.Errorf("%d follows %d", again.Number, old.Number)
		}
	})
}
