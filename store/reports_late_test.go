package store_test

import (
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/reports"
	"purser/store/storetest"
)

// A node that could not write for a minute may hold requests and denials of an identity
// that was erased meanwhile.
func TestRequestsAndDenialsAreNotWrittenLate(t *testing.T) {
	t.Parallel()
	m := newMachine(0)
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{Machine: m.clocks})
	noError(t, err)
	t.Cleanup(db.Close)
	s := newKiosk(t, db)
	stored := func(identity string) (requests, failures, denials int) {
		for list, failed := range map[*int]bool{&requests: false, &failures: true} {
			found, _, err := s.Reports().Requests(t.Context(), reports.RequestQuery{Failed: failed, Identity: identity, Page: store.Page{Limit: 10}})
			noError(t, err)
			*list = len(found)
		}
		return requests, failures, len(s.denials(t, reports.DenialQuery{Identity: identity}))
	}
	// held records a request and a denial, and writes them after a while.
	held := func(identity string, wait time.Duration) {
		db.Stats().RecordRequest(s.application.Scope(), reports.Request{
			ID: ids.New(), At: moment, Method: "POST", Route: "/v1/events", Status: 409, Code: fault.InsufficientBalance, KeyID: s.key.ID, Identity: identity, Authenticated: true,
		})
		s.track(t, identity, 1_000)
		m.pass(wait)
		noError(t, db.Stats().WriteStats(t.Context()))
	}
	held("soon", 0)
	if requests, failures, denials := stored("soon"); requests != 1 || failures != 1 || denials != 1 {
		t.Errorf("%d requests, %d failures and %d denials are stored at once", requests, failures, denials)
	}
	identity := ""
	for ahead := time.Duration(0); ahead < 46*time.Second; ahead = time.Until(time.UnixMilli(db.Clock().Now())) {
		identity = freshID()
		held(identity, 47*time.Second) // again if the clock was measured meanwhile, which sets it back
	}
	if requests, failures, denials := stored(identity); requests+failures+denials != 0 {
		t.Errorf("%d requests, %d failures and %d denials are stored late", requests, failures, denials)
	}
}
