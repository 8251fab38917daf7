package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/rollups"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

// usageFilters are the parameters of the usage page.
var usageFilters = []string{"range", "from", "to", "show", "by", "bucket", "credit", "feature", "compare", "zone"}

// The choices of the usage page. The first of each is the default.
var (
	usageRanges = []struct {
		key, label, before string
	}{
		{"30", "30 days", "in the previous 30 days"}, {"1", "Today", "yesterday"}, {"7", "7 days", "in the previous 7 days"},
		{"month", "This month", "in the previous period"}, {"last", "Last month", "in the month before"}, {"year", "12 months", "in the previous 12 months"},
	}
	usageShows       = []component.Option{{Value: "charged", Text: "Credits charged"}, {Value: "events", Text: "Events"}, {Value: "quantity", Text: "Quantity"}}
	usageBys         = []component.Option{{Value: "feature", Text: "Feature"}, {Value: "key", Text: "API key"}, {Value: "none", Text: "Nothing"}}
	usageBuckets     = []component.Option{{Value: "", Text: "Automatic"}, {Value: "hour", Text: "Hour"}, {Value: "day", Text: "Day"}, {Value: "month", Text: "Month"}}
	usageComparisons = []component.Option{{Value: "", Text: "Nothing"}, {Value: "before", Text: "Previous period"}}
	usageZones       = zoneOptions("UTC", "Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Warsaw", "Europe/Athens", "Europe/Kyiv", "Europe/Istanbul",
		"Africa/Cairo", "Africa/Lagos", "Africa/Johannesburg", "Africa/Nairobi", "America/New_York", "America/Chicago", "America/Denver", "America/Phoenix",
		"America/Los_Angeles", "America/Mexico_City", "America/Sao_Paulo", "America/Bogota", "America/Argentina/Buenos_Aires", "Asia/Jerusalem", "Asia/Dubai",
		"Asia/Karachi", "Asia/Bangkok", "Asia/Singapore", "Asia/Shanghai", "Asia/Tokyo", "Asia/Seoul", "Australia/Sydney", "Australia/Perth", "Pacific/Auckland")
)

// maxTopCustomers is how many customers of each credit the page names.
const maxTopCustomers = 10

func zoneOptions(names ...string) (list []component.Option) {
	for _, name := range names {
		list = append(list, component.Option{Value: name, Text: strings.ReplaceAll(name, "_", " ")})
	}
	return list
}

// chosen is the value of a choice, or the first.
func chosen(req *request, name string, options []component.Option) string {
	for _, o := range options {
		if o.Value == req.query(name) {
			return o.Value
		}
	}
	return options[0].Value
}

// usageInput is what the page was asked for.
type usageInput struct {
	rollups.Query
	key, before        string // of the chosen range, and its comparison in words
	show, by, zone     string
	bucket, credit     string
	compare            bool
	rangeFrom, rangeTo int64
	currentYear        int
}

func readUsageInput(req *request) (in usageInput, problems []component.Problem) {
	in = usageInput{
		show: chosen(req, "show", usageShows), by: chosen(req, "by", usageBys), zone: chosen(req, "zone", usageZones), bucket: chosen(req, "bucket", usageBuckets),
		credit: req.query("credit"), compare: req.query("compare") == "before",
	}
	in.FeatureKey, in.ByFeature, in.ByKey = req.query("feature"), in.by == "feature" || in.show == "quantity", in.by == "key"
	zone, err := rollup.Zone(in.zone)
	if err != nil { // all choices are known
		return in, []component.Problem{{Field: "zone", Message: err.Error()}}
	}
	now := time.UnixMilli(req.now()).In(zone)
	in.currentYear = now.Year()
	if problems = in.readRange(req, now); len(problems) > 0 {
		return in, problems
	}
	unit := rollup.Unit(in.bucket)
	if unit == "" {
		unit = automaticUnit(in.rangeTo - in.rangeFrom)
	}
	in.Buckets, err = rollup.NewBuckets(in.rangeFrom, in.rangeTo, unit, zone)
	if err != nil {
		return in, []component.Problem{{Field: "bucket", Message: messageOf(err)}}
	}
	return in, nil
}

// messageOf is the text of a refusal for people.
func messageOf(err error) string {
	if f, ok := err.(*fault.Fault); ok {
		return f.Message
	}
	return "Choose another range."
}

