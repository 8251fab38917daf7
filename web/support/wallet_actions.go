package support

import (
	"fmt"
	"unicode/utf8"

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
	"purser/web/site"
)

// Actions on a wallet. Each follows the rules of the API operation of the same kind: a
// form that gets shows the effect, a form that posts commits it, once by its key.

func (s *Pages) newWallet(req *site.Request) (site.Response, error) {
	return site.Show(supportpage.NewWalletPage(supportpage.NewWallet{Frame: req.Frame("New wallet", "wallets"), List: req.AppPath("wallets"), Path: req.AppPath("wallets", "new")})), nil
}

func (s *Pages) createWallet(req *site.Request) (site.Response, error) {
	f := req.Form
	identity, err := metering.ParseIdentity(f.Text("identity"))
	if err != nil {
		f.Fail("identity", identityProblem(f.Text("identity")))
		return site.Invalid(supportpage.NewWalletPage(supportpage.NewWallet{
			Frame: req.Frame("New wallet", "wallets"), List: req.AppPath("wallets"), Path: req.AppPath("wallets", "new"),
			Identity: f.Text("identity"), Answered: component.Answered{Problems: f.Problems},
		})), nil
	}
	w, created, err := req.Tenant().CreateWallet(req.Context, ids.New(), identity, req.Now())
	if err != nil {
		return site.Response{}, err
	}
	if !created {
		return req.Done(req.WalletPath(w.ID), "This wallet already exists.")
	}
	return req.Done(req.WalletPath(w.ID), "Wallet created.")
}

// formKey is an idempotency key for one form.
func formKey() string { return "dashboard-" + ids.New().String() }

func (s *Pages) addCreditsForm(req *site.Request, w walletPage) (site.Response, error) {
	view, err := addCreditsView(req, w, req.Query("credit"), req.Query("amount"))
	if err != nil {
		return site.Response{}, err
	}
	if view.Amount == "" {
		return site.Show(supportpage.AddCreditsPage(view)), nil
	}
	amount, problem := depositAmount(view.Amount)
	before := balanceOf(w.WalletFound, view.CreditKey)
	after, err := before.Receive(amount)
	switch {
	case problem != "":
		view.Problems = []component.Problem{{Field: "amount", Message: problem}}
	case err != nil:
		view.Problems = []component.Problem{{Field: "amount", Message: "The balance would exceed 19 digits."}}
	default:
		view.Key, view.Review = formKey(), &supportpage.CreditsReview{Amount: amount, Before: before, After: after}
		return site.Show(supportpage.AddCreditsPage(view)), nil
	}
	return site.Invalid(supportpage.AddCreditsPage(view)), nil
}

func addCreditsView(req *site.Request, w walletPage, creditKey, amount string) (supportpage.AddCredits, error) {
	credits, err := creditChoices(req)
	view := supportpage.AddCredits{WalletHead: w.head, Form: w.head.Path + "/deposit", CreditKey: creditKey, Credits: credits, Amount: amount}
	switch {
	case component.HasOption(credits, creditKey):
	case len(view.Balances) > 0:
		view.CreditKey = view.Balances[0].CreditKey
	case len(credits) > 0:
		view.CreditKey = credits[0].Value
	}
	return view, err
}

func depositAmount(text string) (amount metering.Amount, problem string) {
	amount, ok := metering.ParseCredits(text)
	if !ok || amount == 0 {
		return 0, "Enter an amount above zero, such as 12.5 (up to 9 decimals)."
	}
	return amount, ""
}

// readAmount parses the amount of a form.
func readAmount(f *site.Form) metering.Amount {
	amount, problem := depositAmount(f.Text("amount"))
	if problem != "" {
		f.Fail("amount", problem)
	}
	return amount
}

// readEntryID parses the id that the form chose for its entry of a kind, so that a form sent
// twice makes one. An entry with the id of a charge would be shown in place of the charge.
func readEntryID(req *site.Request, kind metering.EntryKind) (ids.ID, error) {
	id, ok := site.ParseFormID(ids.Transaction, req.Form.Text("entry"))
	if ok {
		t, err := req.Reports().Transaction(req.Context, id)
		switch {
		case err == nil:
			ok = t.Event == nil && t.Entry.Kind == kind
		case !fault.Is(err, fault.PathNotFound):
			return id, err
		}
	}
	if !ok {
		req.Form.Fail("", "The form data was invalid. Open the form again.")
	}
	return id, nil
}

// readKey parses the idempotency key of a form, which is as long as the API allows: it is
// kept, shown and exported with what the form made.
func readKey(f *site.Form) string {
	key := f.Text("key")
	if key == "" || utf8.RuneCountInString(key) > metering.MaxIdempotencyKeyLength {
		f.Fail("", "The form data was invalid. Open the form again.")
	}
	return key
}

