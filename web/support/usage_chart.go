package support

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store/rollups"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// measure is what the chart shows of a row. Charges are drawn in millionths of a credit, and
// smaller ones as one.
func (in usageInput) measure(s rollup.Sums) (uint64, string, string) {
	switch in.show {
	case "events":
		return uint64(s.Events), count(s.Events), ""
	case "quantity":
		return wholeOf(s.Quantity.String()), component.DigitsText(s.Quantity.String()), ""
	default:
		digits := s.Charged.String()
		micros := wholeOf(digits[:max(0, len(digits)-3)])
		if !s.Charged.IsZero() {
			micros = max(micros, 1)
		}
		return micros, component.RoundedTotalText(s.Charged), component.TotalText(s.Charged)
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
	switch {
	case in.isRest(r):
		return r.ValueHash, "All others"
	case in.by == "feature":
		return r.FeatureID, u.Features[r.FeatureID].Name
	case in.by == "key":
		return r.KeyID, keyName(u, r.KeyID)
	case in.by == byCustomer:
		return r.WalletID, u.Identities[r.WalletID]
	case in.Dimension != "":
		return r.ValueHash, r.Value
	}
	return id, ""
}

// isRest reports whether the row is of what has no group of its own.
func (in usageInput) isRest(r rollups.Row) bool {
	return in.by == byCustomer && in.Identity == "" && r.WalletID.IsZero() || in.Dimension != "" && r.Value == rollup.OtherValue
}

// keyName is the name of an API key. The sums of a deleted key stay.
func keyName(u rollups.Usage, id ids.ID) string {
	if name := u.Keys[id].Name; name != "" {
		return name
	}
	return "Deleted key"
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

// usageEmpty says why the chart has nothing to draw: there can be usage without charges or
// a quantity.
func usageEmpty(in usageInput, u rollups.Usage, list site.Listing) supportpage.UsageEmpty {
	if len(u.Rows) == 0 {
		return supportpage.UsageEmpty{Title: "No usage in this range", Text: "Usage is added a minute or two after it happens."}
	}
	empty := supportpage.UsageEmpty{Events: list.At("show", "events")}
	switch {
	case !slices.ContainsFunc(u.Rows, func(r rollups.Row) bool { return in.counts(u, r) }):
		empty.Title, empty.Text = "No usage in this credit", "Usage in this range was charged in another credit."
	case in.show == "quantity":
		empty.Title, empty.Text = "No quantity in this range", "All usage in this range was deduplicated."
	default:
		empty.Title, empty.Text = "All usage in this range was free", "It was covered by allowances or deduplicated, or its price is 0."
	}
	return empty
}

// parts are the names of the largest groups and where each group is drawn. All others are
// drawn together, after them.
func (in usageInput) parts(u rollups.Usage) (names []string, place map[ids.ID]int) {
	if in.by == "none" || in.by == byCustomer && in.Identity != "" {
		return nil, nil
	}
	size, named, rest := map[ids.ID]rollup.Sums{}, map[ids.ID]string{}, map[ids.ID]bool{}
	for _, r := range u.Rows {
		if in.counts(u, r) {
			group, name := in.groupOf(u, r)
			size[group], named[group], rest[group] = size[group].Add(r.Sums), name, in.isRest(r)
		}
	}
	groups := slices.SortedFunc(maps.Keys(size), func(a, b ids.ID) int {
		x, _, _ := in.measure(size[a])
		y, _, _ := in.measure(size[b])
		return cmp.Or(lastFirst(rest[a], rest[b]), cmp.Compare(y, x), cmp.Compare(named[a], named[b]), slices.Compare(a[:], b[:]))
	})
	place = map[ids.ID]int{}
	for i, group := range groups {
		if i < component.MaxParts-1 || len(groups) == component.MaxParts {
			names = append(names, component.ShortIdentity(named[group]))
		} else if i == component.MaxParts-1 {
			names = append(names, "All others")
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

// walletUsageChart is what a customer was charged in the last 30 days, by feature.
func walletUsageChart(req *site.Request, identity string) (component.Series, error) {
	in := usageInput{show: "charged", by: "feature"}
	zone, err := in.readZone(req)
	if err != nil {
		return component.Series{}, err
	}
	now := time.UnixMilli(req.Now()).In(zone)
	in.currentYear = now.Year()
	from, to := now.AddDate(0, 0, -29), now
	if in.Buckets, err = rollup.NewBuckets(from.UnixMilli(), to.UnixMilli()+1, rollup.ByDay, zone); err != nil {
		return component.Series{}, err
	}
	in.Identity, in.ByFeature = identity, true
	found, err := readUsage(req, in.Query)
	if fault.Is(err, fault.InvalidRequest) { // of too many features
		in.by, in.ByFeature = "none", false
		found, err = readUsage(req, in.Query)
	}
	if err != nil {
		return component.Series{}, err
	}
	in.credit = creditOf("", nil, found)
	return in.chart("wallet-usage-chart", found, rollups.Usage{}), nil
}
