package web

import (
	"strings"

	"purser/billing"
	"purser/fault"
	"purser/metering"
	"purser/store/reports"
	"purser/tenancy/audit"
	supportpage "purser/views/page/support"
)

func (s *Site) topUpLinkForm(req *request) (response, error) {
	view, _, err := s.topUpLinkView(req, supportpage.TopUpLink{Key: formKey(), Currency: "usd"})
	return show(supportpage.TopUpLinkPage(view)), err
}

// topUpLinkView completes what was typed with the wallet and the credits to choose from.
func (s *Site) topUpLinkView(req *request, typed supportpage.TopUpLink) (supportpage.TopUpLink, reports.WalletFound, error) {
	if req.site.cashier == nil {
		return typed, reports.WalletFound{}, fault.New(fault.PaymentsNotConfigured)
	}
	choices, w, err := s.addCreditsView(req, typed.CreditKey, "")
	typed.WalletHead, typed.Credits, typed.CreditKey, typed.Form = choices.WalletHead, choices.Credits, choices.CreditKey, choices.Path+"/topup"
	return typed, w, err
}

func (s *Site) createTopUpLink(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	view, w, err := s.topUpLinkView(req, supportpage.TopUpLink{
		Key: f.text("key"), CreditKey: f.text("credit"), Amount: f.text("amount"), Price: f.text("price"), Currency: strings.ToLower(f.text("currency")),
	})
	if err != nil {
		return response{}, err
	}
	requested := readTopUp(f, view)
	requested.Identity, requested.SuccessURL, requested.CancelURL = w.Identity, s.server.Address+view.Path, s.server.Address+view.Path
	if f.ok() {
		err := req.tenant().RecordAction(req.context, "topup.create", w.Identity, audit.Fields{
			"credit": requested.CreditKey, "amountNanocredits": requested.Amount.String(), "price": billing.FormatMoney(requested.AmountCents, requested.Currency),
		})
		if err != nil {
			return response{}, err
		}
		made, err := s.cashier.TopUpCheckout(req.context, req.scope(), requested, view.Key)
		if err := f.check("price", err); err != nil {
			return response{}, err
		}
		view.URL = made.URL
	}
	if !f.ok() {
		view.Problems = f.problems
		return invalid(supportpage.TopUpLinkPage(view)), nil
	}
	return show(supportpage.TopUpLinkPage(view)), nil
}

// readTopUp parses what is sold, and for how much.
func readTopUp(f *form, typed supportpage.TopUpLink) (requested billing.TopUpRequest) {
	amount, problem := depositAmount(typed.Amount)
	if problem != "" {
		f.fail("amount", problem)
	}
	currency, err := billing.ParseCurrency(typed.Currency)
	if err != nil {
		f.fail("currency", "Enter the three letters of a currency, such as usd.")
	}
	cents, ok := billing.ParseMoney(typed.Price, currency)
	if f.problem("currency") == "" && (!ok || cents == 0) {
		f.fail("price", "Enter a price above zero, such as 25.00.")
	}
	if !metering.IsKey(typed.CreditKey) {
		f.fail("credit", "Select a credit.")
	}
	if typed.Key == "" {
		f.fail("", "The form data was invalid. Open the form again.")
	}
	return billing.TopUpRequest{CreditKey: typed.CreditKey, Amount: amount, AmountCents: cents, Currency: currency}
}