// automaticUnit makes some dozens of bars.
func automaticUnit(length int64) rollup.Unit {
	switch days := length / (24 * rollup.Hour); {
	case days <= 3:
		return rollup.ByHour
	case days <= 100:
		return rollup.ByDay
	default:
		return rollup.ByMonth
	}
}

// readRange reads the days that were typed, or a named range.
func (in *usageInput) readRange(req *request, now time.Time) (problems []component.Problem) {
	day := func(year int, month time.Month, day int) int64 {
		return time.Date(year, month, day, 0, 0, 0, 0, now.Location()).UnixMilli()
	}
	y, m, d := now.Date()
	tomorrow := day(y, m, d+1)
	if req.query("from") != "" || req.query("to") != "" {
		from, to, problems := req.days()
		if len(problems) > 0 {
			return problems
		}
		in.key, in.before, in.rangeTo = "", "in the previous period", tomorrow
		if to != 0 { // days of UTC, read as days of the zone
			t := time.UnixMilli(to).UTC()
			in.rangeTo = day(t.Date())
		}
		f := time.UnixMilli(from).UTC()
		if in.rangeFrom = day(f.Date()); from == 0 {
			t := time.UnixMilli(in.rangeTo).In(now.Location())
			in.rangeFrom = day(t.Year(), t.Month(), t.Day()-30)
		}
		if in.rangeFrom >= in.rangeTo {
			return []component.Problem{{Field: "from", Message: "Enter a day that is not after the last one."}}
		}
		return nil
	}
	chosen := usageRanges[0]
	for _, r := range usageRanges {
		if r.key == req.query("range") {
			chosen = r
		}
	}
	in.key, in.before, in.rangeTo = chosen.key, chosen.before, tomorrow
	switch chosen.key {
	case "month":
		in.rangeFrom = day(y, m, 1)
	case "last":
		in.rangeFrom, in.rangeTo = day(y, m-1, 1), day(y, m, 1)
	case "year":
		in.rangeFrom, in.rangeTo = day(y, m-11, 1), day(y, m+1, 1)
	default:
		days, _ := strconv.Atoi(chosen.key)
		in.rangeFrom = day(y, m, d+1-days)
	}
	return nil
}