// readPlan parses the key of a plan, which the audit log keeps.
func readPlan(f *site.Form) string {
	if !metering.IsKey(f.Text("plan")) {
		f.Fail("plan", "Select a plan.")
	}
	return f.Text("plan")
}

// readReason parses a reason of limited length, in characters.
func readReason(f *site.Form, limit int) string {
	reason := f.Text("reason")
	if reason == "" {
		f.Fail("reason", "Enter a reason.")
	}
	if utf8.RuneCountInString(reason) > limit {
		f.Fail("reason", fmt.Sprintf("Enter up to %d characters.", limit))
	}
	return reason
}

// creditChoices lists the credits by their names.
func creditChoices(req *site.Request) (list []component.Option, err error) {
	credits, _, err := req.Tenant().Credits(req.Context, store.Page{Limit: site.MaxOptions})
	for _, c := range credits {
		list = append(list, component.Option{Value: c.Key, Text: c.Name})
	}
	return list, err
}

func balanceOf(w reports.WalletFound, creditKey string) metering.Balance {
	for _, b := range w.Balances {
		if b.CreditKey == creditKey {
			return b
		}
	}
	return metering.Balance{CreditKey: creditKey}
}

func (s *Pages) addCredits(req *site.Request, w walletPage) (site.Response, error) {
	f := req.Form
	view, err := addCreditsView(req, w, f.Text("credit"), f.Text("amount"))
	if err != nil {
		return site.Response{}, err
	}
	amount := readAmount(f)
	key := readKey(f)
	if f.OK() {
		_, _, err := req.Tenant().Deposit(req.Context, store.Deposit{
			ID: ids.New(), Identity: w.Identity, WalletID: w.ID, CreditKey: f.Text("credit"), Amount: amount, IdempotencyKey: &key, CreatedAt: req.Now(), ClockOffset: req.ClockOffset,
		})
		f.Check("amount", err)
	}
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.AddCreditsPage(view)), nil
	}
	return req.Done(view.Path, "Added "+component.CreditsText(amount, f.Text("credit"))+".")
}

// planChoices lists the active plans.
func planChoices(req *site.Request) (list []component.Option, err error) {
	plans, _, err := req.Tenant().Plans(req.Context, store.Page{Limit: site.MaxOptions})
	for _, p := range plans {
		if p.Active {
			list = append(list, component.Option{Value: p.Key, Text: p.Name})
		}
	}
	return list, err
}

func (s *Pages) checkoutLinkForm(req *site.Request, w walletPage) (site.Response, error) {
	view, err := checkoutLinkView(req, w, formKey(), "")
	return site.Show(supportpage.CheckoutLinkPage(view)), err
}

func checkoutLinkView(req *site.Request, w walletPage, key, planKey string) (supportpage.CheckoutLink, error) {
	plans, err := planChoices(req)
	return supportpage.CheckoutLink{WalletHead: w.head, Form: w.head.Path + "/checkout", Key: key, PlanKey: planKey, Plans: plans}, err
}

func (s *Pages) createCheckoutLink(req *site.Request, w walletPage) (site.Response, error) {
	f := req.Form
	view, err := checkoutLinkView(req, w, readKey(f), readPlan(f))
	if err != nil {
		return site.Response{}, err
	}
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.CheckoutLinkPage(view)), nil
	}
	if err := req.Tenant().RecordAction(req.Context, "checkout.create", w.ID.Format(ids.Wallet), audit.Fields{"plan": view.PlanKey}); err != nil {
		return site.Response{}, err
	}
	back := s.Server.Address + view.Path
	made, err := s.Cashier.SubscriptionCheckout(req.Context, req.Scope(), billing.CheckoutRequest{
		Identity: w.Identity, PlanKey: view.PlanKey, SuccessURL: back, CancelURL: back,
	}, view.Key)
	f.Check("plan", err)
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.CheckoutLinkPage(view)), nil
	}
	view.URL = made.URL
	return site.ShowOnce(supportpage.CheckoutLinkPage(view)), nil
}

func (s *Pages) changePlanForm(req *site.Request, w walletPage) (site.Response, error) {
	view, err := changePlanView(req, w, formKey(), req.Query("plan"))
	if err != nil || view.PlanKey == "" {
		return site.Show(supportpage.ChangePlanPage(view)), err
	}
	preview, err := s.Cashier.PreviewChange(req.Context, req.Scope(), billing.ChangeRequest{Identity: w.Identity, PlanKey: view.PlanKey})
	if fault.Is(err, fault.PlanNotFound) {
		view.Problems = []component.Problem{{Field: "plan", Message: "Plan not found."}}
		return site.Invalid(supportpage.ChangePlanPage(view)), nil
	}
	view.Preview = &preview
	return site.Show(supportpage.ChangePlanPage(view)), err
}

