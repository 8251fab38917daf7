package support

import (
	"errors"

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
	"purser/web/site"
)

// topUpOf reads the payment of a top-up's journal entry.
func topUpOf(req *site.Request, t reports.Transaction) (payments.PaymentRefund, error) {
	if t.Entry == nil || t.Entry.Kind != metering.EntryTopUp {
		return payments.PaymentRefund{}, payments.ErrUnknown
	}
	return req.Payments().PaymentRefund(req.Context, billing.Source{Kind: billing.Session, ID: t.Entry.SourceID})
}

// paymentFacts shows the payment of a top-up, and leads to its refund.
func paymentFacts(req *site.Request, t reports.Transaction) (*supportpage.PaymentFacts, error) {
	paid, err := topUpOf(req, t)
	if errors.Is(err, payments.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum := func(cents int64) component.Sum { return component.Sum{AmountCents: cents, Currency: paid.Currency} }
	facts := &supportpage.PaymentFacts{
		Paid: sum(paid.AmountCents), Refunded: sum(paid.RefundedCents), Disputed: sum(paid.DisputedCents), State: paid.State, Error: paid.Error, Confirming: paid.Confirming,
	}
	if _, refused := paid.DecideRefund(); refused == nil && mayRefund(req) && paid.State != billing.OperationRunning {
		facts.Refund = req.TransactionPath(t.Entry.ID) + "/refund"
	}
	return facts, nil
}

func mayRefund(req *site.Request) bool {
	return req.May(tenancy.BalancesAdjust) && req.May(tenancy.WalletsRead)
}

func (s *Pages) refundForm(req *site.Request) (site.Response, error) {
	view, _, err := refundView(req)
	return site.Show(supportpage.RefundPage(view)), err
}

// refundView shows an entry of the journal and a balance, so it requires more than the form's
// own permission.
func refundView(req *site.Request) (view supportpage.RefundForm, paid payments.PaymentRefund, err error) {
	id, err := req.ID("id", ids.Transaction)
	if err != nil {
		return view, paid, err
	}
	for _, p := range []tenancy.Permission{tenancy.JournalRead, tenancy.WalletsRead} {
		if err := req.Require(p); err != nil {
			return view, paid, err
		}
	}
	t, err := req.Reports().Transaction(req.Context, id)
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
	w, err := req.Reports().WalletByID(req.Context, t.WalletID)
	if err != nil {
		return view, paid, err
	}
	view = supportpage.RefundForm{
		Frame: req.Frame("Refund top-up", "wallets"), Path: req.TransactionPath(id), Identity: t.Identity, CreditKey: t.Entry.CreditKey,
		Amount: component.Sum{AmountCents: refund.AmountCents, Currency: paid.Currency}, Before: balanceOf(w, t.Entry.CreditKey),
	}
	for _, m := range refund.TakenBack {
		view.Taken = m.Delta.Amount
	}
	view.After, _ = view.Before.TakeBackUpTo(view.Taken)
	if req.App.Live {
		view.TypeName = req.App.Name
	}
	return view, paid, nil
}

// refund requests a refund from the payment provider. What the provider then reports takes
// the credits back, so the page after it may still show the refund as in progress.
func (s *Pages) refund(req *site.Request) (site.Response, error) {
	view, paid, err := refundView(req)
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	view.Reason = readReason(f, store.MaxReversalReason)
	if !f.Confirms("confirm", view.TypeName) {
		f.Fail("confirm", "Type the name of the application: "+view.TypeName+".")
	}
	if f.OK() {
		_, err := req.Payments().RequestRefund(req.Context, paid.Source, view.Reason, req.Now())
		f.Check("", err)
	}
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.RefundPage(view)), nil
	}
	req.NotifyCashier()
	return req.Done(view.Path, "Refund of "+component.MoneyText(view.Amount.AmountCents, view.Amount.Currency)+" requested.")
}
