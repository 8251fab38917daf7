package support

import (
	"cmp"
	"fmt"
	"strconv"

	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// check runs the API's check on the engine. It is a GET: it changes nothing, and its URL
// can be shared.
func (s *Pages) check(req *site.Request) (site.Response, error) {
	view := supportpage.CheckForm{
		Path: req.AppPath("check"), Identity: req.Query("identity"), FeatureKey: req.Query("feature"),
		Quantity: req.Query("quantity"), Amount: req.Query("amount"), EntityID: req.Query("entity"),
	}
	features, err := featureFilter(req, "Select a feature")
	if err != nil {
		return site.Response{}, err
	}
	view.Features = features
	asked := view.FeatureKey != ""
	view.Quantity = cmp.Or(view.Quantity, "1")
	usage, problems := parseCheck(view)
	if asked && len(problems) == 0 {
		usage.Scope = req.Scope()
		view.Answer, err = s.runCheck(req, usage)
		if fault.Is(err, fault.FeatureNotFound) {
			problems, err = append(problems, component.Problem{Field: "feature", Message: "Feature not found."}), nil
		}
		if err != nil {
			return site.Response{}, err
		}
	}
	view.Frame = req.Frame("Why denied?", "check")
	if asked && len(problems) > 0 {
		view.Problems = problems
		return site.Invalid(supportpage.Check(view)), nil
	}
	return site.Show(supportpage.Check(view)), nil
}

// parseCheck parses the usage to check, with the API's limits.
func parseCheck(form supportpage.CheckForm) (usage store.Usage, problems []component.Problem) {
	fail := func(field, message string) {
		problems = append(problems, component.Problem{Field: field, Message: message})
	}
	if _, err := metering.ParseIdentity(form.Identity); err != nil {
		fail("identity", identityProblem(form.Identity))
	}
	if _, err := metering.ParseEntityID(form.EntityID); err != nil {
		fail("entity", fmt.Sprintf("Enter up to %d characters.", metering.MaxEntityIDLength))
	}
	quantity, err := strconv.ParseInt(form.Quantity, 10, 64)
	if err != nil || quantity < 1 || quantity > metering.MaxQuantity {
		fail("quantity", "Enter a whole number from 1 to 9,007,199,254,740,991.")
	}
	usage = store.Usage{Identity: form.Identity, FeatureKey: form.FeatureKey, Usage: metering.Usage{EntityID: form.EntityID, Quantity: quantity}}
	if form.Amount != "" {
		amount, ok := metering.ParseCredits(form.Amount)
		if !ok {
			fail("amount", "Enter a number such as 12.5 (up to 9 decimals).")
		}
		usage.Amount = &amount
	}
	return usage, problems
}

func (s *Pages) runCheck(req *site.Request, usage store.Usage) (*supportpage.CheckAnswer, error) {
	d, err := s.usage.Explain(usage)
	if err != nil {
		return nil, err
	}
	a := &supportpage.CheckAnswer{
		Allowed: d.Allowed(), Code: string(d.Code), Title: "Allowed", Charge: d.Event.Charge.Amount,
		Balance: d.Before, Allowance: d.Allowance, Period: d.Event.Period,
	}
	if !a.Allowed {
		a.Title = "Denied: " + fault.New(d.Code).Message
	}
	a.Gates = gateLines(&d)
	wallet, err := req.Tenant().Wallet(req.Context, usage.Identity)
	if err == nil {
		a.WalletHref = req.WalletLink(wallet.ID)
	} else if !fault.Is(err, fault.WalletNotFound) {
		return nil, err
	}
	return a, nil
}

// gateLines describes the gates of a decision. A check has no event id, and the price is
// only shown if it failed.
func gateLines(d *metering.Decision) (lines []component.GateLine) {
	for _, g := range d.Gates() {
		if g.Gate == metering.GateEventID || g.Gate == metering.GatePrice && g.Outcome != metering.GateFailed {
			continue
		}
		lines = append(lines, gateLine(g, d))
	}
	return lines
}

// gateLine describes a gate: what it compares, its result and how to fix a failure.
func gateLine(g metering.GateResult, d *metering.Decision) component.GateLine {
	line := component.GateLine{Outcome: g.Outcome}
	amount := func(n uint64) string {
		return component.CreditsText(metering.Amount(n), d.Before.CreditKey)
	}
	switch g.Gate {
	case metering.GateAmount:
		line.Question = "Amount provided when required"
		line.Fix = "Send amountNanocredits for features priced per event, and leave it out for fixed prices."
	case metering.GateDeduplication:
		line.Question = "Not already billed this period"
		line.Fix = "Set the wallet's billing period or subscribe the customer to a plan. This feature is billed once per billing period."
		if g.Outcome == metering.GateSettled {
			line.Numbers = "Already billed this period. Allowed at no charge."
		}
	case metering.GateSubscription:
		line.Question = "Subscription in good standing"
		line.Fix = "Access resumes when the overdue invoice is paid, or when the paused subscription is resumed."
	case metering.GateAllowance:
		line.Question = "Within plan allowance (or overage allowed)"
		line.Fix = "Reduce the quantity, wait for the next period, or switch to a plan with a higher limit or overage."
		if d.Allowance.Limited() && g.Outcome != metering.GateUnreached {
			line.Numbers = "Needs " + component.CountText(g.Need) + ", " + component.CountText(g.Have) + " left of " + count(d.Allowance.Limit) + "."
		} else if g.Outcome == metering.GatePassed {
			line.Numbers = "No limit on this feature."
		}
	case metering.GatePrice:
		line.Question = "Charge within numeric limits"
		line.Fix = "The charge exceeds 19 digits. Use a smaller quantity."
	case metering.GateBalance:
		line.Question = "Balance covers the charge"
		if g.Outcome != metering.GateUnreached {
			line.Numbers = "Needs " + amount(g.Need) + ", has " + amount(g.Have) + "."
		}
		if g.Outcome == metering.GateFailed {
			lacks := metering.Total{}.Plus(d.Before.Debt).Plus(metering.Amount(g.Need - g.Have))
			line.Fix = "Deposit at least " + component.CreditsText(lacks, d.Before.CreditKey) + "."
			if d.Before.Debt > 0 {
				line.Fix += " This includes the debt of " + amount(uint64(d.Before.Debt)) + "."
			}
		}
	}
	if g.Outcome != metering.GateFailed {
		line.Fix = ""
	}
	return line
}
