package page

import (
	"fmt"
	"slices"
	"strings"

	"purser/billing"
	"purser/metering"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
)

// GallerySample chooses what the gallery shows.
type GallerySample struct {
	Live  bool
	Query string // filters the wallets
}

type galleryWallet struct {
	identity string
	state    component.Badge
	moved    component.Movement
}

func (g GallerySample) wallets() []galleryWallet {
	all := []galleryWallet{
		{"ada", component.Badge{Text: "Active", Tone: "ok"}, component.Movement{Amount: 5_000_000_000}},
		{hostileIdentity, component.Badge{Text: "In debt", Tone: "danger"}, component.Movement{Amount: 250_000_000, Out: true}},
		{longIdentity, component.Badge{Text: "On hold", Tone: "warn"}, component.Movement{Amount: metering.MaxAmount, Out: true}},
		{"مرحبا بالعالم", component.Badge{Text: "New"}, component.Movement{}},
	}
	return slices.DeleteFunc(all, func(w galleryWallet) bool { return !strings.Contains(w.identity, g.Query) })
}

// The gallery's own moment, so that it looks the same every day.
const galleryMoment = 1_794_648_660_123

// Identities that a page has to bear.
var (
	hostileIdentity = `<b onclick="x">"&'</b>` + "\u202eflipped"
	longIdentity    = strings.Repeat("very-long-identity/", 10) + "of-200-chars"
)

func (g GallerySample) frame() layout.Frame {
	apps := []layout.Application{
		{Place: layout.Place{Name: "Shop", Href: "#shop"}, Live: true},
		{Place: layout.Place{Name: "Shop staging", Href: "#staging"}},
	}
	app := apps[1]
	if g.Live {
		app = apps[0]
	}
	return layout.Frame{
		Title:   "Gallery",
		Person:  layout.Person{Name: "Ada Lovelace", Email: "ada@example.com"},
		Org:     layout.Place{Name: "Analytical Engines", Href: "#org"},
		Orgs:    []layout.Place{{Name: "Analytical Engines", Href: "#org"}, {Name: "Difference & Sons", Href: "#sons"}},
		App:     app,
		Apps:    apps,
		Nav:     layout.AppNav("#", tenancy.AllPermissions()),
		Current: "wallets",
		Flash:   component.Message{Text: "The feature Chat message was saved."},
	}
}

// galleryDays is thirty days of use: none, little, and more than an int64 holds.
func galleryDays() component.Series {
	series := component.Series{ID: "chart-days", Title: "Charged a day", Unit: "tokens", StepName: "Day"}
	for day := range 30 {
		amount := metering.Amount(day*day%17) * 42_125_000_000
		if day == 11 {
			amount = 1
		}
		series.Bars = append(series.Bars, component.Bar{
			Label: fmt.Sprintf("%d Oct", day+1),
			Value: uint64(amount),
			Text:  component.AmountText(amount),
		})
	}
	return series
}

func galleryGates() []component.GateLine {
	return []component.GateLine{
		{Question: "Is the event id new?", Outcome: metering.GatePassed},
		{Question: "Amount provided when required", Outcome: metering.GatePassed},
		{Question: "Does it fit the allowance?", Outcome: metering.GatePassed, Numbers: "needs 3 messages, has 20 left of 100 this month"},
		{
			Question: "Balance covers the charge", Outcome: metering.GateFailed,
			Numbers: "needs 2.5 tokens, has 1.000000001 tokens",
			Fix:     "Deposit at least 1.499999999 tokens.",
		},
		{Question: "Was the period billed before?", Outcome: metering.GateSettled, Numbers: "billed once by an earlier event, so this one costs nothing"},
		{Question: "Charge within numeric limits", Outcome: metering.GateUnreached},
	}
}

func gallerySteps() []component.Step {
	return []component.Step{
		{Text: "Create a credit", Done: true},
		{Text: "Create a feature", Done: true},
		{Text: "Make an API key", Hint: "Your servers call Purser with it.", Href: "#key"},
		{Text: "Send a first event", Hint: "It takes one request."},
	}
}

func gallerySyncStates() []component.SyncState {
	return []component.SyncState{
		{Status: billing.SyncDone},
		{Status: billing.SyncPending},
		{Status: billing.SyncFailed, Error: "No such tax behaviour for price: the account has no default. (request req_8sKx1)", Retry: "#retry"},
	}
}

func galleryClash() component.Clash {
	return component.Clash{
		Rows: []component.Difference{
			{Label: "Name", Yours: "Chat message", Theirs: "Chat message"},
			{Label: "Cost", Yours: "0.25", Theirs: "0.3"},
		},
	}
}
