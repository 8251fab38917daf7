package web

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	"purser/views/page"
)

// maxName is how long an identity or an entity may be, in characters.
const maxName = 200

// errNoUsage is for a site that was put together without the engine.
var errNoUsage = errors.New("web: there is no engine to ask")

// check asks the engine what the API would answer. It is a GET: it changes nothing,
// and the question can be sent to a colleague.
func (s *Site) check(v *visit) (answer, error) {
	view := page.CheckForm{
		Path: v.appPath("check"), Identity: v.query("identity"), FeatureKey: v.query("feature"),
		Quantity: v.query("quantity"), Amount: v.query("amount"), EntityID: v.query("entity"),
	}
	features, err := v.featureFilter("Choose a feature")
	if err != nil {
		return answer{}, err
	}
	view.Features = features
	asked := view.FeatureKey != ""
	if view.Quantity == "" {
		view.Quantity = "1"
	}
	use, problems := question(view)
	if asked && len(problems) == 0 {
		use.Scope = v.scope()
		view.Answer, err = v.examine(use)
		if fault.Is(err, fault.FeatureNotFound) {
			problems, err = append(problems, component.Problem{Field: "feature", Message: "There is no such feature."}), nil
		}
		if err != nil {
			return answer{}, err
		}
	}
	view.Frame = v.frame("Why denied?", "check")
	if asked && len(problems) > 0 {
		view.Problems = problems
		return invalid(page.Check(view)), nil
	}
	return show(page.Check(view)), nil
}

// question reads the use that is asked about, by the API's own bounds.
func question(form page.CheckForm) (use store.Use, problems []component.Problem) {
	fail := func(field, message string) {
		problems = append(problems, component.Problem{Field: field, Message: message})
	}
	if n := utf8.RuneCountInString(form.Identity); n == 0 || n > maxName || !utf8.ValidString(form.Identity) {
		fail("identity", "Give the identity, in at most 200 characters.")
	}
	if utf8.RuneCountInString(form.EntityID) > maxName || !utf8.ValidString(form.EntityID) {
		fail("entity", "At most 200 characters.")
	}
	quantity, err := strconv.ParseInt(form.Quantity, 10, 64)
	if err != nil || quantity < 1 || quantity > metering.MaxQuantity {
		fail("quantity", "Give a whole number from 1 to 9,007,199,254,740,991.")
	}
	use = store.Use{Identity: form.Identity, FeatureKey: form.FeatureKey, Use: metering.Use{EntityID: form.EntityID, Quantity: quantity}}
	if form.Amount != "" {
		amount, ok := metering.ParseCredits(form.Amount)
		if !ok {
			fail("amount", "Give an amount with a point and at most nine decimals, such as 12.5.")
		}
		use.Amount = &amount
	}
	return use, problems
}

func (v *visit) examine(use store.Use) (*page.CheckAnswer, error) {
	if v.site.usage == nil {
		return nil, errNoUsage
	}
	d, err := v.site.usage.Examine(use)
	if err != nil {
		return nil, err
	}
	a := &page.CheckAnswer{
		Allowed: d.Allowed(), Code: string(d.Code), Title: "Allowed", Charge: d.Event.Charge.Amount,
		Balance: d.Before, Allowance: d.Allowance, Period: d.Event.Period,
	}
	if !a.Allowed {
		a.Title = "Denied: " + fault.New(d.Code).Message
	}
	for _, g := range d.Gates() {
		if g.Gate != metering.GateEventID { // a question brings no event
			a.Gates = append(a.Gates, gateLine(g, &d))
		}
	}
	wallet, err := v.tenant().Wallet(v.context, use.Identity)
	if err == nil {
		a.WalletHref = v.walletPath(wallet.ID)
	} else if !fault.Is(err, fault.WalletNotFound) {
		return nil, err
	}
	return a, nil
}

// gateLine says in words what a gate asked, what it compared and what would help.
func gateLine(g metering.GateResult, d *metering.Decision) component.GateLine {
	line := component.GateLine{Outcome: g.Outcome}
	amount := func(n uint64) string {
		return component.CreditsText(metering.Amount(n), d.Before.CreditKey)
	}
	switch g.Gate {
	case metering.GateAmount:
		line.Question = "Does the use bring an amount exactly when the feature wants one?"
		line.Fix = "A callback feature needs amountNanocredits; a fixed one must not have it."
	case metering.GateDeduplication:
		line.Question = "Is this the first use of its period?"
		line.Fix = "Set the wallet's billing period, or subscribe it to a plan: the feature is billed once in it."
		if g.Outcome == metering.GateSettled {
			line.Numbers = "Billed before in this period: it is allowed and costs nothing."
		}
	case metering.GateSubscription:
		line.Question = "Do the terms that limit the feature hold?"
		line.Fix = "A payment for the subscription failed or it is paused. Once it is paid, the feature opens again."
	case metering.GateAllowance:
		line.Question = "Does it fit into the allowance, or may the rest be paid?"
		line.Fix = "Use less, wait for the next period, or change to a plan with a higher limit or with overage paid in credits."
		if d.Allowance.Limited() && g.Outcome != metering.GateUnreached {
			line.Numbers = "Needs " + component.CountText(g.Need) + ", " + component.CountText(g.Have) + " left of " + count(d.Allowance.Limit) + "."
		} else if g.Outcome == metering.GatePassed {
			line.Numbers = "No limit counts this feature."
		}
	case metering.GatePrice:
		line.Question = "Can the charge be written down?"
		line.Fix = "The charge passes 19 digits. Use a smaller quantity."
		if g.Outcome == metering.GatePassed {
			line.Numbers = "It costs " + amount(g.Need) + "."
		}
	case metering.GateBalance:
		line.Question = "Does the balance cover the charge?"
		if g.Outcome != metering.GateUnreached {
			line.Numbers = "Needs " + amount(g.Need) + ", has " + amount(g.Have) + "."
		}
		if g.Outcome == metering.GateFailed {
			line.Fix = "Deposit at least " + amount(uint64(d.Before.Debt)+g.Need-g.Have) + "."
			if d.Before.Debt > 0 {
				line.Fix += " The debt of " + amount(uint64(d.Before.Debt)) + " is paid first."
			}
		}
	}
	if g.Outcome != metering.GateFailed {
		line.Fix = ""
	}
	return line
}
