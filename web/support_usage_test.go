package web

import (
	"net/http"
	"strings"
	"testing"

	"purser/metering"
	"purser/store/rollups"
	"purser/tenancy"
)

func TestUsagePage(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	page := d.appPath("usage")
	says(t, support.get(t, page), http.StatusOK, "No usage in this range", "Last month")
	d.deposit(t, hostileIdentity, 10)
	d.track(t, d.use(hostileIdentity, "messages", 1))
	labelled := d.use(hostileIdentity, "messages", 2)
	labelled.EntityID, labelled.Properties = "<b>seat</b>", metering.NewProperties(map[string]string{"model": "large"})
	d.track(t, labelled)
	for range 2 { // the second knows the offset of the clock
		_, err := d.db.Rollups(d.app.Scope()).Settle(t.Context(), rollups.Alone)
		noError(t, err)
	}
	t.Run("charts what was charged, with the same in a table", func(t *testing.T) {
		got := support.get(t, page)
		says(t, got, http.StatusOK, "Credits charged by day", "4.5", "Exact and final until", "Top customers", "Show data")
		if !strings.Contains(got.body, `class="chart-plot"`) || strings.Contains(got.body, "<script>alert") || strings.Contains(got.body, "style=") {
			t.Error("there is no chart, an identity is markup, or the chart needs inline styles")
		}
	})
	for query, want := range map[string][]string{
		"?range=1":                            {"Credits charged by hour", "00:00"},
		"?range=7&show=events":                {"Events by day"},
		"?range=month&by=key":                 {"API key"},
		"?range=year":                         {"Credits charged by month"},
		"?range=last":                         {"No usage in this range"},
		"?by=property:model":                  {"Property: model", "large", "3 "},
		"?by=property:none":                   {"Credits charged by day"},
		"?by=entity&range=1&compare=before":   {"<b>seat</b>", "Credits charged by day"},
		"?by=entity&show=quantity":            {"Quantity by day"},
		"?show=quantity&by=none":              {"Quantity by day"},
		"?compare=before":                     {"Previous period"},
		"?feature=messages&zone=Asia%2FTokyo": {"Asia/Tokyo"},
		"?feature=none":                       {"No usage in this range"},
		"?from=2001-01-01&to=2001-01-02":      {"No usage in this range", "Credits charged"},
		"?range=nonsense&show=nonsense&by=nonsense&bucket=nonsense&zone=nonsense&credit=nonsense": {"Credits charged by day"},
	} {
		got := support.get(t, page+query)
		says(t, got, http.StatusOK, want...)
	}
	for query, message := range map[string]string{
		"?from=soon":                                     "Enter a date",
		"?from=2026-02-01&to=2026-01-01":                 "Enter a day",
		"?from=2020-01-01&to=2026-01-01&bucket=hour":     "more than 744 buckets",
		"?from=2001-01-01&bucket=day&to=2026-01-01":      "more than 366 buckets",
		"?from=2999-01-01":                               "not after",
		"?by=entity&bucket=hour":                         "Choose days or months",
		"?by=entity&zone=Asia/Tokyo":                     "UTC",
		"?by=entity&range=year":                          "at most 92 days",
		"?from=9999-12-31&to=9999-12-31&zone=Asia/Tokyo": "",
	} {
		if message == "" {
			says(t, support.get(t, page+query), http.StatusOK, "No usage")
			continue
		}
		says(t, support.get(t, page+query), http.StatusUnprocessableEntity, message)
	}
	t.Run("a file", func(t *testing.T) {
		says(t, support.get(t, d.appPath("usage.csv")), http.StatusOK, "start,end,feature,", ",messages,,tokens,2,0,3,0,4.5,4500000000")
		says(t, support.get(t, d.appPath("usage.csv")+"?by=property:model"), http.StatusOK, ",value", ",tokens,1,0,,,3,3000000000,large")
	})
	t.Run("the customer's own chart", func(t *testing.T) {
		says(t, support.get(t, d.walletPath(t, hostileIdentity)+"/usage"), http.StatusOK, "Last 30 days", "Credits charged by day")
	})
	t.Run("hours of today on the overview", func(t *testing.T) {
		says(t, support.get(t, d.appPath()+"?days=1"), http.StatusOK, "Usage by hour", "23:00", "Credits and liability", "Revenue")
	})
}
