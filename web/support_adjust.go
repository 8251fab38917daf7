package web

import (
	"fmt"
	"unicode/utf8"

	"github.com/a-h/templ"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

func (s *Site) adjustForm(req *request) (response, error) {
	view, err := s.adjustView(req, supportpage.AdjustForm{EntryID: ids.New().Format(ids.Transaction), Direction: "in"})
	if err != nil {
		return response{}, err
	}
	return show(view), nil
}

func (s *Site) adjust(req *request) (response, error) {
	wallet, err := req.id("id", ids.Wallet)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	requested := readAdjustment(f)
	requested.WalletID, requested.By, requested.Now = wallet, req.user.ID, req.now()
	if f.ok() {
		if err := f.check("amount", req.tenant().Adjust(req.context, requested)); err != nil {
			return response{}, err
		}
	}
	if f.ok() {
		return req.done(req.walletPath(wallet), adjusted(requested))
	}
	view, err := s.adjustView(req, supportpage.AdjustForm{
		EntryID: f.text("entry"), CreditKey: f.text("credit"), Direction: f.text("direction"),
		Amount: f.text("amount"), Reason: f.text("reason"), Problems: f.problems,
	})
	if err != nil {
		return response{}, err
	}
	return invalid(view), nil
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
func readAdjustment(f *form) (requested store.Adjustment) {
	id, err := ids.Parse(ids.Transaction, f.text("entry"))
	if err != nil {
		f.fail("", "The form data was invalid. Open the form again.")
	}
	amount, ok := metering.ParseCredits(f.text("amount"))
	if !ok || amount == 0 {
		f.fail("amount", "Enter an amount above zero, such as 12.5 (up to 9 decimals).")
	}
	direction := f.text("direction")
	if direction != "in" && direction != "out" {
		f.fail("direction", "Select Add or Remove.")
	}
	if f.text("credit") == "" {
		f.fail("credit", "Select a credit.")
	}
	reason := f.text("reason")
	if reason == "" {
		f.fail("reason", "Enter a reason.")
	}
	if utf8.RuneCountInString(reason) > store.MaxReason || !utf8.ValidString(reason) {
		f.fail("reason", fmt.Sprintf("Enter up to %d characters.", store.MaxReason))
	}
	return store.Adjustment{
		ID: id, CreditKey: f.text("credit"), Delta: metering.Delta{Amount: amount, Out: direction == "out"}, Reason: reason,
	}
}

func (s *Site) adjustView(req *request, form supportpage.AdjustForm) (templ.Component, error) {
	head, _, err := s.walletHead(req, "")
	if err != nil {
		return nil, err
	}
	form.WalletHead = head
	if form.CreditKey == "" && len(head.Balances) > 0 { // a credit that the wallet holds
		form.CreditKey = head.Balances[0].CreditKey
	}
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	for _, c := range credits {
		form.Credits = append(form.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	return supportpage.AdjustPage(form), err
}
