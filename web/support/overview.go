package support

import (
	"context"
	"math/big"
	"slices"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store/payments"
	"purser/store/reports"
	"purser/store/rollups"
	"purser/store/verify"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// periods are the choices of the overview. The first is the default.
var periods = []struct {
	key, label, before string
	days               int
}{
	{"30", "30 days", "in the previous 30 days", 30},
	{"7", "7 days", "in the previous 7 days", 7},
	{"1", "Today", "all day yesterday", 1},
	{"month", "This month", "in the same number of days before", 0},
}

// overview is the first page of an application. Members who may not read wallets get the
// first page that they may open.
func (s *Pages) overview(req *site.Request) (site.Response, error) {
	if err := req.Require(tenancy.WalletsRead); err != nil {
		if first := req.FirstPage(req.App); first != "" {
			return site.Redirect(first), nil
		}
		req.LogRefusal("access refused", req.User.ID, "route", "GET "+site.AppPrefix, "needs", tenancy.WalletsRead.String(), "organization", req.Org.ID.Format(ids.Organization))
		return site.Response{}, err
	}
	chosen := periods[0]
	for _, period := range periods {
		if period.key == req.Query("days") {
			chosen = period
		}
	}
	days := chosen.days
	if days == 0 {
		days = time.UnixMilli(req.Now()).UTC().Day()
	}
	var o reports.Overview
	var r overviewRest
	// One takes about as long as the other.
	err := together(req.Context, func(ctx context.Context) (err error) {
		o, err = req.Reports().Overview(ctx, req.Now(), days)
		return err
	}, func(ctx context.Context) error {
		return r.read(ctx, req, reports.OverviewPeriod(req.Now(), days))
	})
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.Overview{
		Money: overviewMoney(r.finance, o), Path: req.AppPath(), Tiles: overviewTiles(req, o, chosen.before),
		Uses:   dayChart(req, o, "uses-chart", "Usage", "events", func(d reports.OverviewDay) int64 { return d.Uses }),
		Denied: dayChart(req, o, "denied-chart", "Denials", "denials", func(d reports.OverviewDay) int64 { return d.Denied }),
		Steps:  overviewSteps(req, r.progress), Attention: append(failedVerifications(r.runs), overviewConcerns(req, r.attention, r.unconnected, req.Zone())...), Verified: verifiedRows(r.runs), Used: r.progress.IsUsed,
		Quickstart: req.LinkIfPermitted(tenancy.WalletsRead, "quickstart"), Events: req.LinkIfPermitted(tenancy.JournalRead, "events"), Check: req.LinkIfPermitted(tenancy.JournalRead, "check"),
	}
	for _, period := range periods {
		view.Days = append(view.Days, component.Tab{
			Label: period.label, Href: site.Listing{Path: view.Path}.At("days", period.key), Current: period == chosen,
		})
	}
	for _, f := range o.Top {
		view.Top = append(view.Top, supportpage.TopFeature{Key: f.FeatureKey, Href: usageHref(req, f.FeatureKey), Uses: f.Uses, Denied: f.Denied})
	}
	for _, r := range o.Reasons {
		view.Reasons = append(view.Reasons, supportpage.TopReason{Text: reasonText(r.Code), Code: string(r.Code), Href: reasonHref(req, r.Code), Count: r.Count})
	}
	view.Frame = req.Frame("Overview", "overview")
	return site.Show(supportpage.OverviewPage(view)), nil
}

// overviewRest is what an overview shows beside its tiles and charts.
type overviewRest struct {
	attention   reports.Attention
	unconnected bool
	progress    reports.Progress
	runs        []verify.Run
	finance     *rollups.Finance // for members who may read subscriptions
}

func (r *overviewRest) read(ctx context.Context, req *site.Request, period metering.Period) (err error) {
	app := req.Reports()
	if r.attention, err = app.Attention(ctx, req.Site.Now()); err != nil {
		return err
	}
	if r.unconnected, err = lacksProvider(ctx, req); err != nil {
		return err
	}
	if r.progress, err = app.Progress(ctx, req.Site.Now()); err != nil {
		return err
	}
	if r.runs, err = recentVerifications(ctx, req); err != nil || !req.May(tenancy.SubscriptionsRead) {
		return err
	}
	finance, err := req.Site.Store.Rollups(req.Scope()).Finance(ctx, period.Start, period.End, req.Now())
	r.finance = &finance
	return err
}

// usageHref leads to the usage of a feature.
func usageHref(req *site.Request, feature string) string {
	if !req.May(tenancy.JournalRead) {
		return ""
	}
	return site.Listing{Path: req.AppPath("usage")}.At("feature", feature)
}

// reasonHref leads to the denials of a reason, or to its documentation.
func reasonHref(req *site.Request, code fault.Code) string {
	if !req.May(tenancy.JournalRead) {
		return "/docs/errors/" + string(code)
	}
	return site.Listing{Path: req.AppPath("denials")}.At("reason", string(code))
}

// overviewTiles compare the period with the one before. Charged and deposited amounts have a
// tile per credit, because credits cannot be summed.
func overviewTiles(req *site.Request, o reports.Overview, before string) (tiles []component.Figure) {
	tiles = append(tiles, totals("Charged", req.LinkIfPermitted(tenancy.JournalRead, "events"), o.Now.Charged, o.Before.Charged, before)...)
	tiles = append(tiles,
		component.Figure{Label: "Denied", Value: count(o.Now.Denied), Before: against(o.Now.Denied, o.Before.Denied, before), Href: req.LinkIfPermitted(tenancy.JournalRead, "denials")},
		component.Figure{
			Label: "Active wallets", Value: about(o.Now.ActiveExact) + count(o.Now.Active),
			Before: against(o.Now.Active, o.Before.Active, before), Href: req.LinkIfPermitted(tenancy.WalletsRead, "wallets"),
		})
	return append(tiles, totals("Deposits", req.LinkIfPermitted(tenancy.DepositsRead, "deposits"), o.Now.Deposited, o.Before.Deposited, before)...)
}

func about(exact bool) string {
	if exact {
		return ""
	}
	return "≈ "
}

// maxCreditTiles is how many credits get a tile.
const maxCreditTiles = 3

func totals(label, href string, now, before []reports.CreditTotal, words string) (tiles []component.Figure) {
	merged := now
	for _, t := range before {
		if !slices.ContainsFunc(now, func(n reports.CreditTotal) bool { return n.CreditID == t.CreditID }) {
			merged = append(merged, reports.CreditTotal{CreditID: t.CreditID, CreditKey: t.CreditKey})
		}
	}
	if len(merged) == 0 {
		return []component.Figure{{Label: label, Value: "0", Before: "None " + words, Href: href}}
	}
	for _, t := range merged[:min(len(merged), maxCreditTiles)] {
		tiles = append(tiles, component.Figure{
			Label: label, Value: component.RoundedTotalText(t.Total), Exact: component.TotalText(t.Total) + " " + t.CreditKey, Unit: t.CreditKey,
			Before: againstTotal(t.Total, totalOf(before, t), words), Href: href,
		})
	}
	return tiles
}

func totalOf(list []reports.CreditTotal, of reports.CreditTotal) metering.Total {
	for _, t := range list {
		if t.CreditID == of.CreditID {
			return t.Total
		}
	}
	return metering.Total{}
}

func against(now, before int64, words string) string {
	return compared(big.NewInt(now), big.NewInt(before), count(before), words)
}

func againstTotal(now, before metering.Total, words string) string {
	number := func(t metering.Total) *big.Int {
		n, _ := new(big.Int).SetString(t.String(), 10)
		return n
	}
	return compared(number(now), number(before), component.RoundedTotalText(before), words)
}

// compared formats the change from the period before, in whole percent.
func compared(now, before *big.Int, beforeText, words string) string {
	switch {
	case before.Sign() == 0 && now.Sign() == 0:
		return "No change"
	case before.Sign() == 0:
		return "None " + words
	case now.Cmp(before) == 0:
		return "No change"
	}
	percent := new(big.Int).Sub(now, before)
	more := percent.Sign() > 0
	percent.Abs(percent).Mul(percent, big.NewInt(100)).Quo(percent, before)
	word := "Down "
	if more {
		word = "Up "
	}
	return word + component.DigitsText(percent.String()) + "% from " + beforeText + " " + words
}

// dayChart includes the year of a day in another year: a test clock may be ahead.
func dayChart(req *site.Request, o reports.Overview, id, title, unit string, value func(reports.OverviewDay) int64) component.Series {
	series := component.Series{ID: id, Title: title + " by day", Unit: unit, StepName: "Day"}
	thisYear := time.UnixMilli(req.Site.Now()).UTC().Year()
	if len(o.Hours) > 0 {
		series.Title, series.StepName = title+" by hour", "Hour"
		for _, hour := range o.Hours {
			series.Bars = append(series.Bars, component.Bar{Label: time.UnixMilli(hour.Day).UTC().Format("15:04"), Value: uint64(value(hour)), Text: count(value(hour))})
		}
		return series
	}
	for _, day := range o.Days {
		date := time.UnixMilli(day.Day).UTC()
		label := date.Format("2 Jan")
		if date.Year() != thisYear {
			label = date.Format("2 Jan 2006")
		}
		series.Bars = append(series.Bars, component.Bar{
			Label: label, Value: uint64(value(day)), Text: count(value(day)),
		})
	}
	return series
}

// overviewSteps are the setup steps, until all are done.
func overviewSteps(req *site.Request, p reports.Progress) []component.Step {
	if p.HasCredit && p.HasFeature && p.IsFunded && p.IsUsed {
		return nil
	}
	return []component.Step{
		{Text: "Create a credit", Hint: "The unit you bill in, such as tokens.", Href: req.LinkIfEditable(tenancy.CreditsRead, tenancy.CreditsWrite, "credits"), Done: p.HasCredit},
		{Text: "Create a feature", Hint: "What your customers use, and what it costs.", Href: req.LinkIfEditable(tenancy.FeaturesRead, tenancy.FeaturesWrite, "features"), Done: p.HasFeature},
		{Text: "Create an API key", Hint: "Authenticates your servers.", Href: req.LinkIfEditable(tenancy.KeysRead, tenancy.KeysWrite, "keys"), Done: p.HasKey || p.IsUsed},
		{Text: "Deposit credits", Hint: "The first deposit creates the wallet.", Href: req.AppPath("quickstart"), Done: p.IsFunded},
		{Text: "Track your first event", Href: req.AppPath("quickstart"), Done: p.IsUsed},
	}
}

// overviewConcerns lists only warnings whose page the member may open, with days of the
// zone.
func overviewConcerns(req *site.Request, a reports.Attention, unconnected bool, zone *time.Location) (list []supportpage.Concern) {
	add := func(needed tenancy.Permission, c supportpage.Concern) {
		if req.May(needed) {
			list = append(list, c)
		}
	}
	if len(a.SyncErrors) > 0 && unconnected {
		// The sync was not attempted, so these errors are misleading.
		add(tenancy.PlansRead, supportpage.Concern{
			Text: "No payment provider is connected", More: "Connect one to sell plans.", Tone: "danger", Link: "Connect a payment provider",
			Href: req.LinkIfPermitted(tenancy.SettingsWrite, "settings"),
		})
		a.SyncErrors = nil
	}
	for _, plan := range a.SyncErrors {
		link, href := "View plan", req.AppPath("plans", plan.Key, "view")
		if req.May(tenancy.PlansWrite) {
			link, href = "Fix plan", req.AppPath("plans", plan.Key, "edit")
		}
		add(tenancy.PlansRead, supportpage.Concern{
			Text: "Plan \"" + plan.Name + "\" failed to sync with the payment provider", More: component.GistText(plan.Error), Tone: "danger", Link: link, Href: href,
		})
	}
	for _, key := range a.Expiring {
		more, link := "", "View keys"
		if req.May(tenancy.KeysWrite) {
			link = "Rotate key"
		}
		if req.ClockOffset > 0 {
			more = "API keys expire by the server's clock, not by the sandbox time."
		}
		add(tenancy.KeysRead, supportpage.Concern{
			More: more,
			Text: "API key \"" + key.Name + "\" expires on " + component.DayTextIn(key.ExpiresAt, zone), Tone: "warn", Link: link, Href: req.AppPath("keys"),
		})
	}
	if a.OnHold > 0 {
		add(tenancy.SubscriptionsRead, supportpage.Concern{
			Text: upTo(a.OnHold, "subscription is", "subscriptions are") + " on payment hold", Tone: "danger", Link: "View subscriptions",
			Href: req.Listing(req.AppPath("subscriptions")).At("status", onHold),
		})
	}
	if a.InDebt > 0 {
		add(tenancy.WalletsRead, supportpage.Concern{
			Text: upTo(a.InDebt, "balance is", "balances are") + " in debt", Tone: "warn", Link: "View wallets",
			Href: req.Listing(req.AppPath("wallets")).At("show", string(reports.WalletsInDebt)),
		})
	}
	if a.Alerts > 0 {
		add(tenancy.SubscriptionsRead, supportpage.Concern{
			Text: upTo(a.Alerts, "payment issue needs", "payment issues need") + " your decision", Tone: "danger", Link: "Review payments",
			More: "Purser can't resolve these on its own.", Href: req.AppPath("alerts"),
		})
	}
	if a.Jobs > 0 {
		add(tenancy.SubscriptionsRead, supportpage.Concern{
			Text: upTo(a.Jobs, "background job keeps", "background jobs keep") + " failing", Tone: "danger", Link: "View jobs",
			More: "Payments, plans, webhooks or usage sums may be out of date.", Href: req.AppPath("jobs"),
		})
	}
	return list
}

// recentVerifications are the latest runs, for members who may read the journal.
func recentVerifications(ctx context.Context, req *site.Request) ([]verify.Run, error) {
	if !req.May(tenancy.JournalRead) {
		return nil, nil
	}
	return req.Site.Store.Verification(req.Scope()).Runs(ctx)
}

// failedVerifications lists runs that found differences or did not finish.
func failedVerifications(runs []verify.Run) (list []supportpage.Concern) {
	for _, r := range runs {
		switch {
		case r.Differences > 0:
			list = append(list, supportpage.Concern{
				Text: "Verification found " + component.Counted(r.Differences, "difference", "differences"), Tone: "danger",
				More: "The journal and the stored balances don't match. See Verification below and contact the operator of this server.",
			})
		case r.Failure != "":
			list = append(list, supportpage.Concern{Text: "Verification did not finish", More: "Reason: " + r.Failure + ".", Tone: "warn"})
		}
	}
	return list
}

func verifiedRows(runs []verify.Run) (list []supportpage.Verified) {
	for _, r := range runs {
		row := supportpage.Verified{Label: "All entries", FinishedAt: r.FinishedAt, Entries: r.Entries, Result: "No differences", Tone: "ok", Lines: r.Lines}
		if r.Kind == verify.NewEntries {
			row.Label = "New entries"
		}
		switch {
		case r.Differences > 0:
			row.Result, row.Tone = component.Counted(r.Differences, "difference", "differences"), "danger"
		case r.Failure != "":
			row.Result, row.Tone = "Not finished", "warn"
		}
		list = append(list, row)
	}
	return list
}

// upTo formats a count, which the store caps.
func upTo(n int, one, many string) string {
	if n > reports.CountedUpTo {
		return "More than " + component.Counted(reports.CountedUpTo, one, many)
	}
	return component.Counted(int64(n), one, many)
}

// lacksProvider reports whether the application has neither a payment account nor a
// sandbox. Test applications are connected to the sandbox on first use.
func lacksProvider(ctx context.Context, req *site.Request) (bool, error) {
	noSandbox := req.App.Live || req.Site.SandboxOff
	connected, err := req.Site.Cashier.Connection(ctx, req.Scope())
	if fault.Is(err, fault.PaymentsNotConfigured) {
		return noSandbox, nil
	}
	return connected.Mode == payments.SandboxConnection && noSandbox, err
}
