package web

import (
	"fmt"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/views/component"
	supportpage "purser/views/page/support"
)

// Actions on a wallet. Each follows the rules of the API operation of the same kind: a
// form that gets shows the effect, a form that posts commits it, once by its key.

func (s *Site) newWallet(req *request) (response, error) {
	return show(supportpage.NewWalletPage(supportpage.NewWallet{Frame: req.frame("New wallet", "wallets"), List: req.appPath("wallets"), Path: req.appPath("wallets", "new")})), nil
}

func (s *Site) createWallet(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	identity, err := metering.ParseIdentity(f.text("identity"))
	if err != nil {
		f.fail("identity", fmt.Sprintf("Enter an identity of up to %d characters.", metering.MaxIdentityLength))
		return invalid(supportpage.NewWalletPage(supportpage.NewWallet{
			Frame: req.frame("New wallet", "wallets"), List: req.appPath("wallets"), Path: req.appPath("wallets", "new"),
			Identity: f.text("identity"), Answered: component.Answered{Problems: f.problems},
		})), nil
	}
	w, created, err := req.tenant().CreateWallet(req.context, ids.New(), identity, req.now())
	if err != nil {
		return response{}, err
	}
	if !created {
		return req.done(req.walletPath(w.ID), "This wallet already exists.")
	}
	return req.done(req.walletPath(w.ID), "Wallet created.")
}

// formKey is an idempotency key for one form.
func formKey() string { return "dashboard-" + ids.New().String() }

func (s *Site) addCreditsForm(req *request) (response, error) {
	view, w, err := s.addCreditsView(req, req.query("credit"), req.query("amount"))
	if err != nil {
		return response{}, err
	}
	if view.Amount == "" {
		return show(supportpage.AddCreditsPage(view)), nil
	}
	amount, problem := depositAmount(view.Amount)
	before := balanceOf(w, view.CreditKey)
	after, err := before.Receive(amount)
	switch {
	case problem != "":
		view.Problems = []component.Problem{{Field: "amount", Message: problem}}
	case err != nil:
		view.Problems = []component.Problem{{Field: "amount", Message: "The balance would exceed 19 digits."}}
	default:
		view.Key, view.Review = formKey(), &supportpage.CreditsReview{Amount: amount, Before: before, After: after}
		return show(supportpage.AddCreditsPage(view)), nil
	}
	return invalid(supportpage.AddCreditsPage(view)), nil
}

func (s *Site) addCreditsView(req *request, creditKey, amount string) (supportpage.AddCredits, reports.WalletFound, error) {
	head, w, err := s.walletHead(req, "")
	if err != nil {
		return supportpage.AddCredits{}, w, err
	}
	view := supportpage.AddCredits{WalletHead: head, Form: head.Path + "/deposit", CreditKey: creditKey, Amount: amount}
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	known := false
	for _, c := range credits {
		view.Credits = append(view.Credits, component.Option{Value: c.Key, Text: c.Name})
		known = known || c.Key == creditKey
	}
	switch {
	case known:
	case len(head.Balances) > 0:
		view.CreditKey = head.Balances[0].CreditKey
	case len(credits) > 0:
		view.CreditKey = credits[0].Key
	}
	return view, w, err
}

func depositAmount(text string) (amount metering.Amount, problem string) {
	amount, ok := metering.ParseCredits(text)
	if !ok || amount == 0 {
		return 0, "Enter an amount above zero, such as 12.5 (up to 9 decimals)."
	}
	return amount, ""
}

func balanceOf(w reports.WalletFound, creditKey string) metering.Balance {
	for _, b := range w.Balances {
		if b.CreditKey == creditKey {
			return b
		}
	}
	return metering.Balance{CreditKey: creditKey}
}

