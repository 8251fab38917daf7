package web

import (
	"fmt"
	"unicode/utf8"

	"github.com/a-h/templ"

	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) adjustForm(v *visit) (answer, error) {
	view, err := v.adjustView(page.AdjustForm{EntryID: ids.New().Format(ids.Transaction), Direction: "in"})
	if err != nil {
		return answer{}, err
	}
	return show(view), nil
}

func (s *Site) adjust(v *visit) (answer, error) {
	wallet, err := v.id("id", ids.Wallet)
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	wished := f.adjustment()
	wished.WalletID, wished.By, wished.Now = wallet, v.user.ID, v.now()
	if f.ok() {
		if err := f.check("amount", v.tenant().Adjust(v.context, wished)); err != nil {
			return answer{}, err
		}
	}
	if f.ok() {
		return v.done(v.walletPath(wallet), adjusted(wished))
	}
	view, err := v.adjustView(page.AdjustForm{
		EntryID: f.text("entry"), CreditKey: f.text("credit"), Direction: f.text("direction"),
		Amount: f.text("amount"), Reason: f.text("reason"), Problems: f.problems,
	})
	if err != nil {
		return answer{}, err
	}
	return invalid(view), nil
}

// adjusted says what was done to the balance.
func adjusted(a store.Adjustment) string {
	verb := "Added "
	if a.Delta.Out {
		verb = "Removed "
	}
	return verb + component.CreditsText(a.Delta.Amount, a.CreditKey) + "."
}

// adjustment reads what is wished, without whose and by whom.
func (f *form) adjustment() (wished store.Adjustment) {
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

func (v *visit) adjustView(form page.AdjustForm) (templ.Component, error) {
	head, _, err := v.walletHead("")
	if err != nil {
		return nil, err
	}
	form.WalletHead = head
	credits, _, err := v.tenant().Credits(v.context, store.Page{Limit: maxOptions})
	for _, c := range credits {
		form.Credits = append(form.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	return page.AdjustPage(form), err
}
