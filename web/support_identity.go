package web

import (
	"fmt"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

func (s *Site) renameForm(req *request) (response, error) {
	head, _, err := walletHead(req, "")
	return show(supportpage.RenamePage(supportpage.RenameForm{WalletHead: head, Key: formKey()})), err
}

// rename gives a wallet another identity, once for a form. The form has the identity that
// was shown: a wallet that was renamed meanwhile is not renamed again.
func (s *Site) rename(req *request) (response, error) {
	head, w, err := walletHead(req, "")
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	to, err := metering.ParseIdentity(f.text("to"))
	if err != nil {
		f.fail("to", fmt.Sprintf("Enter an identity of up to %d characters.", metering.MaxIdentityLength))
	}
	if f.ok() {
		_, _, err := req.tenant().Rename(req.context, store.Rename{
			ID: ids.New(), From: f.text("from"), To: to, IdempotencyKey: f.text("key"), By: req.user.ID, CreatedAt: req.now(),
		})
		if fault.Is(err, fault.WalletNotFound) {
			err = fault.Newf(fault.WalletNotFound, "The wallet was renamed meanwhile. Open the page again.")
		}
		if err := f.check("to", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		return invalid(supportpage.RenamePage(supportpage.RenameForm{
			WalletHead: head, Key: f.text("key"), To: f.text("to"), Answered: component.Answered{Problems: f.problems},
		})), nil
	}
	if s.cashier != nil {
		s.cashier.Wake(req.scope())
	}
	return req.done(req.walletPath(w.ID), "Wallet renamed.")
}
