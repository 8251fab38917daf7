package support

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/rollups"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// maxTopCustomers is how many customers of each credit the page names.
const maxTopCustomers = 10

func (s *Pages) usageReport(req *site.Request) (site.Response, error) {
	bys, err := groupings(req)
	if err != nil {
		return site.Response{}, err
	}
	in, problems := readUsageInput(req, bys)
	list := req.Listing(req.AppPath("usage"), usageFilters...)
	view := supportpage.UsageExplorer{
		Path: list.Path, Export: list.File(), Problems: problems, Active: len(list.Filter) > 0, From: req.Query("from"), To: req.Query("to"), Range: in.key,
		Show: in.show, By: in.by, Bucket: in.bucket, Zone: in.zone, Feature: in.FeatureKey, Compare: req.Query("compare"),
		Shows: usageShows, Bys: bys, Buckets: usageBuckets, Zones: usageZones, Comparisons: usageComparisons,
	}
	// The table lists features unless it lists keys, and a quantity has a feature's unit.
	in.ByFeature = in.Dimension == "" && (in.by != "key" || in.show == "quantity")
	for _, r := range usageRanges {
		tab := req.Listing(list.Path, usageFilters[3:]...)
		view.Ranges = append(view.Ranges, component.Tab{Label: r.label, Href: tab.At("range", r.key), Current: r.key == in.key})
	}
	if view.FeatureFilter, err = featureFilter(req, "All features"); err != nil {
		return site.Response{}, err
	}
	credits, _, err := req.Tenant().Credits(req.Context, store.Page{Limit: site.MaxOptions})
	if err != nil {
		return site.Response{}, err
	}
	if len(problems) > 0 {
		view.Frame = req.Frame("Usage", "usage")
		return site.Invalid(supportpage.Usage(view)), nil
	}
	found, err := in.read(req, in.Query, maxValues)
	if fault.Is(err, fault.FeatureNotFound) {
		found, err = rollups.Usage{}, nil
	}
	if err != nil {
		return site.Response{}, err
	}
	in.credit = creditOf(in.credit, credits, found)
	for _, c := range credits {
		view.Credits = append(view.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	view.Credit, view.Until = in.credit, found.Until
	before, err := usageBefore(req, in, found)
	if err != nil {
		return site.Response{}, err
	}
	view.Tiles = usageTiles(in, found, before)
	view.Chart = in.chart("usage-chart", found, before)
	view.GroupBy, view.Groups = usageGroups(req, in, found)
	view.Partial = in.Dimension != ""
	if view.Top, err = usageTop(req, in); err != nil {
		return site.Response{}, err
	}
	view.TopMonth = time.UnixMilli(in.lastMoment(req)).UTC().Format("January 2006")
	view.Frame = req.Frame("Usage", "usage")
	return site.Show(supportpage.Usage(view)), nil
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

// usageBefore reads the previous period: its sum for the tiles, and its buckets for the
// marks of a comparison. A range as long as allowed has none.
func usageBefore(req *site.Request, in usageInput, found rollups.Usage) (rollups.Usage, error) {
	buckets, err := in.Buckets.Before()
	if err != nil || len(found.Rows) == 0 {
		return rollups.Usage{}, nil
	}
	q := in.Query
	if !in.compare {
		buckets = buckets.Whole()
	}
	q.Buckets, q.ByFeature, q.ByKey = buckets, false, false
	return in.read(req, q, 0)
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
func usageGroups(req *site.Request, in usageInput, u rollups.Usage) (head string, list []supportpage.UsageGroup) {
	type group struct{ id, credit ids.ID }
	sums := map[group]rollup.Sums{}
	var order []group
	byKey, values := in.by == "key", map[ids.ID]string{}
	for _, r := range u.Rows {
		g := group{r.FeatureID, r.CreditID}
		switch {
		case byKey:
			g.id = r.KeyID
		case in.Dimension != "":
			g.id = r.ValueHash
			values[g.id] = r.Value
		}
		if _, known := sums[g]; !known {
			order = append(order, g)
		}
		sums[g] = sums[g].Add(r.Sums)
	}
	slices.SortStableFunc(order, func(a, b group) int { return cmp.Compare(sums[b].Events, sums[a].Events) })
	for _, g := range order[:min(len(order), site.MaxOptions)] {
		s := sums[g]
		row := supportpage.UsageGroup{
			Events: s.Events, Credit: u.Credits[g.credit].Key, Charged: component.RoundedTotalText(s.Charged), Exact: component.TotalText(s.Charged),
		}
		switch {
		case byKey:
			row.Name = keyName(u, g.id)
			if shown := u.Keys[g.id].Key; shown != "" {
				row.Detail = "…" + shown
			}
		case in.Dimension != "":
			row.Name = valueName(values[g.id])
		default:
			f := u.Features[g.id]
			row.Name, row.Detail, row.Href = f.Name, f.Key, site.Listing{Path: req.AppPath("events")}.At("feature", f.Key)
			row.Quantity, row.Unit = component.DigitsText(s.Quantity.String()), f.Unit
			row.Included = component.DigitsText(s.Included.String())
		}
		list = append(list, row)
	}
	switch {
	case byKey:
		return "API key", list
	case in.Dimension == rollup.Entity:
		return "Entity", list
	case in.Dimension != "":
		return in.Dimension.PropertyName(), list
	}
	return "Feature", list
}

func usageTop(req *site.Request, in usageInput) (list []supportpage.UsageCustomer, err error) {
	top, err := req.Site.Store.Rollups(req.Scope()).Top(req.Context, in.lastMoment(req), maxTopCustomers)
	for _, w := range top {
		if w.Credit == in.credit {
			list = append(list, supportpage.UsageCustomer{
				Identity: w.Identity, Href: req.WalletPath(w.WalletID) + "/usage", Events: w.Events,
				Charged: component.RoundedTotalText(w.Charged), Exact: component.TotalText(w.Charged), Credit: w.Credit,
			})
		}
	}
	return list, err
}

// usageExport is a row for each bucket and group.
func (s *Pages) usageExport(req *site.Request) (site.Response, error) {
	bys, err := groupings(req)
	if err != nil {
		return site.Response{}, err
	}
	in, problems := readUsageInput(req, bys)
	if len(problems) > 0 {
		return site.Redirect(req.Listing(req.AppPath("usage"), usageFilters...).At("", "")), nil
	}
	in.ByFeature = in.by == "feature"
	app := req.Site.Store.Rollups(req.Scope())
	found, err := app.Usage(req.Context, in.Query)
	if in.Dimension != "" {
		found, err = app.DimensionUsage(req.Context, in.Query, rollups.Row{}, maxExport+1)
	}
	if err != nil {
		return site.Response{}, err
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
			site.Timestamp(r.Start), site.Timestamp(in.Buckets.EndOf(r.Start)), feature, found.Keys[r.KeyID].Name, found.Credits[r.CreditID].Key,
			strconv.FormatInt(r.Events, 10), strconv.FormatInt(r.Deduplicated, 10), quantity, included, r.Charged.Credits(), r.Charged.String(), r.Value,
		})
	}
	return site.CSVFile(exportName(req, "usage", len(found.Rows) > maxExport), []string{
		"start", "end", "feature", "api_key", "credit", "events", "deduplicated_events", "quantity", "included_quantity", "charged_credits", "charged_nanocredits", "value",
	}, rows), nil
}
