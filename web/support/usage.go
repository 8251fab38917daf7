package support

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/metering/rollup"
	"purser/store"
	"purser/store/rollups"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// maxTopCustomers is how many customers of each credit the page names.
const maxTopCustomers = 10

func (s *Pages) usageReport(req *site.Request, bys []component.Option) (site.Response, error) {
	in, problems := readUsageInput(req, bys)
	list := req.Listing(req.AppPath("usage"), usageFilters...)
	view := supportpage.UsageExplorer{
		Path: list.Path, Export: list.File(), Answered: component.Answered{Problems: problems}, Active: len(list.Filter) > 0, From: req.Query("from"), To: req.Query("to"), Range: in.key,
		Show: in.show, By: in.by, Bucket: in.bucket, Zone: in.zone, Feature: in.FeatureKey, Identity: in.Identity, Compare: req.Query("compare"),
		Credit: in.credit, CreditChosen: in.credit != "",
		Shows: usageShows, Bys: bys, Buckets: usageBuckets, Zones: zonesOf(req), Comparisons: usageComparisons,
	}
	// The table lists features unless it lists keys, and a quantity has a feature's unit.
	in.ByFeature = in.Dimension == "" && (in.by != "key" || in.show == "quantity")
	for _, r := range usageRanges {
		tab := req.Listing(list.Path, usageFilters[3:]...)
		view.Ranges = append(view.Ranges, component.Tab{Label: r.label, Href: tab.At("range", r.key), Current: r.key == in.key && in.months == ""})
	}
	var err error
	if view.FeatureFilter, err = featureFilter(req, "All features"); err != nil {
		return site.Response{}, err
	}
	credits, _, err := req.Tenant().Credits(req.Context, store.Page{Limit: site.MaxOptions})
	if err != nil {
		return site.Response{}, err
	}
	for _, c := range credits {
		view.Credits = append(view.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	if len(problems) > 0 {
		view.Frame = req.Frame("Usage", "usage")
		return site.Invalid(supportpage.Usage(view)), nil
	}
	found, err := in.find(req, credits)
	switch {
	case fault.Is(err, fault.FeatureNotFound):
		found = rollups.Usage{}
	case fault.Is(err, fault.WalletNotFound):
		view.Problems = []component.Problem{{Field: "identity", Message: "No customer has this identity. Enter it in full."}}
	case fault.Is(err, fault.InvalidRequest):
		view.Problems = []component.Problem{{Field: "bucket", Message: messageOf(err)}}
	case err != nil:
		return site.Response{}, err
	}
	if len(view.Problems) > 0 {
		view.Frame = req.Frame("Usage", "usage")
		return site.Invalid(supportpage.Usage(view)), nil
	}
	in.credit = creditOf(in.credit, credits, found)
	view.Credit, view.Until = in.credit, found.Until
	before, err := usageBefore(req, in, found)
	if err != nil {
		return site.Response{}, err
	}
	view.Tiles = usageTiles(in, found, before)
	view.Chart, view.Empty = in.chart("usage-chart", found, before), usageEmpty(in, found, list)
	view.GroupBy, view.Groups = usageGroups(req, in, found)
	view.Partial, view.Months = in.Dimension != "", in.months
	view.Clock = usageClock(req, in, list)
	if view.HasTop = in.by != byCustomer && in.Identity == ""; view.HasTop {
		if view.Top, err = usageTop(req, in); err != nil {
			return site.Response{}, err
		}
	}
	view.TopMonth = time.UnixMilli(in.lastMoment(req)).UTC().Format("January 2006")
	view.Frame = req.Frame("Usage", "usage")
	return site.Show(supportpage.Usage(view)), nil
}

// find reads the range, in the groups that were chosen.
func (in usageInput) find(req *site.Request, credits []metering.Credit) (rollups.Usage, error) {
	if in.by == byCustomer && in.Identity == "" {
		return in.customerUsage(req, credits)
	}
	return in.read(req, in.Query, maxValues)
}

// usageClock says which time zone the page counts by, and leads to the other one: that of
// the viewer, or UTC.
func usageClock(req *site.Request, in usageInput, list site.Listing) supportpage.UsageClock {
	c := supportpage.UsageClock{Zone: zoneText(in.Buckets.Zone.String()), Note: in.zoneNote}
	other := site.Listing{Path: list.Path, Filter: list.Without("zone")}
	switch viewer := req.Zone(); {
	case !isUTC(in.Buckets.Zone):
		c.Other, c.OtherHref = "UTC", other.At("zone", "UTC")
		if isUTC(viewer) {
			c.OtherHref = other.At("", "")
		}
	case !isUTC(viewer) && in.zoneNote == "":
		c.Other, c.OtherHref = "your time zone", other.At("", "")
	}
	return c
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

// usageGroups are the groups of the whole range, the largest of the chosen credit first and
// all others last.
func usageGroups(req *site.Request, in usageInput, u rollups.Usage) (head string, list []supportpage.UsageGroup) {
	type group struct{ id, credit ids.ID }
	sums, rows := map[group]rollup.Sums{}, map[group]rollups.Row{}
	var order []group
	for _, r := range u.Rows {
		id, _ := in.tableGroupOf(u, r)
		g := group{id, r.CreditID}
		if _, known := rows[g]; !known {
			order, rows[g] = append(order, g), r
		}
		sums[g] = sums[g].Add(r.Sums)
	}
	slices.SortStableFunc(order, func(a, b group) int {
		x, _, _ := in.measure(sums[a])
		y, _, _ := in.measure(sums[b])
		return cmp.Or(lastFirst(in.isRest(rows[a]), in.isRest(rows[b])), lastFirst(!in.counts(u, rows[a]), !in.counts(u, rows[b])), cmp.Compare(y, x))
	})
	for _, g := range order[:min(len(order), site.MaxOptions)] {
		s := sums[g]
		_, name := in.tableGroupOf(u, rows[g])
		row := supportpage.UsageGroup{
			Name: name, Events: s.Events, Credit: u.Credits[g.credit].Key, Charged: component.RoundedTotalText(s.Charged), Exact: component.TotalText(s.Charged),
		}
		switch {
		case in.by == byCustomer && in.Identity == "":
			if !g.id.IsZero() {
				row.Identity, row.Href = name, walletUsageLink(req, g.id)
			}
		case in.by == "key":
			if shown := u.Keys[g.id].Key; shown != "" {
				row.Detail = "…" + shown
			}
		case in.Dimension != "":
			if !in.isRest(rows[g]) {
				row.Identity = name
			}
		default:
			f := u.Features[g.id]
			row.Detail, row.Href = f.Key, in.eventsHref(req, f.Key)
			row.Quantity, row.Unit = component.DigitsText(s.Quantity.String()), component.Units(int64(wholeOf(s.Quantity.String())), f.Unit)
			row.Included = component.DigitsText(s.Included.String())
		}
		list = append(list, row)
	}
	switch {
	case in.by == byCustomer && in.Identity == "":
		return "Customer", list
	case in.by == "key":
		return "API key", list
	case in.Dimension == rollup.Entity:
		return "Entity", list
	case in.Dimension != "":
		return in.Dimension.PropertyName(), list
	}
	return "Feature", list
}

// lastFirst orders what is last behind what is not.
func lastFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// tableGroupOf is the group of a row in the table, which lists features where the chart
// isn't split.
func (in usageInput) tableGroupOf(u rollups.Usage, r rollups.Row) (id ids.ID, name string) {
	if in.by == "none" || in.by == byCustomer && in.Identity != "" {
		in.by = "feature"
	}
	return in.groupOf(u, r)
}

// eventsHref leads to the events of a feature in the range, if the list of events counts
// days as the page does.
func (in usageInput) eventsHref(req *site.Request, feature string) string {
	list := site.Listing{Path: req.AppPath("events"), Filter: url.Values{"feature": {feature}}}
	if in.Identity != "" {
		list.Filter.Set("identity", in.Identity)
	}
	if zone := req.Zone(); in.Buckets.Zone.String() == zone.String() {
		list.Filter.Set("from", time.UnixMilli(in.rangeFrom).In(zone).Format(dayLayout))
		list.Filter.Set("to", time.UnixMilli(in.lastMoment(req)).In(zone).Format(dayLayout))
	}
	return list.At("", "")
}

// walletUsageLink is the URL of a wallet's usage, or "" for members who may not read
// wallets.
func walletUsageLink(req *site.Request, id ids.ID) string {
	return req.LinkIfPermitted(tenancy.WalletsRead, "wallets", id.Format(ids.Wallet), "usage")
}

func usageTop(req *site.Request, in usageInput) (list []supportpage.UsageCustomer, err error) {
	top, err := req.Site.Store.Rollups(req.Scope()).Top(req.Context, in.lastMoment(req), maxTopCustomers)
	for _, w := range top {
		if w.Credit == in.credit {
			list = append(list, supportpage.UsageCustomer{
				Identity: w.Identity, Href: walletUsageLink(req, w.WalletID), Events: w.Events,
				Charged: component.RoundedTotalText(w.Charged), Exact: component.TotalText(w.Charged), Credit: w.Credit,
			})
		}
	}
	return list, err
}

// usageExport is a row for each bucket and group.
func (s *Pages) usageExport(req *site.Request, bys []component.Option) (site.Response, error) {
	in, problems := readUsageInput(req, bys)
	if len(problems) > 0 {
		return site.Redirect(req.Listing(req.AppPath("usage"), usageFilters...).At("", "")), nil
	}
	in.ByFeature = in.by == "feature"
	found, err := in.exported(req)
	if err != nil {
		return site.Response{}, err
	}
	var rows [][]string
	for _, r := range found.Rows[:min(len(found.Rows), maxExport)] {
		quantity, included := "", ""
		if in.ByFeature || in.FeatureKey != "" {
			quantity, included = r.Quantity.String(), r.Included.String()
		}
		feature := cmp.Or(found.Features[r.FeatureID].Key, in.FeatureKey)
		rows = append(rows, []string{
			site.Timestamp(r.Start), site.Timestamp(in.Buckets.EndOf(r.Start)), feature, found.Keys[r.KeyID].Name, found.Credits[r.CreditID].Key,
			strconv.FormatInt(r.Events, 10), strconv.FormatInt(r.Deduplicated, 10), quantity, included, r.Charged.Credits(), r.Charged.String(), r.Value, cmp.Or(found.Identities[r.WalletID], in.Identity),
		})
	}
	return site.CSVFile(exportName(req, "usage"+site.Part("first", len(rows), len(found.Rows) > maxExport)), []string{
		"start", "end", "feature", "api_key", "credit", "events", "deduplicated_events", "quantity", "included_quantity", "charged_credits", "charged_nanocredits", "value", "customer",
	}, rows), nil
}

// exported are the rows of the export, at most one more than it has.
func (in usageInput) exported(req *site.Request) (rollups.Usage, error) {
	app := req.Site.Store.Rollups(req.Scope())
	switch {
	case in.Dimension != "":
		return app.DimensionUsage(req.Context, in.Query, rollups.Row{}, maxExport+1)
	case in.by == byCustomer && in.Identity == "":
		return in.exportedCustomers(req)
	}
	return app.Usage(req.Context, in.Query, rollups.Row{}, maxExport+1)
}
