package support

import (
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
	return site.Show(view), err
}

func (s *Pages) adjust(req *site.Request, wallet ids.ID) (site.Response, error) {
	f := req.Form
	requested, err := readAdjustment(req)
	if err != nil {
		return site.Response{}, err
	}
	requested.WalletID, requested.By, requested.Now, requested.ClockOffset = wallet, req.User.ID, req.Now(), req.ClockOffset
	if f.OK() {
		f.Check("amount", req.Tenant().Adjust(req.Context, requested))
	}
	if f.OK() {
		return req.Done(req.WalletPath(wallet), adjusted(requested))
	}
	view, err := s.adjustView(req, supportpage.AdjustForm{
		EntryID: f.Text("entry"), CreditKey: f.Text("credit"), Direction: f.Text("direction"),
		Amount: f.Text("amount"), Reason: f.Text("reason"), Answered: component.Answered{Problems: f.Problems},
	})
	return site.Invalid(view), err
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
func readAdjustment(req *site.Request) (requested store.Adjustment, err error) {
	f := req.Form
	id, err := readEntryID(req, metering.EntryAdjustment)
	amount := readAmount(f)
	direction := f.Text("direction")
	if direction != "in" && direction != "out" {
		f.Fail("direction", "Select Add or Remove.")
	}
	if f.Text("credit") == "" {
		f.Fail("credit", "Select a credit.")
	}
	return store.Adjustment{
		ID: id, CreditKey: f.Text("credit"), Delta: metering.Delta{Amount: amount, Out: direction == "out"},
		Reason: readReason(f, store.MaxReason),
	}, err
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
	form.Credits, err = creditChoices(req)
	return supportpage.AdjustPage(form), err
}
