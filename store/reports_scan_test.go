package store_test

import (
	"slices"
	"testing"

	"purser/ids"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// Thousands of events within seconds, of which the figures know nothing: of the hour
// they are in, or of any hour.
func TestEventsInABurst(t *testing.T) {
	t.Parallel()
	t.Run("inside of an hour", func(t *testing.T) {
		t.Parallel()
		eventsInABurst(t, 0)
	})
	t.Run("between two hours", func(t *testing.T) {
		t.Parallel()
		eventsInABurst(t, 3_600_000)
	})
}

// eventsInABurst lists what has come in a burst, before and after which the clock of
// the application moves on by so much.
func eventsInABurst(t *testing.T, pause int64) {
	url := storetest.FreshURL(t)
	s := newKiosk(t, openStore(t, url))
	owner := connect(t, url)
	s.newFeature(t, featureOf("rare", "tokens"))
	s.deposit(t, depositOf("ann", "tokens", 1_000_000, "burst"))
	track := func(feature string, ago int64) ids.ID {
		use := s.use("ann", 1)
		use.FeatureKey, use.TransactionID = feature, shifted(ids.New(), -ago)
		s.now += pause
		_, err := s.usage.Track(use)
		noError(t, err)
		return use.TransactionID
	}
	const hour, burst = 3_600_000, 60_000
	rare := track("rare", 5*hour)
	before := track("messages", 3*hour)
	exec(t, owner, `INSERT INTO usage_events (app_id, org_id, tx_id, wallet_id, key_id, seq, price_number, quantity, created_at,
			amount_nanocredits, balance_after, event_id)
		SELECT w.app_id, w.org_id, (substr(replace($2::uuid::text, '-', ''), 1, 2) || lpad(to_hex(x.ms + 1000 + n / 20), 10, '0') || '7' ||
			lpad(to_hex(n % 20), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid,
			w.id, w.id, 1000 + n, f.price_number, 1, 0, 0, 0, ('burst ' || n)::bytea
		FROM wallets w JOIN features f ON f.app_id = w.app_id AND f.key = 'messages'
		CROSS JOIN (SELECT ('x' || substr(replace($2::uuid::text, '-', ''), 3, 10))::bit(40)::bigint AS ms) x
		CROSS JOIN generate_series(1, $3::bigint) n
		WHERE w.app_id = $1`, s.application.ID, before, burst)
	after := track("messages", 0)
	exec(t, owner, `VACUUM ANALYZE usage_events`)
	noError(t, s.db.Stats().WriteStats(t.Context())) // of the hours around the burst

	t.Run("are listed newest first, each once", func(t *testing.T) {
		want := []string{after.String()}
		want = append(want, texts(t, owner, `SELECT tx_id::text FROM usage_events WHERE tx_id > $1 AND tx_id < $2 ORDER BY tx_id DESC LIMIT 149`, before, after)...)
		var seen []string
		q := reports.EventQuery{Page: store.Page{Limit: 50}}
		for len(seen) < len(want) {
			list, next, err := s.Reports().Events(t.Context(), q)
			noError(t, err)
			for _, e := range list {
				seen = append(seen, e.TransactionID.String())
			}
			if next == nil || next.Before == q.Before {
				t.Fatalf("it ends with %d events", len(seen))
			}
			q.Page = *next
		}
		if seen = seen[:len(want)]; !slices.Equal(seen, want) {
			t.Errorf("got %v, want %v", seen, want)
		}
	})

	t.Run("end the list of a feature after very many others, which goes on from there", func(t *testing.T) {
		q := reports.EventQuery{FeatureKey: "rare", Page: store.Page{Limit: 5}}
		list, next, err := s.Reports().Events(t.Context(), q)
		if err != nil || len(list) != 0 || next == nil {
			t.Errorf("got %+v, then %+v, %v", list, next, err)
		}
		if seen := readEvents(t, s, q); !slices.Equal(seen, []ids.ID{rare}) {
			t.Errorf("got %v", seen)
		}
	})
}
