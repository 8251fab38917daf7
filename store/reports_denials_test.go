package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

func (s *kiosk) denials(t *testing.T, q reports.DenialQuery) []reports.Denial {
	t.Helper()
	q.Limit = 1_000
	list, next, err := s.Reports().Denials(t.Context(), q)
	noError(t, err)
	if next != nil {
		t.Errorf("%+v has another page", q)
	}
	return list
}

func TestDenialsAreKeptAsTheyWereDecided(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	s := newKiosk(t, db)
	s.deposit(t, depositOf("ann", "tokens", 5, "a little"))
	limited := s.newFeature(t, featureOf("reports", "tokens"))
	noError(t, s.PutSubscription(t.Context(), "ann", metering.Subscription{
		ID: ids.New(), Status: metering.StatusActive, Period: metering.MonthOf(moment),
		Terms: metering.Terms{Limits: []metering.Limit{{FeatureID: limited.ID, FeatureKey: "reports", Limit: 3, Period: metering.LimitMonth, Overage: metering.OverageBlock}}},
	}))

	request := ids.New()
	tooDear, overLimit := s.use("ann", 1_000), s.use("ann", 4)
	tooDear.RequestID, overLimit.RequestID, overLimit.FeatureKey = request, request, "reports"
	overLimit.EntityID = "document 7"
	unknown := s.use("an identity without a wallet", 1_000)
	var want []metering.Decision
	for _, use := range []store.Usage{tooDear, overLimit, unknown} {
		d, err := s.usage.Track(use)
		noError(t, err)
		want = append(want, d)
		use.EventID, use.TransactionID = "", ids.ID{}
		d, err = s.usage.Check(use)
		noError(t, err)
		want = append(want, d)
	}
	list := s.denials(t, reports.DenialQuery{})
	slices.Reverse(list)

	t.Run("uses and checks, with the gates of that moment", func(t *testing.T) {
		if len(list) != len(want) {
			t.Fatalf("%d denials are kept", len(list))
		}
		for i, d := range list {
			if d.Decision.Code != want[i].Code || !reflect.DeepEqual(d.Decision.Gates(), want[i].Gates()) {
				t.Errorf("%d: kept %s %+v, decided %s %+v", i, d.Decision.Code, d.Decision.Gates(), want[i].Code, want[i].Gates())
			}
			if d.Check != (i%2 == 1) || d.At() != moment || d.KeyID != s.key.ID || d.KeyName != s.key.Name || d.Decision.Event.Quantity != want[i].Event.Quantity {
				t.Errorf("%d: kept %+v", i, d)
			}
			if d.Decision.Before.CreditKey != "tokens" || d.Decision.Before != want[i].Before || d.Decision.Event.Charge.Amount != want[i].Event.Charge.Amount {
				t.Errorf("%d: kept %+v, had %+v", i, d.Decision, want[i])
			}
		}
		if d := list[2]; d.FeatureKey != "reports" || d.Decision.Code != fault.FeatureLimitExceeded || d.Decision.Allowance != want[2].Allowance ||
			d.Decision.Event.EntityID != "document 7" || d.Decision.Event.EventID != overLimit.EventID {
			t.Errorf("kept %+v", d)
		}
		if list[0].WalletID.IsZero() || !list[4].WalletID.IsZero() {
			t.Error("a wallet is missing, or found where there is none")
		}
	})

	t.Run("and later changes do not touch them", func(t *testing.T) {
		s.deposit(t, depositOf("ann", "tokens", 1_000_000, "a lot"))
		d, err := s.Reports().Denial(t.Context(), list[0].ID)
		if err != nil || !reflect.DeepEqual(d, list[0]) {
			t.Errorf("got %+v, %v", d, err)
		}
	})

	t.Run("and are found by customer, feature, reason, time and request", func(t *testing.T) {
		for i, q := range []reports.DenialQuery{
			{Identity: "ann"}, {RequestID: request},
			{FeatureKey: "reports"}, {Reason: fault.FeatureLimitExceeded}, {Identity: "an identity without a wallet"},
			{From: min(moment, db.Clock().Now()) - 3_600_000, To: max(moment, db.Clock().Now()) + 1}, {From: moment + 1}, {To: moment},
		} {
			found := len(s.denials(t, q))
			if n := []int{4, 4, 2, 2, 2, 6, 0, 0}[i]; found != n {
				t.Errorf("%+v finds %d, not %d", q, found, n)
			}
		}
		if _, _, err := s.Reports().Denials(t.Context(), reports.DenialQuery{FeatureKey: "missing", Page: store.Page{Limit: 1}}); !fault.Is(err, fault.FeatureNotFound) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("page by page", func(t *testing.T) {
		var seen []ids.ID
		for next := (&store.Page{Limit: 4}); next != nil; {
			page, after, err := s.Reports().Denials(t.Context(), reports.DenialQuery{Page: *next})
			noError(t, err)
			for _, d := range page {
				seen = append(seen, d.ID)
			}
			next = after
		}
		slices.Reverse(seen)
		if len(seen) != len(list) || !slices.EqualFunc(seen, list, func(id ids.ID, d reports.Denial) bool { return id == d.ID }) {
			t.Errorf("got %v", seen)
		}
	})
}

func TestDenialsOfBatchesAndGroupsAreKept(t *testing.T) {
	t.Parallel()
	s := newKiosk(t, storetest.Open(t))
	s.deposit(t, depositOf("ann", "tokens", 1_000_000, "enough for some"))
	request := ids.New()
	uses := []store.Usage{s.use("ann", 1), s.use("bob", 1_000), s.use("cleo", 1_000)}
	for i := range uses {
		uses[i].RequestID = request
	}
	_, err := s.usage.TrackBatch(uses)
	noError(t, err)
	group := []store.Usage{s.use("dan", 1_000), s.use("dan", 1_000)}
	if _, _, err := s.usage.TrackGroup(group); !fault.Is(err, fault.InsufficientBalance) {
		t.Fatalf("got %v", err)
	}
	// A group with the id of another's event is a mistake, and not denied usage.
	mistaken := []store.Usage{s.use("ann", 1), s.use("ann", 1)}
	mistaken[0].EventID = uses[0].EventID
	if _, _, err := s.usage.TrackGroup(mistaken); !fault.Is(err, fault.GroupConflict) {
		t.Fatalf("got %v", err)
	}
	var seen []string
	for _, d := range s.denials(t, reports.DenialQuery{}) {
		seen = append(seen, fmt.Sprint(d.Identity, d.RequestID == request))
	}
	slices.Sort(seen)
	if got := strings.Join(seen, " "); got != "bobtrue cleotrue danfalse" {
		t.Errorf("kept %s", got)
	}
}

func TestDenialsAreBounded(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{KeepDenials: 24 * time.Hour})
	noError(t, err)
	t.Cleanup(db.Close)
	s := newKiosk(t, db)

	t.Run("a client that retries leaves room for the others", func(t *testing.T) {
		for range 4 * reports.DenialRepeats {
			s.track(t, "a broken client", 1_000)
		}
		s.track(t, "ann", 1_000)
		kept := len(s.denials(t, reports.DenialQuery{Identity: "a broken client"}))
		if kept < reports.DenialRepeats || kept > 3*reports.DenialRepeats { // minutes may have ended meanwhile
			t.Errorf("%d of the client's are kept", kept)
		}
		if kept := len(s.denials(t, reports.DenialQuery{Identity: "ann"})); kept != 1 {
			t.Errorf("%d of the other's are kept", kept)
		}
		if db.Stats().DroppedDenials() < reports.DenialRepeats {
			t.Errorf("%d are counted as dropped", db.Stats().DroppedDenials())
		}
	})

	t.Run("and old ones are deleted", func(t *testing.T) {
		owner := connect(t, storetest.URL(t))
		old := store.IDAt(db.Clock().Now() - 25*time.Hour.Milliseconds())
		age := func() {
			exec(t, owner, `UPDATE denial_records SET id = $2 WHERE app_id = $1 AND identity = 'ann'`, s.application.ID, old)
		}
		stored := func() int {
			return len(texts(t, owner, `SELECT id::text FROM denial_records WHERE app_id = $1 AND id = $2`, s.application.ID, old))
		}
		age()
		if list := s.denials(t, reports.DenialQuery{Identity: "ann"}); len(list) != 0 || stored() != 1 {
			t.Errorf("%d are listed, %d stored", len(list), stored())
		}
		_, err := s.Prune(t.Context(), 100)
		noError(t, err)
		if stored() != 0 {
			t.Error("it is stored")
		}
		s.track(t, "ann", 1_000)
		s.denials(t, reports.DenialQuery{}) // writes it
		age()
		s.track(t, "bob", 1_000)
		if list := s.denials(t, reports.DenialQuery{Identity: "bob"}); len(list) != 1 || stored() != 0 {
			t.Errorf("%d are listed, %d stored after the next write", len(list), stored())
		}
	})
}