func (s *Site) addCredits(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	view, w, err := s.addCreditsView(req, f.text("credit"), f.text("amount"))
	if err != nil {
		return response{}, err
	}
	amount, problem := depositAmount(f.text("amount"))
	if problem != "" {
		f.fail("amount", problem)
	}
	key := f.text("key")
	if key == "" {
		f.fail("", "The form data was invalid. Open the form again.")
	}
	if f.ok() {
		_, _, err := req.tenant().Deposit(req.context, store.Deposit{
			ID: ids.New(), Identity: w.Identity, CreditKey: f.text("credit"), Amount: amount, IdempotencyKey: &key, CreatedAt: req.now(),
		})
		if err := f.check("amount", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		view.Problems = f.problems
		return invalid(supportpage.AddCreditsPage(view)), nil
	}
	return req.done(view.Path, "Added "+component.CreditsText(amount, f.text("credit"))+".")
}

// planChoices lists the active plans.
func planChoices(req *request) (list []component.Option, err error) {
	plans, _, err := req.tenant().Plans(req.context, store.Page{Limit: maxOptions})
	for _, p := range plans {
		if p.Active {
			list = append(list, component.Option{Value: p.Key, Text: p.Name})
		}
	}
	return list, err
}

func (s *Site) checkoutLinkForm(req *request) (response, error) {
	view, _, err := s.checkoutLinkView(req, formKey(), "")
	return show(supportpage.CheckoutLinkPage(view)), err
}

func (s *Site) checkoutLinkView(req *request, key, planKey string) (supportpage.CheckoutLink, reports.WalletFound, error) {
	head, w, err := s.walletHead(req, "")
	if err != nil {
		return supportpage.CheckoutLink{}, w, err
	}
	plans, err := planChoices(req)
	return supportpage.CheckoutLink{WalletHead: head, Form: head.Path + "/checkout", Key: key, PlanKey: planKey, Plans: plans}, w, err
}

func (s *Site) createCheckoutLink(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	view, w, err := s.checkoutLinkView(req, f.text("key"), f.text("plan"))
	if err != nil {
		return response{}, err
	}
	if s.cashier == nil {
		return response{}, fault.New(fault.PaymentsNotConfigured)
	}
	if err := req.tenant().RecordAction(req.context, "checkout.create", w.ID.Format(ids.Wallet), audit.Fields{"plan": view.PlanKey}); err != nil {
		return response{}, err
	}
	back := s.server.Address + view.Path
	made, err := s.cashier.SubscriptionCheckout(req.context, req.scope(), billing.CheckoutRequest{
		Identity: w.Identity, PlanKey: view.PlanKey, SuccessURL: back, CancelURL: back,
	}, view.Key)
	if err := f.check("plan", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		view.Problems = f.problems
		return invalid(supportpage.CheckoutLinkPage(view)), nil
	}
	view.URL = made.URL
	return show(supportpage.CheckoutLinkPage(view)), nil
}

func (s *Site) changePlanForm(req *request) (response, error) {
	view, w, err := s.changePlanView(req, formKey(), req.query("plan"))
	if err != nil || view.PlanKey == "" {
		return show(supportpage.ChangePlanPage(view)), err
	}
	preview, err := s.cashier.PreviewChange(req.context, req.scope(), billing.ChangeRequest{Identity: w.Identity, PlanKey: view.PlanKey})
	if fault.Is(err, fault.PlanNotFound) {
		view.Problems = []component.Problem{{Field: "plan", Message: "Plan not found."}}
		return invalid(supportpage.ChangePlanPage(view)), nil
	}
	view.Preview = &preview
	return show(supportpage.ChangePlanPage(view)), err
}

func (s *Site) changePlanView(req *request, key, planKey string) (supportpage.ChangePlan, reports.WalletFound, error) {
	head, w, err := s.walletHead(req, "")
	if err != nil {
		return supportpage.ChangePlan{}, w, err
	}
	if req.site.cashier == nil {
		return supportpage.ChangePlan{}, w, fault.New(fault.PaymentsNotConfigured)
	}
	plans, err := planChoices(req)
	return supportpage.ChangePlan{WalletHead: head, Form: head.Path + "/change", Key: key, PlanKey: planKey, Plans: plans}, w, err
}

func (s *Site) changePlan(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	view, w, err := s.changePlanView(req, f.text("key"), f.text("plan"))
	if err != nil {
		return response{}, err
	}
	if err := req.tenant().RecordAction(req.context, "subscription.change", w.ID.Format(ids.Wallet), audit.Fields{"plan": view.PlanKey}); err != nil {
		return response{}, err
	}
	changed, err := s.cashier.Change(req.context, req.scope(), billing.ChangeRequest{Identity: w.Identity, PlanKey: view.PlanKey}, view.Key)
	if err := f.check("plan", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		view.Problems = f.problems
		return invalid(supportpage.ChangePlanPage(view)), nil
	}
	message := "Plan changed."
	switch {
	case changed.Pending != nil:
		message = "The change takes effect when it is paid. Copy the payment link below."
	case changed.Scheduled != nil:
		message = "The change takes effect at the renewal."
	}
	return req.done(view.Path, message)
}

// cancelPlan cancels at the end of the period, or undoes that.
func (s *Site) cancelPlan(req *request) (response, error) {
	id, err := req.id("id", ids.Wallet)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if s.cashier == nil {
		return response{}, fault.New(fault.PaymentsNotConfigured)
	}
	w, err := req.reports().WalletByID(req.context, id)
	if err != nil {
		return response{}, err
	}
	cancel, action := f.text("cancel") == "cancel", "subscription.undo-cancel"
	if cancel {
		action = "subscription.cancel"
	}
	if err := req.tenant().RecordAction(req.context, action, w.ID.Format(ids.Wallet), nil); err != nil {
		return response{}, err
	}
	if _, err := s.cashier.Cancel(req.context, req.scope(), billing.CancelRequest{Identity: w.Identity, CancelAtPeriodEnd: cancel}, f.text("key")); err != nil {
		return response{}, err
	}
	if cancel {
		return req.done(req.walletPath(id), "The subscription ends with its period.")
	}
	return req.done(req.walletPath(id), "The subscription renews again.")
}

// planActions are what the member may do with the wallet's plan.
func planActions(req *request, head supportpage.WalletHead) (actions supportpage.PlanActions) {
	if req.site.cashier == nil || !req.may(tenancy.SubscriptionsWrite) {
		return actions
	}
	if head.Subscription == nil || head.Subscription.EndedAt != 0 {
		return supportpage.PlanActions{Checkout: head.Path + "/checkout", TopUp: head.Path + "/topup"}
	}
	return supportpage.PlanActions{TopUp: head.Path + "/topup", Change: head.Path + "/change", Cancel: head.Path + "/cancel", Key: formKey()}
}
