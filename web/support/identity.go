package support

import (
	"fmt"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/views/component"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// identityProblem is the message for an invalid identity.
func identityProblem(identity string) string {
	if metering.IsTombstone(identity) {
		return "This identity belongs to an erased wallet. Enter another one."
	}
	return fmt.Sprintf("Enter an identity of up to %d characters.", metering.MaxIdentityLength)
}

func (s *Pages) renameForm(_ *site.Request, w walletPage) (site.Response, error) {
	return site.Show(supportpage.RenamePage(supportpage.RenameForm{WalletHead: w.head, Key: formKey()})), nil
}

// rename gives a wallet another identity, once for a form. The form has the identity that
// was shown, with the space around it: a wallet that was renamed meanwhile is not renamed
// again, and never that of another page.
func (s *Pages) rename(req *site.Request, w walletPage) (site.Response, error) {
	f := req.Form
	to, err := metering.ParseIdentity(f.Text("to"))
	if err != nil {
		f.Fail("to", identityProblem(f.Text("to")))
	}
	from, key := f.Raw("from"), readKey(f)
	if lineBreaks.Replace(from) == lineBreaks.Replace(w.Identity) {
		from = w.Identity
	}
	if f.OK() {
		_, _, err := req.Tenant().Rename(req.Context, store.Rename{
			ID: ids.New(), From: from, To: to, WalletID: w.ID, IdempotencyKey: key, By: req.User.ID, CreatedAt: req.Now(),
		})
		if fault.Is(err, fault.WalletNotFound) {
			f.Fail("to", "The wallet was renamed meanwhile. Open the page again.")
		} else {
			f.Check("to", err)
		}
	}
	if !f.OK() {
		return site.Invalid(supportpage.RenamePage(supportpage.RenameForm{
			WalletHead: w.head, Key: key, To: f.Text("to"), Answered: component.Answered{Problems: f.Problems},
		})), nil
	}
	req.NotifyCashier()
	return req.Done(req.WalletPath(w.ID), "Wallet renamed.")
}

func (s *Pages) eraseForm(_ *site.Request, w walletPage) (site.Response, error) {
	return site.Show(supportpage.ErasePage(supportpage.EraseForm{WalletHead: w.head, Key: formKey()})), nil
}

// erase erases a wallet, once for a form, after its identity was typed.
func (s *Pages) erase(req *site.Request, w walletPage) (site.Response, error) {
	f := req.Form
	if metering.IsTombstone(w.Identity) {
		return req.Done(req.WalletPath(w.ID), "Customer erased.")
	}
	key, reason := readKey(f), readReason(f, store.MaxErasureReason)
	if metering.NamesIdentity(reason, w.Identity) {
		f.Fail("reason", "The reason is stored. Don't include the identity.")
	}
	if !f.Confirms("identity", w.Identity) {
		f.Fail("identity", "This is not the identity of this wallet.")
	}
	if f.OK() {
		_, _, err := req.Tenant().Erase(req.Context, store.Erasure{
			ID: ids.New(), Identity: w.Identity, WalletID: w.ID, Reason: reason, IdempotencyKey: key, By: req.User.ID, CreatedAt: req.Now(),
		})
		f.Check("", err)
	}
	if !f.OK() {
		return site.Invalid(supportpage.ErasePage(supportpage.EraseForm{
			WalletHead: w.head, Key: key, Typed: f.Text("identity"), Reason: reason, Answered: component.Answered{Problems: f.Problems},
		})), nil
	}
	req.NotifyCashier()
	return req.Done(req.WalletPath(w.ID), "Customer erased.")
}

// lineBreaks makes all of them the same: a browser sends others than it got.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")
