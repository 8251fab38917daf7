package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/web/developers"
	"purser/web/site"
)

// TestSandboxPanel holds the panel to who may use it and to what it asks of the sandbox.
// A journey in cmd/purser drives the real one.
func TestSandboxPanel(t *testing.T) {
	t.Parallel()
	var asked []string
	const slow = 1_900_000_000_000 // a time that takes longer than a request
	controls := &developers.SandboxControls{
		Advance: func(ctx context.Context, _ ids.ID, to int64) (int64, error) {
			if to == slow {
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > patience*2/3 {
					t.Error("the page has no time left to say so")
				}
				return 0, fmt.Errorf("advancing: %w", context.DeadlineExceeded)
			}
			asked = append(asked, "advance to "+strconv.FormatInt(to, 10))
			return to, nil
		},
		Dispute: func(_ context.Context, _ ids.ID, checkoutID, outcome string) error {
			return fault.Newf(fault.InvalidRequest, "Nothing has been paid for %s.", checkoutID)
		},
		Webhooks: func(context.Context, ids.ID) (bool, int, error) { return true, 3, nil },
		Hold: func(_ context.Context, _ ids.ID, hold bool) error {
			asked = append(asked, "hold "+strconv.FormatBool(hold))
			return nil
		},
		Replay: func(_ context.Context, _ ids.ID, events int) error {
			asked = append(asked, "replay "+strconv.Itoa(events))
			return nil
		},
	}
	r := newHarnessOn(t, Options{Options: site.Options{Store: storetest.Open(t), Cashier: newTestCashier(t)}, Controls: controls})
	live := r.newApplication(t, r.org, "Shop", true)
	owner, support := r.join(t, tenancy.Owner), r.join(t, tenancy.Support)
	panel := r.appPath("sandbox")

	t.Run("shows the clock and the webhooks, with buttons", func(t *testing.T) {
		page := owner.get(t, panel)
		says(t, page, http.StatusOK, "Sandbox", "+1 month", "Held", "Waiting 3", "Release webhooks", "No checkouts yet")
		if !strings.Contains(page.body, `<a href="/docs/payments">payments guide</a>.`) || !strings.Contains(owner.get(t, r.appPath("settings")).body, panel) {
			t.Error("the guide or the panel is not linked")
		}
	})
	t.Run("is for test applications and for who may change subscriptions", func(t *testing.T) {
		if page := support.get(t, panel); page.status != http.StatusForbidden {
			t.Errorf("support gets %d", page.status)
		}
		for _, path := range []string{"", "/clock", "/webhooks", "/refund", "/dispute", "/invoice", "/fail"} {
			var got seen
			if path == "" {
				got = owner.get(t, r.orgPath("a", live.Slug, "sandbox"))
			} else {
				got = owner.post(t, r.orgPath("a", live.Slug, "sandbox")+path, url.Values{"by": {"day"}, "do": {"hold"}})
			}
			if got.status != http.StatusNotFound {
				t.Errorf("%q of a live application answers %d", path, got.status)
			}
		}
	})
	t.Run("advances from the shown time, once however often it is sent", func(t *testing.T) {
		for range 2 {
			if got := owner.post(t, panel+"/clock", url.Values{"from": {"1800000000000"}, "by": {"day"}}); got.location != panel {
				t.Errorf("it leads to %q with %d", got.location, got.status)
			}
		}
		owner.post(t, panel+"/clock", url.Values{"from": {"1800000000000"}, "to": {"2027-02-01T12:30"}})
		says(t, owner.post(t, panel+"/clock", url.Values{"from": {"1800000000000"}, "to": {"2020-02-01T12:30"}}), http.StatusUnprocessableEntity, "Enter a time after the current one.")
		says(t, owner.post(t, panel+"/clock", url.Values{"from": {"x"}, "by": {"century"}}), http.StatusUnprocessableEntity, "Enter a time after the current one.")
		if got := strings.Join(asked, ", "); got != "advance to 1800086400000, advance to 1800086400000, advance to 1801485000000" {
			t.Errorf("the sandbox was asked: %s", got)
		}
	})
	t.Run("says that it goes on advancing", func(t *testing.T) {
		if got := owner.post(t, panel+"/clock", url.Values{"from": {strconv.Itoa(slow - 3_600_000)}, "by": {"hour"}}); got.status != http.StatusSeeOther {
			t.Errorf("it answers %d", got.status)
		}
		says(t, owner.get(t, panel), http.StatusOK, "Still advancing")
	})
	t.Run("holds, releases and replays webhooks, and shows a refusal", func(t *testing.T) {
		asked = nil
		for _, do := range []string{"hold", "release", "replay"} {
			if got := owner.post(t, panel+"/webhooks", url.Values{"do": {do}}); got.status != http.StatusSeeOther {
				t.Errorf("%s answers %d", do, got.status)
			}
		}
		if got := strings.Join(asked, ", "); got != "hold true, hold false, replay 10" {
			t.Errorf("the sandbox was asked: %s", got)
		}
		says(t, owner.post(t, panel+"/dispute", url.Values{"checkout": {"chk_x"}, "outcome": {"lost"}}), http.StatusUnprocessableEntity, "Nothing has been paid for chk_x.")
		if got := owner.post(t, panel+"/refund", url.Values{"checkout": {ids.New().Format(ids.Checkout)}}); got.status != http.StatusNotFound {
			t.Errorf("a refund of nothing answers %d", got.status)
		}
	})
}
