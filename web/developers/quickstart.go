package developers

import (
	"net/url"

	"purser/docs"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

const (
	// Names in the snippets if the application has none of its own.
	sampleIdentity = "user-42"
	sampleCredit   = "tokens"
	sampleFeature  = "chat"

	// How many features are searched for one that a snippet can use, and how many
	// refused requests are shown.
	quickstartFeatures = 25
	quickstartFailures = 5

	// quickstartFunds is what docs.Call.FundWallet deposits.
	quickstartFunds = 5 * metering.PerCredit
)

// quickstart is polled every few seconds while it waits for an event, so it reads
// little.
func (s *Pages) quickstart(req *site.Request) (site.Response, error) {
	progress, err := req.Reports().Progress(req.Context, req.Site.Now())
	if err != nil {
		return site.Response{}, err
	}
	language, remember := req.ExampleLanguage()
	q := supportpage.Quickstart{
		Path:     req.AppPath("quickstart"),
		Steps:    firstSteps(req, progress),
		Language: language,
		Done:     progress.IsUsed,
		Events:   req.LinkIfPermitted(tenancy.JournalRead, "events"),
	}
	call, hasFeature, err := firstCall(req, progress)
	if err != nil {
		return site.Response{}, err
	}
	q.Call, q.Missing = call, missing(call, progress.HasCredit, hasFeature)
	if !progress.IsUsed {
		if q.Failures, err = recentFailures(req); err != nil {
			return site.Response{}, err
		}
	}
	if q.Snippet, err = q.Language.Snippet(call); err != nil {
		return site.Response{}, err
	}
	q.Frame = req.Frame("Quickstart", "quickstart")
	return remember(site.Show(supportpage.QuickstartPage(q))), nil
}

// firstSteps are the setup steps and their state. Steps link only to pages that the
// member may open.
func firstSteps(req *site.Request, p reports.Progress) []component.Step {
	return []component.Step{
		// After the first event the setup key may have been revoked.
		{Text: "Create an API key", Done: p.HasKey || p.IsUsed, Href: firstKey(req),
			Hint: "Use the preset “Setup and ingestion”. The secret is shown once."},
		{Text: "Create a credit", Done: p.HasCredit, Href: req.LinkIfEditable(tenancy.CreditsRead, tenancy.CreditsWrite, "credits"),
			Hint: "The unit you bill in: tokens, minutes, messages."},
		{Text: "Create a feature", Done: p.HasFeature, Href: req.LinkIfEditable(tenancy.FeaturesRead, tenancy.FeaturesWrite, "features"),
			Hint: "What your customers use, and what it costs."},
		{Text: "Fund a wallet", Done: p.IsFunded, Hint: "The first deposit creates the wallet."},
		{Text: "Send an event", Done: p.IsUsed, Hint: "Returns the charge immediately."},
	}
}

// fromQuickstart makes the key form return to the quickstart.
const fromQuickstart = "quickstart"

// firstKey is the URL of the form for a key that may do all steps, or "" without the
// permission.
func firstKey(req *site.Request) string {
	form := req.LinkIfEditable(tenancy.KeysRead, tenancy.KeysWrite, "keys", "new")
	if form == "" {
		return ""
	}
	return form + "?" + url.Values{"preset": {string(keys.Setup)}, "from": {fromQuickstart}}.Encode()
}

// firstCall names an existing credit and feature, or samples. A feature qualifies if it
// can be used by its name alone, and if the wallet that the quickstart funds can pay for it.
func firstCall(req *site.Request, p reports.Progress) (call docs.Call, hasFeature bool, err error) {
	call = docs.Call{Address: req.Site.Server.Address, Identity: sampleIdentity, Credit: sampleCredit, Feature: sampleFeature}
	features, _, err := req.Tenant().Features(req.Context, store.Page{Limit: quickstartFeatures})
	for _, f := range features {
		if f.PricingMode == metering.Fixed && f.Deduplication == metering.DeduplicateNone && f.Cost/metering.Amount(f.QuantityPerUnit) < quickstartFunds {
			call.Credit, call.Feature = f.CreditKey, f.Key
			return call, true, nil
		}
	}
	if err != nil || !p.HasCredit {
		return call, false, err
	}
	credits, _, err := req.Tenant().Credits(req.Context, store.Page{Limit: 1})
	for _, c := range credits {
		call.Credit = c.Key
	}
	return call, false, err
}

// missing lists the commands to run, in order, before the event can be charged. Funding the
// wallet is always one of them: another wallet may have paid for earlier events.
func missing(call docs.Call, hasCredit, hasFeature bool) []component.CommandLine {
	var commands []component.CommandLine
	if !hasCredit {
		commands = append(commands, component.CommandLine{ID: "define-credit", Label: "Create a credit", Text: call.DefineCredit()})
	}
	if !hasFeature {
		commands = append(commands, component.CommandLine{ID: "price-feature", Label: "Create a feature", Text: call.PriceFeature()})
	}
	return append(commands, component.CommandLine{ID: "fund-wallet", Label: "Fund a wallet", Text: call.FundWallet()})
}

// recentFailures are the latest refused requests, for members who may read requests.
func recentFailures(req *site.Request) ([]supportpage.FailedCall, error) {
	if !req.May(tenancy.RequestsRead) {
		return nil, nil
	}
	requests, _, err := req.Reports().Requests(req.Context, reports.RequestQuery{Failed: true, Page: store.Page{Limit: quickstartFailures}})
	if err != nil {
		return nil, err
	}
	var list []supportpage.FailedCall
	for _, r := range requests {
		list = append(list, supportpage.FailedCall{At: r.At, Method: r.Method, Route: r.Route, Status: r.Status, Code: r.Code})
	}
	return list, nil
}
