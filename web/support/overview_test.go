package support

import (
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store/reports"
	"purser/store/verify"
	"purser/tenancy"
	"purser/views/component"
	"purser/web/site"
)

func TestConcernsAboutPlans(t *testing.T) {
	t.Parallel()
	app := tenancy.Application{ID: ids.New(), Slug: "chat"}
	org := tenancy.Organization{ID: ids.New(), Slug: "acme"}
	member := tenancy.Member{Access: tenancy.Access{Role: tenancy.Owner}}
	req := &site.Request{Org: org, App: app, Member: member}
	message := "Invalid currency: xyz. Must be one of: " + strings.Repeat("usd, ", 60)
	refused := reports.Attention{SyncErrors: []reports.PlanInError{{Key: "pro", Name: "Pro", Error: message}, {Key: "max", Name: "Max", Error: message}}}

	t.Run("say in one sentence what the provider refuses", func(t *testing.T) {
		list := overviewConcerns(req, refused, false, time.UTC)
		if len(list) != 2 || list[0].Text != `Plan "Pro" failed to sync with the payment provider` || list[0].More != "Invalid currency: xyz." ||
			list[0].Href != "/o/acme/a/chat/plans/pro/edit" {
			t.Errorf("they are %+v", list)
		}
	})
	t.Run("say once that no provider is connected", func(t *testing.T) {
		list := overviewConcerns(req, refused, true, time.UTC)
		if len(list) != 1 || list[0].Text != "No payment provider is connected" || list[0].Href != "/o/acme/a/chat/settings" {
			t.Errorf("they are %+v", list)
		}
		req := &site.Request{Org: org, App: app, Member: tenancy.Member{Access: tenancy.Access{Role: tenancy.Support}}}
		if list := overviewConcerns(req, refused, true, time.UTC); len(list) != 1 || list[0].Href != "" {
			t.Errorf("support is told %+v", list)
		}
	})
	t.Run("say nothing of a provider while no plan needs one", func(t *testing.T) {
		if list := overviewConcerns(req, reports.Attention{}, true, time.UTC); len(list) != 0 {
			t.Errorf("they are %+v", list)
		}
	})
}

func TestConcernsOfferWhatTheMemberMay(t *testing.T) {
	t.Parallel()
	attention := reports.Attention{SyncErrors: []reports.PlanInError{{Key: "pro", Name: "Pro"}}, Expiring: []reports.KeyExpiring{{Name: "Server"}}}
	for role, want := range map[tenancy.Role]string{
		tenancy.Owner:     "Fix plan /o/acme/a/chat/plans/pro/edit, Rotate key /o/acme/a/chat/keys",
		tenancy.Developer: "Fix plan /o/acme/a/chat/plans/pro/edit, View keys /o/acme/a/chat/keys",
		tenancy.Support:   "View plan /o/acme/a/chat/plans/pro/view",
	} {
		req := &site.Request{Org: tenancy.Organization{Slug: "acme"}, App: tenancy.Application{Slug: "chat"}, Member: tenancy.Member{Access: tenancy.Access{Role: role}}}
		var links []string
		for _, c := range overviewConcerns(req, attention, false, time.UTC) {
			links = append(links, c.Link+" "+c.Href)
		}
		if got := strings.Join(links, ", "); got != want {
			t.Errorf("%s: %s", role, got)
		}
	}
}

func TestConcernsAboutVerification(t *testing.T) {
	t.Parallel()
	sound := verify.Run{Kind: verify.NewEntries, Entries: 5}
	differs := verify.Run{Kind: verify.AllEntries, Entries: 9, Differences: 2, Lines: []string{"what is wrong"}}
	stopped := verify.Run{Kind: verify.AllEntries, Failure: "it took longer than 1h0m0s"}

	t.Run("name differences first", func(t *testing.T) {
		list := failedVerifications([]verify.Run{sound, differs})
		if len(list) != 1 || list[0].Text != "Verification found 2 differences" || list[0].Tone != "danger" {
			t.Errorf("they are %+v", list)
		}
		rows := verifiedRows([]verify.Run{sound, differs})
		if rows[0].Result != "No differences" || rows[1].Result != "2 differences" || rows[1].Lines[0] != "what is wrong" {
			t.Errorf("the rows are %+v", rows)
		}
	})
	t.Run("name a verification that did not finish", func(t *testing.T) {
		list := failedVerifications([]verify.Run{stopped})
		if len(list) != 1 || list[0].More != "Reason: it took longer than 1h0m0s." {
			t.Errorf("they are %+v", list)
		}
	})
	t.Run("say nothing of a sound one", func(t *testing.T) {
		if list := failedVerifications([]verify.Run{sound}); len(list) != 0 {
			t.Errorf("they are %+v", list)
		}
	})
}

func TestDaysOfAnotherYearAreNamedWithIt(t *testing.T) {
	t.Parallel()
	const offset = 400 * 24 * time.Hour
	now := time.Now().UnixMilli()
	req := &site.Request{Site: &site.Site{Options: site.Options{Now: func() int64 { return now }}}, ClockOffset: offset.Milliseconds()}
	label := func(day int64) string {
		o := reports.Overview{Days: []reports.OverviewDay{{Day: day}}}
		return dayChart(req, o, "uses", "Uses", "uses", func(d reports.OverviewDay) int64 { return d.Uses }).Bars[0].Label
	}
	if got, want := label(req.Now()), component.DayText(req.Now()); got != want {
		t.Errorf("a day of another year is %s, not %s", got, want)
	}
	if got, want := label(now), component.DayText(now); got+want[len(want)-5:] != want {
		t.Errorf("a day of this year is %s", got)
	}
}

func TestACreditHasOneTile(t *testing.T) {
	t.Parallel()
	free, gone := ids.New(), ids.New()
	now := []reports.CreditTotal{{CreditID: free, CreditKey: "free"}} // used, and nothing charged
	before := []reports.CreditTotal{{CreditID: free, CreditKey: "free"}, {CreditID: gone, CreditKey: "gone", Total: metering.Total{}.Plus(metering.PerCredit)}}
	tiles := totals("Charged", "", now, before, "the week before")
	if len(tiles) != 2 || tiles[0].Unit != "free" || tiles[1].Unit != "gone" {
		t.Errorf("the tiles are %+v", tiles)
	}
}
