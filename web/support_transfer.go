package web

import (
	"fmt"
	"unicode/utf8"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

func (s *Site) transferForm(req *request) (response, error) {
	view, err := s.transferView(req, supportpage.TransferForm{EntryID: ids.New().Format(ids.Transaction)})
	if err != nil {
		return response{}, err
	}
	return show(view), nil
}

// readTransfer shows what a transfer would do, and does it once that was confirmed. The
// form's id is the idempotency key, so that a form sent twice moves credits once.
func (s *Site) transfer(req *request) (response, error) {
	head, from, err := s.walletHead(req, "")
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	requested := readTransfer(f)
	requested.From, requested.By, requested.CreatedAt = from.Identity, req.user.ID, req.now()
	view := supportpage.TransferForm{
		WalletHead: head, EntryID: f.text("entry"), To: f.text("to"), CreditKey: f.text("credit"), Amount: f.text("amount"), Reason: f.text("reason"),
	}
	if f.ok() && f.isSet("confirmed") {
		_, _, err := req.tenant().Transfer(req.context, requested)
		if err := checkTransfer(f, err); err != nil {
			return response{}, err
		}
		if f.ok() {
			return req.done(head.Path, "Transferred "+component.CreditsText(requested.Amount, requested.CreditKey)+" to "+component.ShortIdentity(requested.To)+".")
		}
	}
	if f.ok() && !f.isSet("edit") {
		preview, err := transferPreview(req, from.Wallet, requested)
		if err := checkTransfer(f, err); err != nil {
			return response{}, err
		}
		view.Preview = preview
	}
	if f.ok() && view.Preview != nil {
		return show(supportpage.TransferPage(view)), nil
	}
	view.Preview, view.Problems = nil, f.problems
	page, err := s.transferView(req, view)
	if err != nil {
		return response{}, err
	}
	if f.ok() {
		return show(page), nil
	}
	return invalid(page), nil
}

// transferPreview decides a transfer as the store would, without locks.
func transferPreview(req *request, from metering.Wallet, requested store.Transfer) (*supportpage.TransferPreview, error) {
	credit, err := req.tenant().Credit(req.context, requested.CreditKey)
	if err != nil {
		return nil, err
	}
	to, err := req.tenant().Wallet(req.context, requested.To)
	if err != nil {
		return nil, err
	}
	decision, err := from.Transfer(to, credit, requested.Amount)
	if err != nil {
		return nil, err
	}
	preview := &supportpage.TransferPreview{
		ToHref: req.walletPath(to.ID), Amount: requested.Amount,
		FromBefore: from.Balance(credit.ID), FromAfter: decision.From, ToBefore: to.Balance(credit.ID), ToAfter: decision.To,
	}
	preview.FromBefore.CreditKey, preview.ToBefore.CreditKey = credit.Key, credit.Key
	return preview, nil
}

// checkTransfer adds the refusal of a transfer to the field that caused it.
func checkTransfer(f *form, err error) error {
	switch {
	case fault.Is(err, fault.WalletNotFound):
		f.fail("to", "No customer with this identity has a wallet.")
		return nil
	case fault.Is(err, fault.CreditNotFound):
		f.fail("credit", "Select a credit.")
		return nil
	case fault.Is(err, fault.TransferToSelf), fault.Is(err, fault.TooManyBalances), fault.Is(err, fault.BalanceOverflow):
		return f.check("to", err)
	default:
		return f.check("amount", err)
	}
}

// readTransfer parses the form, without the sender and the actor.
func readTransfer(f *form) (requested store.Transfer) {
	id, err := ids.Parse(ids.Transaction, f.text("entry"))
	if err != nil {
		f.fail("", "The form data was invalid. Open the form again.")
	}
	amount, ok := metering.ParseCredits(f.text("amount"))
	if !ok || amount == 0 {
		f.fail("amount", "Enter an amount above zero, such as 12.5 (up to 9 decimals).")
	}
	to := f.text("to")
	if to == "" || utf8.RuneCountInString(to) > metering.MaxIdentityLength {
		f.fail("to", "Enter the identity of the receiver.")
	}
	if f.text("credit") == "" {
		f.fail("credit", "Select a credit.")
	}
	reason := f.text("reason")
	if reason == "" {
		f.fail("reason", "Enter a reason.")
	}
	if utf8.RuneCountInString(reason) > metering.MaxTransferReason {
		f.fail("reason", fmt.Sprintf("Enter up to %d characters.", metering.MaxTransferReason))
	}
	return store.Transfer{
		ID: id, ToEntryID: ids.New(), To: to, CreditKey: f.text("credit"), Amount: amount, Reason: reason, IdempotencyKey: id.Format(ids.Transaction),
	}
}

func (s *Site) transferView(req *request, form supportpage.TransferForm) (templ.Component, error) {
	if form.ID == "" {
		head, _, err := s.walletHead(req, "")
		if err != nil {
			return nil, err
		}
		form.WalletHead = head
	}
	if form.CreditKey == "" && len(form.Balances) > 0 {
		form.CreditKey = form.Balances[0].CreditKey
	}
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	for _, c := range credits {
		form.Credits = append(form.Credits, component.Option{Value: c.Key, Text: c.Name})
	}
	return supportpage.TransferPage(form), err
}
