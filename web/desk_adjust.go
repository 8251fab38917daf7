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
		return v.done(v.walletPath(wallet), "The balance is adjusted.")
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

// adjustment reads what is wished, without whose and by whom.
func (f *form) adjustment() (wished store.Adjustment) {
	id, err := ids.Parse(ids.Transaction, f.text("entry"))
	if err != nil {
		f.fail("", "The form has lost its number. Open it again.")
	}
	amount, ok := metering.ParseCredits(f.text("amount"))
	if !ok || amount == 0 {
		f.fail("amount", "Give an amount above zero, with a point and at most nine decimals, such as 12.5.")
	}
	direction := f.text("direction")
	if direction != "in" && direction != "out" {
		f.fail("direction", "Choose whether to add or to take.")
	}
	if f.text("credit") == "" {
		f.fail("credit", "Choose a credit.")
	}
	reason := f.text("reason")
	if reason == "" {
		f.fail("reason", "Say why: it is what the next person reads.")
	}
	if utf8.RuneCountInString(reason) > store.MaxReason || !utf8.ValidString(reason) {
		f.fail("reason", fmt.Sprintf("At most %d characters.", store.MaxReason))
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
