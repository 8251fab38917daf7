package web

import (
	"net/url"

	"purser/docs"
	"purser/keys"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

const (
	// What the snippets name when the application has nothing of its own to name.
	sampleIdentity = "user-42"
	sampleCredit   = "tokens"
	sampleFeature  = "chat"

	// How many features are looked through for one that a snippet can use, and how
	// many refused requests are shown.
	quickstartFeatures = 25
	quickstartFailures = 5
)

// quickstart is asked for again every few seconds while it waits for an event, so
// it reads little.
func (s *Site) quickstart(v *visit) (answer, error) {
	progress, err := v.tenant().Progress(v.context, v.site.now())
	if err != nil {
		return answer{}, err
	}
	q := page.Quickstart{
		Path:      v.appPath("quickstart"),
		Steps:     v.firstSteps(progress),
		Languages: docs.Languages,
		Language:  docs.FindLanguage(v.query("language")),
		Done:      progress.IsUsed,
		Events:    v.appPath("events"),
	}
	call, hasFeature, err := v.firstCall(progress)
	if err != nil {
		return answer{}, err
	}
	q.Call = call
	if !progress.IsUsed {
		q.Missing = missing(call, progress.HasCredit, hasFeature)
		if q.Failures, err = v.failures(); err != nil {
			return answer{}, err
		}
	}
	if q.Snippet, err = q.Language.Snippet(call); err != nil {
		return answer{}, err
	}
	q.Frame = v.frame("Quickstart", "quickstart")
	return show(page.QuickstartPage(q)), nil
}

// firstSteps are ticked by what is there. A link leads only to where the member may go.
func (v *visit) firstSteps(p store.Progress) []component.Step {
	to := func(needed tenancy.Permission, parts ...string) string {
		if v.may(needed) {
			return v.appPath(parts...)
		}
		return ""
	}
	return []component.Step{
		// After a first event the key that did the setting up may well be gone.
		{Text: "Create an API key", Done: p.HasKey || p.IsUsed, Href: v.firstKey(),
			Hint: "Use the preset “Setup and ingestion”. The secret is shown once."},
		{Text: "Create a credit", Done: p.HasCredit, Href: to(tenancy.CreditsWrite, "credits"),
			Hint: "The unit you bill in: tokens, minutes, messages."},
		{Text: "Create a feature", Done: p.HasFeature, Href: to(tenancy.FeaturesWrite, "features"),
			Hint: "What your customers use, and what it costs."},
		{Text: "Fund a wallet", Done: p.IsFunded, Hint: "The first deposit creates the wallet."},
		{Text: "Send an event", Done: p.IsUsed, Hint: "Returns the charge immediately."},
	}
}

// fromQuickstart says to the form of a key where its maker came from, and so where
// to go on.
const fromQuickstart = "quickstart"

// firstKey is the form of a key that may do all the steps, or empty for who may
// make none.
func (v *visit) firstKey() string {
	if !v.may(tenancy.KeysWrite) {
		return ""
	}
	return v.appPath("keys", "new") + "?" + url.Values{"preset": {string(keys.Setup)}, "from": {fromQuickstart}}.Encode()
}

// firstCall names what the application has, or samples. A feature is taken when it
// can be used with nothing but its name.
func (v *visit) firstCall(p store.Progress) (call docs.Call, hasFeature bool, err error) {
	call = docs.Call{Address: v.site.server.Address, Identity: sampleIdentity, Credit: sampleCredit, Feature: sampleFeature}
	features, _, err := v.tenant().Features(v.context, store.Page{Limit: quickstartFeatures})
	for _, f := range features {
		if f.PricingMode == metering.Fixed && f.Deduplication == metering.DeduplicateNone {
			call.Credit, call.Feature = f.CreditKey, f.Key
			return call, true, nil
		}
	}
	if err != nil || !p.HasCredit {
		return call, false, err
	}
	credits, _, err := v.tenant().Credits(v.context, store.Page{Limit: 1})
	for _, c := range credits {
		call.Credit = c.Key
	}
	return call, false, err
}

// missing is what to run, in order, before the first use can be paid for.
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

// failures are the latest requests that were refused, for who may see requests.
func (v *visit) failures() ([]page.FailedCall, error) {
	if !v.may(tenancy.RequestsRead) {
		return nil, nil
	}
	requests, _, err := v.tenant().Requests(v.context, true, store.Page{Limit: quickstartFailures})
	if err != nil {
		return nil, err
	}
	var list []page.FailedCall
	for _, r := range requests {
		list = append(list, page.FailedCall{At: r.At, Method: r.Method, Route: r.Route, Status: r.Status, Code: r.Code})
	}
	return list, nil
}
