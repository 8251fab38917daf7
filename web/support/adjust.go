package support

import (
	"fmt"
	"unicode/utf8"

	"github.com/a-h/templ"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

func (s *Pages) adjustForm(req *site.Request) (site.Response, error) {
	view, err := s.adjustView(req, supportpage.AdjustForm{EntryID: ids.New().Format(ids.Transaction), Direction: "in"})
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(view), nil
}

func (s *Pages) adjust(req *site.Request) (site.Response, error) {
	wallet, err := req.ID("id", ids.Wallet)
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	requested := readAdjustment(f)
	requested.WalletID, requested.By, requested.Now = wallet, req.User.ID, req.Now()
	if f.OK() {
		if err := f.Check("amount", req.Tenant().Adjust(req.Context, requested)); err != nil {
			return site.Response{}, err
		}
	}
	if f.OK() {
		return req.Done(req.WalletPath(wallet), adjusted(requested))
	}
	view, err := s.adjustView(req, supportpage.AdjustForm{
		EntryID: f.Text("entry"), CreditKey: f.Text("credit"), Direction: f.Text("direction"),
		Amount: f.Text("amount"), Reason: f.Text("reason"), Problems: f.Problems,
	})
	if err != nil {
		return site.Response{}, err
	}
	return site.Invalid(view), nil
}

// adjusted is the confirmation message.
func adjusted(a store.Adjustment) string {
	verb := "Added "
	if a.Delta.Out {
		verb = "Removed "
	}
	return verb + component.CreditsText(a.Delta.Amount, a.CreditKey) + "."
}

// readAdjustment parses the form, without the wallet and the actor.
func readAdjustment(f *site.Form) (requested store.Adjustment) {
	id, err := ids.Parse(ids.Transaction, f.Text("entry"))
	if err != nil {
		f.Fail("", "The form data was invalid. Open the form again.")
	}
	amount, ok := metering.ParseCredits(f.Text("amount"))
	if !ok || amount == 0 {
		f.Fail("amount", "Enter an amount above zero, such as 12.5 (up to 9 decimals).")
	}
	direction := f.Text("direction")
	if direction != "in" && direction != "out" {
		f.Fail("direction", "Select Add or Remove.")
	}
	if f.Text("credit") == "" {
		f.Fail("credit", "Select a credit.")
	}
	reason := f.Text("reason")
	if reason == "" {
		f.Fail("reason", "Enter a reason.")
	}
	if utf8.RuneCountInString(reason) > store.MaxReason || !utf8.ValidString(reason) {
		f.Fail("reason", fmt.Sprintf("Enter up to %d characters.", store.MaxReason))
	}
	return store.Adjustment{
		ID: id, CreditKey: f.Text("credit"), Delta: metering.Delta{Amount: amount, Out: direction == "out"}, Reason: reason,
	}
}

func (s *Pages) adjustView(req *site.Request, form supportpage.AdjustForm) (templ.Component, error) {
	head, _, err := s.walletHead(req, "")
	if err != nil {
		return nil, err
	}
	form.WalletHead = head
	if form.CreditKey == "" && len(head.Balances) > 0 { // a credit that the wallet holds
		form.CreditKey = head.Balances[0].CreditKey
	}
	credits, _, err := req.Tenant().Credits(req.Context, store.Page{Limit: site.MaxOptions})
	for _, c := range credits {
		form.Credits = append(form.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	return supportpage.AdjustPage(form), err
}
