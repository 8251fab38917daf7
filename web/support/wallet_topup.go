package support

import (
	"strings"

	"purser/billing"
	"purser/ids"
	"purser/metering"
	"purser/tenancy/audit"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

func (s *Pages) topUpLinkForm(req *site.Request, w walletPage) (site.Response, error) {
	view, err := topUpLinkView(req, w, supportpage.TopUpLink{Key: formKey(), Currency: "usd"})
	return site.Show(supportpage.TopUpLinkPage(view)), err
}

// topUpLinkView completes what was typed with the wallet and the credits to choose from.
func topUpLinkView(req *site.Request, w walletPage, typed supportpage.TopUpLink) (supportpage.TopUpLink, error) {
	choices, err := addCreditsView(req, w, typed.CreditKey, "")
	typed.WalletHead, typed.Credits, typed.CreditKey, typed.Form = choices.WalletHead, choices.Credits, choices.CreditKey, choices.Path+"/topup"
	return typed, err
}

func (s *Pages) createTopUpLink(req *site.Request, w walletPage) (site.Response, error) {
	f := req.Form
	view, err := topUpLinkView(req, w, supportpage.TopUpLink{
		Key: readKey(f), CreditKey: f.Text("credit"), Amount: f.Text("amount"), Price: f.Text("price"), Currency: strings.ToLower(f.Text("currency")),
	})
	if err != nil {
		return site.Response{}, err
	}
	requested := readTopUp(f, view)
	requested.Identity, requested.SuccessURL, requested.CancelURL = w.Identity, s.Server.Address+view.Path, s.Server.Address+view.Path
	if f.OK() {
		err := req.Tenant().RecordAction(req.Context, "topup.create", w.ID.Format(ids.Wallet), audit.Fields{
			"credit": requested.CreditKey, "amountNanocredits": requested.Amount.String(), "price": billing.FormatMoney(requested.AmountCents, requested.Currency),
		})
		if err != nil {
			return site.Response{}, err
		}
		made, err := s.Cashier.TopUpCheckout(req.Context, req.Scope(), requested, view.Key)
		f.Check("price", err)
		view.URL = made.URL
	}
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.TopUpLinkPage(view)), nil
	}
	return site.ShowOnce(supportpage.TopUpLinkPage(view)), nil
}

// readTopUp parses what is sold, and for how much.
func readTopUp(f *site.Form, typed supportpage.TopUpLink) (requested billing.TopUpRequest) {
	amount := readAmount(f)
	currency, err := billing.ParseCurrency(typed.Currency)
	if err != nil {
		f.Fail("currency", "Enter the three letters of a currency, such as usd.")
	}
	cents, ok := billing.ParseMoney(typed.Price, currency)
	if f.Problem("currency") == "" && (!ok || cents == 0) {
		f.Fail("price", "Enter a price above zero, such as 25.00.")
	}
	if !metering.IsKey(typed.CreditKey) {
		f.Fail("credit", "Select a credit.")
	}
	return billing.TopUpRequest{CreditKey: typed.CreditKey, Amount: amount, AmountCents: cents, Currency: currency}
}