func (s *Site) usageReport(req *request) (response, error) {
	in, problems := readUsageInput(req)
	list := req.listing(req.appPath("usage"), usageFilters...)
	view := supportpage.UsageExplorer{
		Path: list.path, Export: list.file(), Problems: problems, Active: len(list.filter) > 0, From: req.query("from"), To: req.query("to"), Range: in.key,
		Show: in.show, By: in.by, Bucket: in.bucket, Zone: in.zone, Feature: in.FeatureKey, Compare: req.query("compare"),
		Shows: usageShows, Bys: usageBys, Buckets: usageBuckets, Zones: usageZones, Comparisons: usageComparisons,
	}
	if in.ByFeature = true; in.by == "key" {
		in.ByFeature = in.show == "quantity"
	}
	for _, r := range usageRanges {
		tab := req.listing(list.path, usageFilters[3:]...)
		view.Ranges = append(view.Ranges, component.Tab{Label: r.label, Href: tab.at("range", r.key), Current: r.key == in.key})
	}
	var err error
	if view.FeatureFilter, err = featureFilter(req, "All features"); err != nil {
		return response{}, err
	}
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	if err != nil {
		return response{}, err
	}
	if len(problems) > 0 {
		view.Frame = req.frame("Usage", "usage")
		return invalid(supportpage.Usage(view)), nil
	}
	app := req.site.store.Rollups(req.scope())
	found, err := app.Usage(req.context, in.Query)
	if fault.Is(err, fault.FeatureNotFound) {
		found, err = rollups.Usage{}, nil
	}
	if err != nil {
		return response{}, err
	}
	in.credit = creditOf(in.credit, credits, found)
	for _, c := range credits {
		view.Credits = append(view.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	view.Credit, view.Until = in.credit, found.Until
	before, err := usageBefore(req, in, found)
	if err != nil {
		return response{}, err
	}
	view.Tiles = usageTiles(in, found, before)
	view.Chart = in.chart("usage-chart", found, before)
	view.GroupBy, view.Groups = usageGroups(req, in, found)
	if view.Top, err = usageTop(req, in); err != nil {
		return response{}, err
	}
	view.TopMonth = time.UnixMilli(in.lastMoment(req)).UTC().Format("January 2006")
	view.Frame = req.frame("Usage", "usage")
	return show(supportpage.Usage(view)), nil
}

// creditOf is the credit that was chosen, or the first that was charged.
func creditOf(key string, credits []metering.Credit, u rollups.Usage) string {
	for _, c := range credits {
		if c.Key == key {
			return key
		}
	}
	var most rollups.Row
	for _, r := range u.Rows {
		if most.CreditID.IsZero() || r.Events > most.Events {
			most = r
		}
	}
	if name, ok := u.Credits[most.CreditID]; ok {
		return name.Key
	}
	if len(credits) > 0 {
		return credits[0].Key
	}
	return ""
}

// usageBefore reads the previous period, for tiles and marks. A range as long as allowed
// has none.
func usageBefore(req *request, in usageInput, found rollups.Usage) (rollups.Usage, error) {
	buckets, err := in.Buckets.Before()
	if err != nil || len(found.Rows) == 0 {
		return rollups.Usage{}, nil
	}
	q := in.Query
	q.Buckets = buckets
	return req.site.store.Rollups(req.scope()).Usage(req.context, q)
}

// lastMoment is the last one of the range that has passed.
func (in usageInput) lastMoment(req *request) int64 { return min(in.rangeTo-1, req.now()) }

// measure is what the chart shows of a row. Charges are drawn in millionths of a credit.
func (in usageInput) measure(s rollup.Sums) (uint64, string, string) {
	switch in.show {
	case "events":
		return uint64(s.Events), count(s.Events), ""
	case "quantity":
		return wholeOf(s.Quantity.String()), component.DigitsText(s.Quantity.String()), ""
	default:
		digits := s.Charged.String()
		return wholeOf(digits[:max(0, len(digits)-3)]), component.RoundedTotalText(s.Charged), component.TotalText(s.Charged)
	}
}

func wholeOf(digits string) uint64 {
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil && len(digits) > 19 {
		return 1 << 63
	}
	return n
}

// counts reports whether a row is of the chosen credit. Events of all credits are counted
// together.
func (in usageInput) counts(u rollups.Usage, r rollups.Row) bool {
	return in.show == "events" || u.Credits[r.CreditID].Key == in.credit
}

// groupOf is the group of a row, and its name.
func (in usageInput) groupOf(u rollups.Usage, r rollups.Row) (id ids.ID, name string) {
	switch in.by {
	case "feature":
		return r.FeatureID, u.Features[r.FeatureID].Name
	case "key":
		if name = u.Keys[r.KeyID].Name; name == "" {
			name = "Deleted key"
		}
		return r.KeyID, name
	}
	return id, ""
}

// chart stacks the largest groups and puts the others together.
func (in usageInput) chart(id string, u, before rollups.Usage) component.Series {
	title := map[string]string{"charged": "Credits charged", "events": "Events", "quantity": "Quantity"}[in.show]
	series := component.Series{ID: id, Title: title + " by " + string(in.Buckets.Unit), StepName: strings.ToUpper(string(in.Buckets.Unit[:1])) + string(in.Buckets.Unit[1:])}
	if in.show == "charged" {
		series.Unit, series.Axis = in.credit, microcreditText
	}
	parts, place := in.parts(u)
	series.Parts = parts
	sums := make([][]rollup.Sums, len(in.Buckets.Starts))
	totals := make([]rollup.Sums, len(in.Buckets.Starts))
	for i := range sums {
		sums[i] = make([]rollup.Sums, len(parts))
	}
	for _, r := range u.Rows {
		if i := in.Buckets.Find(r.Start); i >= 0 && in.counts(u, r) {
			totals[i] = totals[i].Add(r.Sums)
			if group, _ := in.groupOf(u, r); len(parts) > 0 {
				sums[i][place[group]] = sums[i][place[group]].Add(r.Sums)
			}
		}
	}
	earlier := in.earlier(before)
	if earlier != nil {
		series.Before = "Previous period"
	}
	for i, start := range in.Buckets.Starts {
		value, text, _ := in.measure(totals[i])
		bar := component.Bar{Label: in.label(start), Value: value, Text: text}
		for _, s := range sums[i] {
			value, text, _ := in.measure(s)
			bar.Parts = append(bar.Parts, component.Slice{Value: value, Text: text})
		}
		if i < len(earlier) {
			bar.Before, bar.BeforeText, _ = in.measure(earlier[i])
		}
		series.Bars = append(series.Bars, bar)
	}
	return series
}

// parts are the names of the largest groups and where each group is drawn.
func (in usageInput) parts(u rollups.Usage) (names []string, place map[ids.ID]int) {
	if in.by == "none" {
		return nil, nil
	}
	size, named := map[ids.ID]rollup.Sums{}, map[ids.ID]string{}
	for _, r := range u.Rows {
		if in.counts(u, r) {
			group, name := in.groupOf(u, r)
			size[group], named[group] = size[group].Add(r.Sums), name
		}
	}
	groups := make([]ids.ID, 0, len(size))
	for group := range size {
		groups = append(groups, group)
	}
	slices.SortFunc(groups, func(a, b ids.ID) int {
		x, _, _ := in.measure(size[a])
		y, _, _ := in.measure(size[b])
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(named[a], named[b]), slices.Compare(a[:], b[:]))
	})
	place = map[ids.ID]int{}
	for i, group := range groups {
		if i < component.MaxParts-1 || len(groups) == component.MaxParts {
			names = append(names, named[group])
		} else if i == component.MaxParts-1 {
			names = append(names, "Other")
		}
		place[group] = min(i, component.MaxParts-1)
	}
	return names, place
}

// earlier are the sums of the previous period by bucket, or nil when they are not
// compared.
func (in usageInput) earlier(before rollups.Usage) []rollup.Sums {
	if !in.compare {
		return nil
	}
	buckets, err := in.Buckets.Before()
	if err != nil {
		return nil
	}
	sums := make([]rollup.Sums, len(buckets.Starts))
	for _, r := range before.Rows {
		if i := buckets.Find(r.Start); i >= 0 && in.counts(before, r) {
			sums[i] = sums[i].Add(r.Sums)
		}
	}
	return sums
}

// label names a bucket, with the year if it is another one.
func (in usageInput) label(start int64) string {
	t := time.UnixMilli(start).In(in.Buckets.Zone)
	layout := "2 Jan"
	switch {
	case in.Buckets.Unit == rollup.ByMonth:
		return t.Format("Jan 2006")
	case in.Buckets.Unit == rollup.ByHour && len(in.Buckets.Starts) <= 25:
		return t.Format("15:04")
	case in.Buckets.Unit == rollup.ByHour:
		return t.Format("2 Jan 15:04")
	case t.Year() != in.currentYear:
		layout = "2 Jan 2006"
	}
	return t.Format(layout)
}

// microcreditText writes a value of the axis.
func microcreditText(micros uint64) string {
	if micros > 1e19/1000 {
		return component.CountText(micros / 1e6)
	}
	return component.RoundedText(metering.Amount(micros * 1000))
}

// usageTiles compare the range with the one before.
func usageTiles(in usageInput, u, before rollups.Usage) (tiles []component.Figure) {
	sum := func(u rollups.Usage) (all rollup.Sums, charged metering.Total) {
		for _, r := range u.Rows {
			all = all.Add(r.Sums)
			if u.Credits[r.CreditID].Key == in.credit {
				charged = charged.Join(r.Charged)
			}
		}
		return all, charged
	}
	now, charged := sum(u)
	then, chargedThen := sum(before)
	return []component.Figure{
		{Label: "Charged", Value: component.RoundedTotalText(charged), Exact: component.TotalText(charged) + " " + in.credit, Unit: in.credit, Before: againstTotal(charged, chargedThen, in.before)},
		{Label: "Events", Value: count(now.Events), Before: against(now.Events, then.Events, in.before)},
		{Label: "Deduplicated", Value: count(now.Deduplicated), Before: against(now.Deduplicated, then.Deduplicated, in.before)},
	}
}

// usageGroups are the groups of the whole range, by what was charged.
func usageGroups(req *request, in usageInput, u rollups.Usage) (head string, list []supportpage.UsageGroup) {
	type group struct{ id, credit ids.ID }
	sums := map[group]rollup.Sums{}
	var order []group
	byKey := in.by == "key"
	for _, r := range u.Rows {
		g := group{r.FeatureID, r.CreditID}
		if byKey {
			g.id = r.KeyID
		}
		if _, known := sums[g]; !known {
			order = append(order, g)
		}
		sums[g] = sums[g].Add(r.Sums)
	}
	slices.SortStableFunc(order, func(a, b group) int { return cmp.Compare(sums[b].Events, sums[a].Events) })
	for _, g := range order[:min(len(order), maxOptions)] {
		s := sums[g]
		row := supportpage.UsageGroup{
			Events: s.Events, Credit: u.Credits[g.credit].Key, Charged: component.RoundedTotalText(s.Charged), Exact: component.TotalText(s.Charged),
		}
		if byKey {
			row.Name, row.Detail = u.Keys[g.id].Name, "…"+u.Keys[g.id].Key
		} else {
			f := u.Features[g.id]
			row.Name, row.Detail, row.Href = f.Name, f.Key, listing{path: req.appPath("events")}.at("feature", f.Key)
			row.Quantity, row.Unit = component.DigitsText(s.Quantity.String()), f.Unit
			row.Included = component.DigitsText(s.Included.String())
		}
		list = append(list, row)
	}
	if byKey {
		return "API key", list
	}
	return "Feature", list
}

func usageTop(req *request, in usageInput) (list []supportpage.UsageCustomer, err error) {
	top, err := req.site.store.Rollups(req.scope()).Top(req.context, in.lastMoment(req), maxTopCustomers)
	for _, w := range top {
		if w.Credit == in.credit {
			list = append(list, supportpage.UsageCustomer{
				Identity: w.Identity, Href: req.walletPath(w.WalletID) + "/usage", Events: w.Events,
				Charged: component.RoundedTotalText(w.Charged), Exact: component.TotalText(w.Charged), Credit: w.Credit,
			})
		}
	}
	return list, err
}

// usageExport is a row for each bucket and group.
func (s *Site) usageExport(req *request) (response, error) {
	in, problems := readUsageInput(req)
	if len(problems) > 0 {
		return redirect(req.listing(req.appPath("usage"), usageFilters...).at("", "")), nil
	}
	in.ByFeature = in.by == "feature"
	found, err := req.site.store.Rollups(req.scope()).Usage(req.context, in.Query)
	if err != nil {
		return response{}, err
	}
	var rows [][]string
	for _, r := range found.Rows[:min(len(found.Rows), maxExport)] {
		quantity, included := "", ""
		if in.ByFeature || in.FeatureKey != "" {
			quantity, included = r.Quantity.String(), r.Included.String()
		}
		feature := found.Features[r.FeatureID].Key
		if feature == "" {
			feature = in.FeatureKey
		}
		rows = append(rows, []string{
			timestamp(r.Start), timestamp(in.Buckets.EndOf(r.Start)), feature, found.Keys[r.KeyID].Name, found.Credits[r.CreditID].Key,
			strconv.FormatInt(r.Events, 10), strconv.FormatInt(r.Deduplicated, 10), quantity, included, r.Charged.Credits(), r.Charged.String(),
		})
	}
	return csvFile(exportName(req, "usage", len(found.Rows) > maxExport), []string{
		"start", "end", "feature", "api_key", "credit", "events", "deduplicated_events", "quantity", "included_quantity", "charged_credits", "charged_nanocredits",
	}, rows), nil
}

// walletUsageChart is what a customer was charged in the last 30 days, by feature.
func walletUsageChart(req *request, identity string) (component.Series, error) {
	zone, err := rollup.Zone("")
	if err != nil {
		return component.Series{}, err
	}
	in := usageInput{show: "charged", by: "feature", currentYear: time.UnixMilli(req.now()).UTC().Year()}
	today := metering.DayOf(req.now())
	if in.Buckets, err = rollup.NewBuckets(today.End-30*24*rollup.Hour, today.End, rollup.ByDay, zone); err != nil {
		return component.Series{}, err
	}
	in.Identity, in.ByFeature = identity, true
	found, err := req.site.store.Rollups(req.scope()).Usage(req.context, in.Query)
	if err != nil {
		return component.Series{}, err
	}
	in.credit = creditOf("", nil, found)
	return in.chart("wallet-usage-chart", found, rollups.Usage{}), nil
}
