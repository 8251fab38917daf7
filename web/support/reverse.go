package support

import (
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// reversible reads an accepted event by its transaction, and what is left of its charge. It
// shows an entry of the journal, so it requires more than the form's own permission.
func reversible(req *site.Request) (e reports.EventFound, left metering.Amount, err error) {
	id, err := req.ID("id", ids.Transaction)
	if err != nil {
		return e, 0, err
	}
	if err := req.Require(tenancy.JournalRead); err != nil {
		return e, 0, err
	}
	t, err := req.Reports().Transaction(req.Context, id)
	if err != nil {
		return e, 0, err
	}
	if t.Event == nil || !t.Event.DeduplicatedFrom.IsZero() {
		return e, 0, fault.New(fault.PathNotFound)
	}
	returned, err := req.Tenant().Reversed(req.Context, eventKey(*t.Event))
	return *t.Event, t.Event.Charge.Amount - returned.Amount, err
}

func eventKey(e reports.EventFound) store.EventKey {
	return store.EventKey{WalletID: e.WalletID, TransactionID: e.TransactionID}
}

// showReversals adds what was returned of a charge to its page, and the way to return
// more.
func showReversals(req *site.Request, e reports.EventFound, view *supportpage.Change) error {
	listed, err := req.Tenant().Reversals(req.Context, []store.EventKey{eventKey(e)})
	if err != nil {
		return err
	}
	for _, r := range listed[e.TransactionID] {
		view.Reversals = append(view.Reversals, supportpage.ReversalRow{
			Href: req.TransactionPath(r.ID), Amount: r.Amount, CreditKey: e.CreditKey, Reason: r.Reason, CreatedAt: r.CreatedAt,
		})
	}
	if !req.May(tenancy.BalancesAdjust) || !e.DeduplicatedFrom.IsZero() {
		return nil
	}
	returned, err := req.Tenant().Reversed(req.Context, eventKey(e))
	if !returned.Full {
		view.Reverse = req.TransactionPath(e.TransactionID) + "/reverse"
	}
	return err
}

func (s *Pages) reverseForm(req *site.Request) (site.Response, error) {
	e, left, err := reversible(req)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(supportpage.ReversePage(reverseView(req, e, left, supportpage.ReverseForm{EntryID: ids.New().Format(ids.Transaction)}))), nil
}

// reverse returns a charge. The form's id is the idempotency key, so that a form sent
// twice returns it once.
func (s *Pages) reverse(req *site.Request) (site.Response, error) {
	e, left, err := reversible(req)
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	requested, err := readReversal(req)
	if err != nil {
		return site.Response{}, err
	}
	requested.EventID, requested.By, requested.CreatedAt, requested.ClockOffset = e.EventID, req.User.ID, req.Now(), req.ClockOffset
	if f.OK() {
		made, _, err := req.Tenant().Reverse(req.Context, requested)
		f.Check("amount", err)
		if f.OK() {
			return req.Done(req.TransactionPath(e.TransactionID), "Returned "+component.CreditsText(made.Amount, e.CreditKey)+".")
		}
	}
	return site.Invalid(supportpage.ReversePage(reverseView(req, e, left, supportpage.ReverseForm{
		EntryID: f.Text("entry"), Amount: f.Text("amount"), Reason: f.Text("reason"), Answered: component.Answered{Problems: f.Problems},
	}))), nil
}

func reverseView(req *site.Request, e reports.EventFound, left metering.Amount, form supportpage.ReverseForm) supportpage.ReverseForm {
	form.Frame, form.Path = req.Frame("Reverse charge", "wallets"), req.TransactionPath(e.TransactionID)
	form.Identity, form.CreditKey = e.Identity, e.CreditKey
	form.Left = left
	return form
}

// readReversal parses the form, without the event and the actor.
func readReversal(req *site.Request) (requested store.Reversal, err error) {
	f := req.Form
	requested.ID, err = readEntryID(req, metering.EntryReversal)
	requested.IdempotencyKey = requested.ID.Format(ids.Transaction)
	if text := f.Text("amount"); text != "" {
		amount, ok := metering.ParseCredits(text)
		if !ok || amount == 0 {
			f.Fail("amount", "Enter an amount above zero, such as 12.5 (up to 9 decimals), or nothing to return all.")
		}
		requested.Requested = &amount
	}
	requested.Reason = readReason(f, store.MaxReversalReason)
	return requested, err
}
