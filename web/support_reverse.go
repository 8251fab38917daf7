package web

import (
	"fmt"
	"unicode/utf8"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

// reversible reads an accepted event by its transaction, and what was returned of it.
func reversible(req *request) (e reports.EventFound, reversals []store.Reversal, err error) {
	id, err := req.id("id", ids.Transaction)
	if err != nil {
		return e, nil, err
	}
	t, err := req.reports().Transaction(req.context, id)
	if err != nil {
		return e, nil, err
	}
	if t.Event == nil || !t.Event.DeduplicatedFrom.IsZero() {
		return e, nil, fault.New(fault.PathNotFound)
	}
	reversals, err = eventReversals(req, *t.Event)
	return *t.Event, reversals, err
}

func eventReversals(req *request, e reports.EventFound) ([]store.Reversal, error) {
	found, err := req.tenant().Reversals(req.context, []store.EventKey{{WalletID: e.WalletID, TransactionID: e.TransactionID}})
	return found[e.TransactionID], err
}

// leftOf is what is left of a charge.
func leftOf(charge metering.Amount, reversals []store.Reversal) metering.Amount {
	for _, r := range reversals {
		charge -= min(charge, r.Amount)
	}
	return charge
}

// showReversals adds what was returned of a charge to its page, and the way to return
// more.
func showReversals(req *request, e reports.EventFound, view *supportpage.Change) error {
	reversals, err := eventReversals(req, e)
	full := false
	for _, r := range reversals {
		view.Reversals = append(view.Reversals, supportpage.ReversalRow{
			Href: req.transactionPath(r.ID), Amount: r.Amount, CreditKey: e.CreditKey, Reason: r.Reason, CreatedAt: r.CreatedAt,
		})
		full = full || r.Full
	}
	if req.may(tenancy.BalancesAdjust) && !full && e.DeduplicatedFrom.IsZero() {
		view.Reverse = req.transactionPath(e.TransactionID) + "/reverse"
	}
	return err
}

func (s *Site) reverseForm(req *request) (response, error) {
	e, reversals, err := reversible(req)
	if err != nil {
		return response{}, err
	}
	return show(supportpage.ReversePage(reverseView(req, e, reversals, supportpage.ReverseForm{EntryID: ids.New().Format(ids.Transaction)}))), nil
}

// reverse returns a charge. The form's id is the idempotency key, so that a form sent
// twice returns it once.
func (s *Site) reverse(req *request) (response, error) {
	e, reversals, err := reversible(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	requested := readReversal(f)
	requested.EventID, requested.By, requested.CreatedAt = e.EventID, req.user.ID, req.now()
	if f.ok() {
		made, _, err := req.tenant().Reverse(req.context, requested)
		if err := f.check("amount", err); err != nil {
			return response{}, err
		}
		if f.ok() {
			return req.done(req.transactionPath(e.TransactionID), "Returned "+component.CreditsText(made.Amount, e.CreditKey)+".")
		}
	}
	return invalid(supportpage.ReversePage(reverseView(req, e, reversals, supportpage.ReverseForm{
		EntryID: f.text("entry"), Amount: f.text("amount"), Reason: f.text("reason"), Problems: f.problems,
	}))), nil
}

func reverseView(req *request, e reports.EventFound, reversals []store.Reversal, form supportpage.ReverseForm) supportpage.ReverseForm {
	form.Frame, form.Path = req.frame("Reverse charge", "wallets"), req.transactionPath(e.TransactionID)
	form.ID, form.Identity, form.CreditKey = e.TransactionID.Format(ids.Transaction), e.Identity, e.CreditKey
	form.Left = leftOf(e.Charge.Amount, reversals)
	return form
}

// readReversal parses the form, without the event and the actor.
func readReversal(f *form) (requested store.Reversal) {
	id, err := ids.Parse(ids.Transaction, f.text("entry"))
	if err != nil {
		f.fail("", "The form data was invalid. Open the form again.")
	}
	if text := f.text("amount"); text != "" {
		amount, ok := metering.ParseCredits(text)
		if !ok || amount == 0 {
			f.fail("amount", "Enter an amount above zero, such as 12.5 (up to 9 decimals), or nothing to return all.")
		}
		requested.Requested = &amount
	}
	requested.Reason = f.text("reason")
	if requested.Reason == "" {
		f.fail("reason", "Enter a reason.")
	}
	if utf8.RuneCountInString(requested.Reason) > store.MaxReversalReason || !utf8.ValidString(requested.Reason) {
		f.fail("reason", fmt.Sprintf("Enter up to %d characters.", store.MaxReversalReason))
	}
	requested.ID, requested.IdempotencyKey = id, id.Format(ids.Transaction)
	return requested
}
