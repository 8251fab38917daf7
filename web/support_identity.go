package web

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

func (s *Site) renameForm(req *request) (response, error) {
	head, _, err := s.walletHead(req, "")
	return show(supportpage.RenamePage(supportpage.RenameForm{WalletHead: head, Key: formKey()})), err
}

// rename gives a wallet another identity, once for a form. The form has the identity that
// was shown: a wallet that was renamed meanwhile is not renamed again.
func (s *Site) rename(req *request) (response, error) {
	head, w, err := s.walletHead(req, "")
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
			f.fail("to", "The wallet was renamed meanwhile. Open the page again.")
		} else if err := f.check("to", err); err != nil {
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

func (s *Site) eraseForm(req *request) (response, error) {
	head, _, err := s.walletHead(req, "")
	return show(supportpage.ErasePage(supportpage.EraseForm{WalletHead: head, Key: formKey()})), err
}

// erase erases a wallet, once for a form, after its identity was typed.
func (s *Site) erase(req *request) (response, error) {
	head, w, err := s.walletHead(req, "")
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if metering.IsTombstone(w.Identity) {
		return req.done(req.walletPath(w.ID), "Customer erased.")
	}
	reason := f.text("reason")
	switch {
	case reason == "":
		f.fail("reason", "Enter a reason.")
	case utf8.RuneCountInString(reason) > store.MaxErasureReason:
		f.fail("reason", fmt.Sprintf("Enter up to %d characters.", store.MaxErasureReason))
	case strings.Contains(reason, w.Identity):
		f.fail("reason", "The reason is kept. Leave the identity out of it.")
	}
	if f.text("identity") != w.Identity {
		f.fail("identity", "This is not the identity of this wallet.")
	}
	if f.ok() {
		_, _, err := req.tenant().Erase(req.context, store.Erasure{
			ID: ids.New(), Identity: w.Identity, Reason: reason, IdempotencyKey: f.text("key"), By: req.user.ID, CreatedAt: req.now(),
		})
		if err := f.check("", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		return invalid(supportpage.ErasePage(supportpage.EraseForm{
			WalletHead: head, Key: f.text("key"), Typed: f.text("identity"), Reason: reason, Answered: component.Answered{Problems: f.problems},
		})), nil
	}
	if s.cashier != nil {
		s.cashier.Wake(req.scope())
	}
	return req.done(req.walletPath(w.ID), "Customer erased.")
}
