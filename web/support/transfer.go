package support

import (
	"unicode/utf8"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

func (s *Pages) transferForm(req *site.Request, w walletPage) (site.Response, error) {
	view, err := transferView(req, supportpage.TransferForm{WalletHead: w.head, EntryID: ids.New().Format(ids.Transaction)})
	return site.Show(view), err
}

// transfer shows what a transfer would do, and does it once that was confirmed. The
// form's id is the idempotency key, so that a form sent twice moves credits once.
func (s *Pages) transfer(req *site.Request, from walletPage) (site.Response, error) {
	f := req.Form
	requested, err := readTransfer(req)
	if err != nil {
		return site.Response{}, err
	}
	requested.From, requested.FromWalletID, requested.By, requested.CreatedAt = from.Identity, from.ID, req.User.ID, req.Now()
	requested.ClockOffset = req.ClockOffset
	view := supportpage.TransferForm{
		WalletHead: from.head, EntryID: f.Text("entry"), To: f.Text("to"), CreditKey: f.Text("credit"), Amount: f.Text("amount"), Reason: f.Text("reason"),
	}
	if f.OK() && f.IsSet("confirmed") {
		err := confirmTransfer(req, requested)
		if fault.Is(err, fault.RevisionConflict) {
			return s.transferConflict(req, view, requested)
		}
		checkTransfer(f, err)
		if f.OK() {
			return req.Done(from.head.Path, "Transferred "+component.CreditsText(requested.Amount, requested.CreditKey)+" to "+component.ShortIdentity(requested.To)+".")
		}
	}
	if f.OK() && !f.IsSet("edit") {
		preview, err := transferPreview(req, from.Wallet, requested)
		checkTransfer(f, err)
		view.Preview = preview
	}
	if f.OK() && view.Preview != nil {
		return site.Show(supportpage.TransferPage(view)), nil
	}
	view.Problems = f.Problems
	page, err := transferView(req, view)
	if f.OK() {
		return site.Show(page), err
	}
	return site.Invalid(page), err
}

// confirmTransfer moves credits between the wallets of the preview, both of which existed
// then. A form that doesn't say which wallet it showed is a conflict.
func confirmTransfer(req *site.Request, requested store.Transfer) error {
	to, err := ids.Parse(ids.Wallet, req.Form.Text("to_wallet"))
	if err != nil || to.IsZero() {
		return fault.New(fault.RevisionConflict)
	}
	requested.ToWalletID = to
	_, _, err = req.Tenant().Transfer(req.Context, requested)
	return err
}

// transferConflict shows the preview again after an identity got another wallet, or the
// form if the transfer isn't possible any more.
func (s *Pages) transferConflict(req *site.Request, view supportpage.TransferForm, requested store.Transfer) (site.Response, error) {
	head, from, err := s.walletHead(req, "")
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	view.WalletHead, requested.From = head, from.Identity
	view.Preview, err = transferPreview(req, from.Wallet, requested)
	checkTransfer(f, err)
	if !f.OK() {
		view.Problems = f.Problems
		page, err := transferView(req, view)
		return site.Invalid(page), err
	}
	view.Problems = []component.Problem{{Message: "One of the identities has another wallet since the preview. Nothing was transferred: check the new preview."}}
	return site.Conflict(supportpage.TransferPage(view)), nil
}

// transferPreview decides a transfer as the store would, without locks.
func transferPreview(req *site.Request, from metering.Wallet, requested store.Transfer) (*supportpage.TransferPreview, error) {
	credit, err := req.Tenant().Credit(req.Context, requested.CreditKey)
	if err != nil {
		return nil, err
	}
	to, err := req.Tenant().Wallet(req.Context, requested.To)
	if err != nil {
		return nil, err
	}
	decision, err := from.Transfer(to, credit, requested.Amount)
	if err != nil {
		return nil, err
	}
	preview := &supportpage.TransferPreview{
		ToHref: req.WalletLink(to.ID), ToWalletID: to.ID.Format(ids.Wallet), Amount: requested.Amount,
		FromBefore: from.Balance(credit.ID), FromAfter: decision.From, ToBefore: to.Balance(credit.ID), ToAfter: decision.To,
	}
	preview.FromBefore.CreditKey, preview.ToBefore.CreditKey = credit.Key, credit.Key
	return preview, nil
}

// checkTransfer adds the refusal of a transfer to the field that caused it.
func checkTransfer(f *site.Form, err error) {
	switch {
	case fault.Is(err, fault.WalletNotFound):
		f.Fail("to", "No customer with this identity has a wallet.")
	case fault.Is(err, fault.CreditNotFound):
		f.Fail("credit", "Select a credit.")
	case fault.Is(err, fault.TransferToSelf), fault.Is(err, fault.TooManyBalances), fault.Is(err, fault.BalanceOverflow):
		f.Check("to", err)
	default:
		f.Check("amount", err)
	}
}

// readTransfer parses the form, without the sender and the actor.
func readTransfer(req *site.Request) (requested store.Transfer, err error) {
	f := req.Form
	id, err := readEntryID(req, metering.EntryTransfer)
	amount := readAmount(f)
	to := f.Text("to")
	if to == "" || utf8.RuneCountInString(to) > metering.MaxIdentityLength {
		f.Fail("to", "Enter the identity of the receiver.")
	}
	if f.Text("credit") == "" {
		f.Fail("credit", "Select a credit.")
	}
	return store.Transfer{
		ID: id, ToEntryID: ids.New(), To: to, CreditKey: f.Text("credit"), Amount: amount, Reason: readReason(f, metering.MaxTransferReason),
		IdempotencyKey: id.Format(ids.Transaction),
	}, err
}

func transferView(req *site.Request, form supportpage.TransferForm) (templ.Component, error) {
	if form.CreditKey == "" && len(form.Balances) > 0 {
		form.CreditKey = form.Balances[0].CreditKey
	}
	var err error
	form.Credits, err = creditChoices(req)
	return supportpage.TransferPage(form), err
}
