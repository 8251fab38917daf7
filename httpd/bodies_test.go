package httpd

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"pgregory.net/rapid"

	"purser/fault"
)

// TestInFlightLeavesRoomForOneMore has any number of owners take all they can get.
func TestInFlightLeavesRoomForOneMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		owners := rapid.Int64Range(1, limit).Draw(t, "owners")
		f := NewInFlight[int64](limit)
		for admitted := true; admitted; {
			admitted = false
			for owner := range owners {
				admitted = f.Enter(owner, 1) == nil || admitted
			}
		}
		if f.used > limit {
			t.Fatalf("%d of %d are taken", f.used, limit)
		}
		if owners < limit/2 && f.Enter(owners, 1) != nil {
			t.Fatalf("%d owners shut another out of %d", owners, limit)
		}
	})
	f := NewInFlight[string](10)
	if f.Enter("one", 5) != nil || f.Enter("one", 1) == nil || f.Enter("two", 6) == nil || f.Enter("two", 2) != nil {
		t.Error("the shares are not half and what is free")
	}
	f.Leave("one", 5)
	f.Leave("two", 2)
	if f.used != 0 || len(f.owners) != 0 {
		t.Errorf("%d is taken by %d after all left", f.used, len(f.owners))
	}
}

// TestAGroupInFlightLeavesAThirdToOthers has all owners of a group take what they can get,
// and then those of others. Owners are multiples of a hundred and the number in a group.
func TestAGroupInFlightLeavesAThirdToOthers(t *testing.T) {
	t.Parallel()
	const size = 100
	groupOf := func(owner int64) int64 { return owner / size * size }
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1000).Draw(t, "limit")
		owners := rapid.Int64Range(1, size-1).Draw(t, "owners")
		f := NewGroupsInFlight(limit, groupOf)
		var held []int64
		for group := range rapid.Int64Range(1, 5).Draw(t, "groups") {
			for admitted := true; admitted; {
				admitted = false
				for n := range owners {
					if owner := group*size + 1 + n; f.Enter(owner, 1) == nil {
						admitted, held = true, append(held, owner)
					}
				}
			}
			if group == 0 && f.used > (2*limit+2)/3 {
				t.Fatalf("%d owners of one group took %d of %d", owners, f.used, limit)
			}
			if group == 0 && owners == 1 && f.used != (limit+1)/2 {
				t.Fatalf("the only owner of a group got %d of %d", f.used, limit)
			}
		}
		if f.used > limit {
			t.Fatalf("%d of %d are taken", f.used, limit)
		}
		for _, owner := range held {
			f.Leave(owner, 1)
		}
		if f.used != 0 || len(f.owners) != 0 {
			t.Fatalf("%d is taken by %d after all left", f.used, len(f.owners))
		}
	})
}

// TestBodiesBeforeAuthenticationAreBounded holds bodies of one network until no
// more fit.
func TestBodiesBeforeAuthenticationAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Options{NetworkOf: func(r *http.Request) netip.Prefix {
		return netip.MustParsePrefix(r.Header.Get("From"))
	}})
	s.bodies = NewInFlight[netip.Prefix](4 * largestBody)
	send := func(target, from string, length int64, during func()) (admitted bool) {
		r := httptest.NewRequest(http.MethodPost, target, nil)
		r.Header.Set("From", from)
		r.ContentLength = length
		err := s.limitBodies(func(echo.Context) error {
			admitted = true
			during()
			return nil
		})(echo.New().NewContext(r, httptest.NewRecorder()))
		if admitted == (err != nil) || err != nil && !fault.Is(err, fault.Overloaded) {
			t.Errorf("admitted is %t, %v", admitted, err)
		}
		return admitted
	}
	const one, other = "192.0.2.0/24", "198.51.100.0/24"
	nothing := func() {}
	send("/webhooks/stripe/con_x", one, 100*largestBody, func() { // counts as the largest
		send("/login", one, largestBody, func() {
			if send("/login", one, 1, nothing) {
				t.Error("a network has more than half")
			}
			if !send("/login", other, -1, nothing) {
				t.Error("another network is refused")
			}
			if !send("/v1/wallets", one, 1, nothing) || !send("/login", one, 0, nothing) {
				t.Error("a body that is read after the key, or none at all, is refused")
			}
		})
	})
	if s.bodies.used != 0 {
		t.Errorf("%d bytes are still taken", s.bodies.used)
	}
}

func TestBodiesLeaveRoomForOtherConnections(t *testing.T) {
	t.Parallel()
	for bodies, want := range map[int]int64{
		0: maxBodies, 5000: maxBodies, 2048: maxBodies, 1000: 1000 * smallestBody,
		1: 2 * largestBody, // one network may have half, and that is one body of any size
	} {
		if got := bodyBytes(bodies); got != want {
			t.Errorf("%d bodies may have %d bytes, want %d", bodies, got, want)
		}
	}
}

func TestTraceID(t *testing.T) {
	t.Parallel()
	const trace, valid = "4bf92f3577b34da6a3ce929d0e0e4736", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, want := range map[string]string{
		valid: trace, "cc" + valid[2:] + "-more": trace,
		"": "", "00": "", valid + "-more": "", "ff" + valid[2:]: "", strings.ToUpper(valid): "", strings.Replace(valid, "4bf", "\xff\xff\xff", 1): "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "", "00-" + trace + "-0000000000000000-01": "",
	} {
		if got := traceID(http.Header{"Traceparent": {text}}); got != want {
			t.Errorf("%q is of trace %q", text, got)
		}
	}
	if traceID(http.Header{"Traceparent": {valid, valid}}) != "" {
		t.Error("one of two headers was chosen")
	}
}

func TestAPIPathsAreRecognized(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v1": true, "/v1/": true, "/v1/events": true, "//v1/x": true, "/V2/x": true, "/v10/x": true,
		"": false, "/": false, "//": false, "v1/x": false, "/v": false, "/v/1": false, "/v1x": false, "/va1/": false, "/o/v1": false,
	} {
		if got := isAPIPath(path); got != want {
			t.Errorf("%q is a path of the API: %t", path, got)
		}
	}
}
