package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/rollups"
	"purser/store/storetest"
	"purser/tenancy"
)

// settleUsage adds up what was tracked.
func (d *supportHarness) settleUsage(t *testing.T) {
	t.Helper()
	for range 2 { // the second knows the offset of the clock
		_, err := d.db.Rollups(d.app.Scope()).RollUp(t.Context(), rollups.Alone)
		noError(t, err)
	}
}

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
	d.settleUsage(t)
	t.Run("charts what was charged, with the same in a table", func(t *testing.T) {
		got := support.get(t, page)
		says(t, got, http.StatusOK, "Credits charged by day", "4.5", "Final up to", "Top customers", "Show data")
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
		"?by=key&identity=ada":                           "grouped by feature only",
		"?from=9999-12-31&to=9999-12-31&zone=Asia/Tokyo": "",
	} {
		if message == "" {
			says(t, support.get(t, page+query), http.StatusOK, "No usage")
			continue
		}
		got := support.get(t, page+query)
		says(t, got, http.StatusUnprocessableEntity, message)
		if strings.Contains(got.body, "Over time") || strings.Contains(got.body, "in this range") {
			t.Errorf("%s shows usage beside its problem", query)
		}
	}
	t.Run("a range that is shown by month is one of whole months", func(t *testing.T) {
		now := time.UnixMilli(d.site.Now()).UTC()
		day, month := now.Format("2006-01-02"), now.Format("January 2006")
		got := support.get(t, page+"?bucket=month&from="+day+"&to="+day)
		says(t, got, http.StatusOK, "Whole months are shown: "+month+".", "None in the month before")
		if !strings.Contains(got.body, "from="+now.Format("2006-01-")+"01&amp;") {
			t.Error("the link leads to the events of other days")
		}
		before := now.AddDate(0, 0, -now.Day())
		says(t, support.get(t, page+"?bucket=month&from="+before.Format("2006-01-02")+"&to="+day), http.StatusOK,
			"Whole months are shown: "+before.Format("January 2006")+" to "+month+".", "None in the previous 2 months")
		got = support.get(t, page+"?range=7&bucket=month")
		says(t, got, http.StatusOK, "Whole months are shown: ")
		if strings.Contains(got.body, "in the previous 7 days") {
			t.Error("months are compared with days")
		}
		if got = support.get(t, page+"?range=year&bucket=month"); strings.Contains(got.body, "Whole months are shown") {
			t.Error("a range of whole months is said to be another")
		}
	})
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

// TestUsageOfTooManyFeatures has more groups than a chart adds up, in one hour.
func TestUsageOfTooManyFeatures(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	d.deposit(t, "ann", 10)
	d.track(t, d.use("ann", "messages", 1))
	d.settleUsage(t)
	page := d.appPath("usage") + "?range=1"
	for _, table := range []string{"usage_totals", "usage_hours"} {
		owner := map[string]string{"usage_totals": "key_id", "usage_hours": "wallet_id"}[table]
		fill := func(from, to int) {
			storetest.Exec(t, d.url, fmt.Sprintf(`
				INSERT INTO %[1]s (app_id, hour, feature_id, credit_id, %[2]s, org_id, events, deduplicated, quantity, included, charged_nanocredits)
				SELECT app_id, hour, md5(n::text)::uuid, credit_id, %[2]s, org_id, 1, 0, 1, 0, 1 FROM %[1]s, generate_series(%[3]d, %[4]d) n WHERE app_id = $1 AND charged_nanocredits > 1`,
				table, owner, from, to), d.app.ID)
		}
		fill(2, 50_000)
		if table == "usage_totals" {
			says(t, support.get(t, page), http.StatusOK, "Credits charged by hour", "50,000")
		} else {
			says(t, support.get(t, page+"&identity=ann"), http.StatusOK, "Credits charged by hour", "50,000")
		}
		fill(50_001, 50_001)
	}
	says(t, support.get(t, page), http.StatusUnprocessableEntity, "too much to show")
	says(t, support.get(t, page+"&identity=ann"), http.StatusUnprocessableEntity, "too much to show")
	says(t, support.get(t, page+"&by=none&show=events"), http.StatusUnprocessableEntity, "too much to show")
	says(t, support.get(t, page+"&by=key"), http.StatusOK, "50,001")
	file := support.get(t, d.appPath("usage.csv")+"?range=1")
	says(t, file, http.StatusOK, "start,end,feature,")
	if name := fileName(t, file); !strings.Contains(name, "usage-first-10000-2") {
		t.Errorf("a part of the file is called %s", name)
	}
	says(t, support.get(t, d.walletPath(t, "ann")+"/usage"), http.StatusOK, "Credits charged by day")
}

// Usage without charges is usage: the page says so instead of an empty chart.
func TestUsageThatWasFree(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	page := d.appPath("usage")
	for key, cost := range map[string]metering.Amount{"free": 0, "tiny": 1} {
		_, err := d.tenant.CreateFeature(t.Context(), metering.Feature{
			ID: ids.New(), Key: key, Name: key, Unit: "message", CreditKey: "tokens", Cost: cost, QuantityPerUnit: 1,
			PricingMode: metering.Fixed, Deduplication: metering.DeduplicateNone, Revision: 1, CreatedAt: d.site.Now(),
		})
		noError(t, err)
	}
	noError(t, d.tenant.CreateCredit(t.Context(), metering.Credit{ID: ids.New(), Key: "other", Name: "Other", Unit: "other", Revision: 1, CreatedAt: d.site.Now()}))
	d.deposit(t, "ann", 10)
	d.track(t, d.use("ann", "free", 1))
	d.settleUsage(t)
	for query, want := range map[string]string{
		"":                            "All usage in this range was free",
		"?feature=free":               "All usage in this range was free",
		"?credit=other":               "No usage in this credit",
		"?credit=other&show=quantity": "No usage in this credit",
		"?range=last":                 "No usage in this range",
		"?show=events":                "Show data",
		"?show=quantity&feature=free": "Show data",
		"?show=charged&by=customer":   "All usage in this range was free",
	} {
		got := support.get(t, page+query)
		says(t, got, http.StatusOK, want)
		if link := strings.Contains(got.body, "Show events"); link != strings.Contains(want, " usage in this ") && query != "?range=last" {
			t.Errorf("%s leads to the events: %t", query, link)
		}
	}
	if got := support.get(t, page+"?feature=free"); !strings.Contains(got.body, "?feature=free&amp;show=events") {
		t.Error("the link to events forgets the feature")
	}
	d.track(t, d.use("ann", "tiny", 1))
	d.settleUsage(t)
	says(t, support.get(t, page), http.StatusOK, "Show data")
}

func TestUsageByCustomer(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	for n := range 12 {
		identity := fmt.Sprintf("customer-%02d", n)
		d.deposit(t, identity, 100)
		d.track(t, d.use(identity, "messages", int64(n+1)))
	}
	d.settleUsage(t)
	page := d.appPath("usage")
	t.Run("names those who were charged most, and adds up the others", func(t *testing.T) {
		got := support.get(t, page+"?by=customer")
		says(t, got, http.StatusOK, "customer-11", "customer-02", "All others", "117 ")
		if strings.Contains(got.body, "customer-01") || strings.Contains(got.body, "Top customers") {
			t.Error("small customers are named, or large ones twice")
		}
	})
	t.Run("of one customer", func(t *testing.T) {
		got := support.get(t, page+"?identity=customer-04")
		says(t, got, http.StatusOK, "By feature", "7.5 tokens")
		if strings.Contains(got.body, "customer-11") {
			t.Error("another customer is on the page")
		}
		says(t, support.get(t, page+"?identity=customer-04&by=customer"), http.StatusOK, "7.5 tokens")
		says(t, support.get(t, page+"?identity=unknown"), http.StatusUnprocessableEntity, "No customer has this identity. Enter it in full.")
	})
	t.Run("a file has all of them", func(t *testing.T) {
		got := support.get(t, d.appPath("usage.csv")+"?by=customer")
		says(t, got, http.StatusOK, "value,customer ", ",1.5,1500000000,,customer-00 ", ",18,18000000000,,customer-11")
		if rows := strings.Count(got.body, "\n") - 1; rows != 12 {
			t.Errorf("there are %d rows", rows)
		}
		says(t, support.get(t, d.appPath("usage.csv")+"?identity=customer-04"), http.StatusOK, ",messages,,tokens,1,0,5,0,7.5,7500000000,,customer-04")
	})
	t.Run("the largest are those of the chosen feature and measure", func(t *testing.T) {
		for _, identity := range []string{"customer-00", "customer-00", "customer-01"} {
			d.track(t, d.use(identity, "daily", 1))
		}
		d.settleUsage(t)
		got := support.get(t, page+"?by=customer&feature=daily")
		says(t, got, http.StatusOK, "customer-00", "customer-01")
		if strings.Contains(got.body, "customer-11") || strings.Contains(got.body, "All others") {
			t.Error("customers who didn't use the feature are named, or one who did isn't")
		}
		says(t, support.get(t, page+"?by=customer&feature=daily&show=quantity"), http.StatusOK, "customer-01")
		got = support.get(t, page+"?by=customer&show=events")
		if first, second := strings.Index(got.body, "customer-00"), strings.Index(got.body, "customer-01"); first < 0 || second < first {
			t.Error("customers with most events are not the first")
		}
		says(t, support.get(t, page+"?feature=daily"), http.StatusOK, "(UTC), of all features.")
	})
}

func TestDaysAreThoseOfTheViewer(t *testing.T) {
	t.Parallel()
	d := newSupportHarness(t)
	support := d.join(t, tenancy.Support)
	d.deposit(t, "ada", 10)
	d.track(t, d.use("ada", "messages", 1))
	d.settleUsage(t)
	see := func(zone string) { support.cookies["zone"] = &http.Cookie{Name: "zone", Value: zone} }

	t.Run("the usage page counts by them, with UTC one click away", func(t *testing.T) {
		for zone, want := range map[string][]string{
			"Asia/Tokyo":       {"Days and hours are in Asia/Tokyo.", "Yours (Asia/Tokyo)", "Show in UTC"},
			"America/New_York": {"Days and hours are in America/New York."},
			"Asia/Kolkata":     {"Days and hours are in UTC. Usage is counted in whole UTC hours, which don't line up with Asia/Kolkata."},
			"../etc/passwd":    {"Days and hours are in UTC."},
			"Local":            {"Days and hours are in UTC."},
			"":                 {"Days and hours are in UTC."},
		} {
			see(zone)
			says(t, support.get(t, d.appPath("usage")), http.StatusOK, want...)
		}
		see("Asia/Tokyo")
		says(t, support.get(t, d.appPath("usage")+"?zone=UTC"), http.StatusOK, "Days and hours are in UTC.", "Show in your time zone")
		says(t, support.get(t, d.walletPath(t, "ada")+"/usage"), http.StatusOK, "Last 30 days", "Credits charged by day")
	})
	t.Run("lists are filtered by them", func(t *testing.T) {
		east, west := "Pacific/Kiritimati", "Pacific/Niue" // never on the same day
		zone, err := time.LoadLocation(east)
		noError(t, err)
		now := time.UnixMilli(d.site.Now()).In(zone)
		for _, list := range []string{"deposits", "events"} {
			day := d.appPath(list) + "?from=" + now.Add(-time.Minute).Format("2006-01-02") + "&to=" + now.Add(time.Minute).Format("2006-01-02")
			see(east)
			says(t, support.get(t, day), http.StatusOK, "ada")
			see(west)
			says(t, support.get(t, d.appPath(list)+"?from="+now.Add(time.Minute).Format("2006-01-02")), http.StatusOK, "No results")
		}
	})
	t.Run("a day may begin at 1 o'clock", func(t *testing.T) {
		see("America/Santiago")
		for name, at := range map[string]time.Time{ // 6 September is from 4 o'clock of UTC to 3 o'clock
			"day-before": time.Date(2026, 9, 6, 3, 59, 0, 0, time.UTC), "first-minute": time.Date(2026, 9, 6, 4, 0, 0, 0, time.UTC),
			"last-minute": time.Date(2026, 9, 7, 2, 59, 0, 0, time.UTC), "day-after": time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC),
		} {
			id := ids.New()
			for i := range 6 {
				id[i] = byte(at.UnixMilli() >> (8 * (5 - i)))
			}
			_, _, err := d.tenant.Deposit(t.Context(), store.Deposit{ID: id, Identity: name, CreditKey: "tokens", Amount: 1, IdempotencyKey: &name, CreatedAt: at.UnixMilli()})
			noError(t, err)
		}
		page := support.get(t, d.appPath("deposits")+"?from=2026-09-06&to=2026-09-06")
		says(t, page, http.StatusOK, "first-minute", "last-minute")
		if strings.Contains(page.body, "day-before") || strings.Contains(page.body, "day-after") {
			t.Error("deposits of other days are listed")
		}
	})
}