func changePlanView(req *site.Request, w walletPage, key, planKey string) (supportpage.ChangePlan, error) {
	plans, err := planChoices(req)
	return supportpage.ChangePlan{WalletHead: w.head, Form: w.head.Path + "/change", Key: key, PlanKey: planKey, Plans: plans}, err
}

func (s *Pages) changePlan(req *site.Request, w walletPage) (site.Response, error) {
	f := req.Form
	view, err := changePlanView(req, w, readKey(f), readPlan(f))
	if err != nil {
		return site.Response{}, err
	}
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.ChangePlanPage(view)), nil
	}
	if err := req.Tenant().RecordAction(req.Context, "subscription.change", w.ID.Format(ids.Wallet), audit.Fields{"plan": view.PlanKey}); err != nil {
		return site.Response{}, err
	}
	confirmed := f.Text("preview")
	changed, err := s.Cashier.Change(req.Context, req.Scope(), billing.ChangeRequest{Identity: w.Identity, PlanKey: view.PlanKey, Confirmed: &confirmed}, view.Key)
	if fault.Is(err, fault.RevisionConflict) {
		preview, err := s.Cashier.PreviewChange(req.Context, req.Scope(), billing.ChangeRequest{Identity: w.Identity, PlanKey: view.PlanKey})
		view.Preview, view.Problems = &preview, []component.Problem{{Message: "The plan or the subscription changed since the preview. Nothing was changed: check the new preview."}}
		return site.Conflict(supportpage.ChangePlanPage(view)), err
	}
	f.Check("plan", err)
	if !f.OK() {
		view.Problems = f.Problems
		return site.Invalid(supportpage.ChangePlanPage(view)), nil
	}
	message := "Plan changed."
	switch {
	case changed.Pending != nil:
		message = "The change takes effect when it is paid. Copy the payment link below."
	case changed.Scheduled != nil:
		message = "The change takes effect at the renewal."
	}
	return req.Done(view.Path, message)
}

// cancelPlan cancels at the end of the period, or undoes that.
func (s *Pages) cancelPlan(req *site.Request, id ids.ID) (site.Response, error) {
	f := req.Form
	key := readKey(f)
	if !f.OK() {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Reload the page and try again.")
	}
	w, err := req.Reports().WalletByID(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	cancel, action := f.Text("cancel") == "cancel", "subscription.undo-cancel"
	if cancel {
		action = "subscription.cancel"
	}
	if err := req.Tenant().RecordAction(req.Context, action, w.ID.Format(ids.Wallet), nil); err != nil {
		return site.Response{}, err
	}
	sub, err := s.Cashier.Cancel(req.Context, req.Scope(), billing.CancelRequest{Identity: w.Identity, CancelAtPeriodEnd: cancel}, key)
	if err != nil {
		return site.Response{}, err
	}
	return req.Done(req.WalletPath(id), cancelMessage(sub))
}

// cancelMessage says what became of a subscription that was cancelled, or isn't any more.
func cancelMessage(sub billing.Subscription) string {
	switch {
	case sub.Ended():
		return "The subscription has ended: its renewal was not paid."
	case sub.CancelAtPeriodEnd:
		return "The subscription ends at the end of the current period."
	default:
		return "The cancellation was undone. The subscription will renew."
	}
}

// endsNow reports whether a cancellation ends the subscription at once: its paid period is
// over. A free one ends with its period all the same.
func endsNow(sub supportpage.SubscriptionRow, now int64) bool {
	held := sub.Status == metering.StatusPastDue || sub.Status == metering.StatusUnpaid
	return held || sub.ProviderID != "" && sub.Period.End <= now
}

// planActions are what the member may do with the wallet's plan.
func planActions(req *site.Request, head supportpage.WalletHead) (actions supportpage.PlanActions) {
	if !req.May(tenancy.SubscriptionsWrite) {
		return actions
	}
	if head.Subscription == nil || head.Subscription.EndedAt != 0 {
		return supportpage.PlanActions{Checkout: head.Path + "/checkout", TopUp: head.Path + "/topup"}
	}
	actions = supportpage.PlanActions{
		Change: head.Path + "/change", Cancel: head.Path + "/cancel", EndsNow: endsNow(*head.Subscription, req.Now()), Key: formKey(),
	}
	if head.Plan == nil || !head.Plan.NoTopUps {
		actions.TopUp = head.Path + "/topup"
	}
	return actions
}
