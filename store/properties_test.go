package store_test

import (
	"fmt"
	"slices"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// propertyRows are the stored properties of an application, by event id.
func propertyRows(tb testing.TB, on execer, a tenant) []string {
	tb.Helper()
	return texts(tb, on, `SELECT encode(e.event_id, 'escape') || ' ' || x.properties::text
		FROM event_properties x LEFT JOIN usage_events e ON e.app_id = x.app_id AND e.seq = x.seq AND e.wallet_id = x.wallet_id
		WHERE x.app_id = $1 ORDER BY 1`, a.application.ID)
}

func labelled(use store.Usage, model string) store.Usage {
	use.Properties = metering.NewProperties(map[string]string{"model": model, "a": "ü\"<>"})
	return use
}

func TestPropertiesAreStoredWithTheirEvents(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for _, c := range []struct {
		name     string
		remember bool
	}{{"from the cache", true}, {"under locks", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, url, 1)
			conn := connect(t, url)
			s.credit(t, "ann", 10*messagePrice)
			s.warm(t, s.nodes[0], "ann", c.remember)
			mustAccept(t, s.nodes[0], s.message("ann", "plain"))
			if rows := propertyRows(t, conn, s.tenant); len(rows) > 0 {
				t.Fatalf("an event without properties stores %v", rows)
			}
			first := labelled(s.message("ann", "single"), "large")
			mustAccept(t, s.nodes[0], first)
			outcomes, err := s.nodes[0].usage.TrackBatch([]store.Usage{
				labelled(s.message("ann", "batch 1"), "one"), s.message("ann", "batch 2"), labelled(s.message("ann", "batch 3"), "three"),
				labelled(s.useOf("none", "ann", "unknown"), "never"),
			})
			noError(t, err)
			if !fault.Is(outcomes[3].Err, fault.FeatureNotFound) {
				t.Errorf("got %v", outcomes[3])
			}
			_, _, err = s.nodes[0].usage.TrackGroup([]store.Usage{labelled(s.message("ann", "group 1"), "g"), s.message("ann", "group 2")})
			noError(t, err)
			costly := labelled(s.message("ann", "costly"), "never")
			costly.Quantity = 1000
			if d, err := s.nodes[0].usage.Track(costly); err != nil || d.Code != fault.InsufficientBalance {
				t.Errorf("got %s, %v", d.Code, err)
			}
			_, _, err = s.nodes[0].usage.TrackGroup([]store.Usage{labelled(s.message("ann", "group 3"), "never"), costly})
			if !fault.Is(err, fault.InsufficientBalance) {
				t.Errorf("got %v", err)
			}
			var want []string
			for event, model := range map[string]string{"single": "large", "batch 1": "one", "batch 3": "three", "group 1": "g"} {
				want = append(want, event+fmt.Sprintf(` {"a": "ü\"<>", "model": %q}`, model))
			}
			slices.Sort(want)
			if rows := propertyRows(t, conn, s.tenant); !slices.Equal(rows, want) {
				t.Errorf("stored are %q, want %q", rows, want)
			}
			found, _, err := s.Reports().Events(t.Context(), reports.EventQuery{EventID: "single"})
			if err != nil || len(found) != 1 || found[0].Properties != first.Properties {
				t.Errorf("read are %+v, %v", found, err)
			}
			listed, _, err := s.Reports().EventsOfWallet(t.Context(), reports.HistoryQuery{Identity: "ann", Limit: 100}, "")
			noError(t, err)
			for _, e := range listed {
				if (e.Properties != "") != slices.ContainsFunc(want, func(line string) bool { return len(line) > len(e.EventID) && line[:len(e.EventID)] == e.EventID }) {
					t.Errorf("%s is listed with %q", e.EventID, e.Properties)
				}
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

func TestRepeatsKeepTheFirstProperties(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := newShop(t, url, 2)
	s.credit(t, "ann", 1000)
	mustAccept(t, s.nodes[0], labelled(s.message("ann", "event"), "large"))
	before := s.nodes[1].usage.Stats().Differing
	for i, c := range []struct {
		use     store.Usage
		differs int64
	}{
		{labelled(s.message("ann", "event"), "large"), 0},
		{labelled(s.message("ann", "event"), "small"), 1},
		{s.message("ann", "event"), 1},
	} {
		c.use.TransactionID = ids.New()
		d, err := s.nodes[1].usage.Track(c.use)
		if err != nil || d.Verdict != metering.Duplicate || d.Differs != (c.differs == 1) {
			t.Errorf("repeat %d is %s, differs %t, %v", i, d.Verdict, d.Differs, err)
		}
	}
	if n := s.nodes[1].usage.Stats().Differing - before; n != 2 {
		t.Errorf("%d repeats are counted as different", n)
	}
	if rows := propertyRows(t, connect(t, url), s.tenant); !slices.Equal(rows, []string{`event {"a": "ü\"<>", "model": "large"}`}) {
		t.Errorf("stored are %q", rows)
	}
}
