package web

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/payments"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

// topUpOf reads the payment of a top-up's journal entry.
func topUpOf(req *request, t reports.Transaction) (payments.PaymentRefund, error) {
	if t.Entry == nil || t.Entry.Kind != metering.EntryTopUp {
		return payments.PaymentRefund{}, payments.ErrUnknown
	}
	return req.payments().PaymentRefund(req.context, billing.Source{Kind: billing.Session, ID: t.Entry.SourceID})
}

// paymentFacts shows the payment of a top-up, and leads to its refund.
func paymentFacts(req *request, t reports.Transaction) (*supportpage.PaymentFacts, error) {
	paid, err := topUpOf(req, t)
	if errors.Is(err, payments.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum := func(cents int64) component.Sum { return component.Sum{AmountCents: cents, Currency: paid.Currency} }
	facts := &supportpage.PaymentFacts{
		Paid: sum(paid.AmountCents), Refunded: sum(paid.RefundedCents), Disputed: sum(paid.DisputedCents), State: paid.State, Error: paid.Error,
	}
	if _, refused := paid.DecideRefund(); refused == nil && mayRefund(req) && paid.State != billing.OperationRunning {
		facts.Refund = req.transactionPath(t.Entry.ID) + "/refund"
	}
	return facts, nil
}

func mayRefund(req *request) bool { return req.may(tenancy.BalancesAdjust) && req.site.cashier != nil }

func (s *Site) refundForm(req *request) (response, error) {
	view, _, err := refundView(req)
	return show(supportpage.RefundPage(view)), err
}

func refundView(req *request) (view supportpage.RefundForm, paid payments.PaymentRefund, err error) {
	id, err := req.id("id", ids.Transaction)
	if err != nil {
		return view, paid, err
	}
	if req.site.cashier == nil {
		return view, paid, fault.New(fault.PaymentsNotConfigured)
	}
	t, err := req.reports().Transaction(req.context, id)
	if err != nil {
		return view, paid, err
	}
	if paid, err = topUpOf(req, t); err != nil {
		if errors.Is(err, payments.ErrUnknown) {
			err = fault.New(fault.PathNotFound)
		}
		return view, paid, err
	}
	refund, err := paid.DecideRefund()
	if err != nil {
		return view, paid, err
	}
	w, err := req.reports().WalletByID(req.context, t.WalletID)
	if err != nil {
		return view, paid, err
	}
	view = supportpage.RefundForm{
		Frame: req.frame("Refund top-up", "wallets"), Path: req.transactionPath(id), Identity: t.Identity, CreditKey: t.Entry.CreditKey,
		Amount: component.Sum{AmountCents: refund.AmountCents, Currency: paid.Currency}, Before: balanceOf(w, t.Entry.CreditKey),
	}
	for _, m := range refund.TakenBack {
		view.Taken = m.Delta.Amount
	}
	view.After, _ = view.Before.TakeBackUpTo(view.Taken)
	if req.app.Live {
		view.TypeName = req.app.Name
	}
	return view, paid, nil
}

// refund requests a refund from the payment provider. What the provider then reports takes
// the credits back, so the page after it may still show the refund as in progress.
func (s *Site) refund(req *request) (response, error) {
	view, paid, err := refundView(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	view.Reason = f.text("reason")
	if view.Reason == "" || utf8.RuneCountInString(view.Reason) > store.MaxReversalReason {
		f.fail("reason", fmt.Sprintf("Enter a reason of up to %d characters.", store.MaxReversalReason))
	}
	if f.text("confirm") != view.TypeName {
		f.fail("confirm", "Type the name of the application: "+view.TypeName+".")
	}
	if f.ok() {
		_, err := req.payments().RequestRefund(req.context, paid.Source, view.Reason, req.now())
		if err := f.check("", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		view.Problems = f.problems
		return invalid(supportpage.RefundPage(view)), nil
	}
	req.notifyCashier()
	return req.done(view.Path, "Refund of "+component.MoneyText(view.Amount.AmountCents, view.Amount.Currency)+" requested.")
}
