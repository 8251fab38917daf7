package web

import (
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

// planFilter begins the filter that shows one plan's wallets.
const planFilter = "plan:"

func (s *Site) wallets(v *visit) (answer, error) {
	p, err := v.before(ids.Wallet)
	if err != nil {
		return answer{}, err
	}
	q := store.WalletQuery{Identity: v.query("q"), After: v.query("after"), Page: p}
	options, err := v.walletFilters(&q)
	if err != nil {
		return answer{}, err
	}
	found, more, err := v.tenant().FindWallets(v.context, q)
	if err != nil {
		return answer{}, err
	}
	list := v.listing(v.appPath("wallets"), "q", "show")
	view := page.WalletList{
		Frame: v.frame("Wallets", "wallets"), Path: list.path, Query: q.Identity, Show: v.query("show"), Shows: options,
	}
	for _, w := range found {
		row := page.WalletRow{Href: v.walletPath(w.ID), Identity: w.Identity, Balances: w.Balances, CreatedAt: w.CreatedAt}
		if w.Subscription != nil {
			subscription := v.subscriptionRow(*w.Subscription, false)
			row.Subscription = &subscription
		}
		view.Wallets = append(view.Wallets, row)
	}
	if q.Identity == "" {
		view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Wallet, func(w store.WalletFound) ids.ID { return w.ID }))
	} else {
		view.Pages = list.pages("after", q.After != "", lastIdentity(found, more))
	}
	return show(page.Wallets(view)), nil
}

func lastIdentity(found []store.WalletFound, more bool) string {
	if !more {
		return ""
	}
	return found[len(found)-1].Identity
}

// walletFilters reads which filter is chosen, and lists those that can be.
func (v *visit) walletFilters(q *store.WalletQuery) ([]component.Option, error) {
	options := []component.Option{
		{Value: "", Text: "All wallets"},
		{Value: string(store.WalletsInDebt), Text: "In debt"},
		{Value: string(store.WalletsOnHold), Text: "On payment hold"},
	}
	chosen := v.query("show")
	switch chosen {
	case string(store.WalletsInDebt), string(store.WalletsOnHold):
		q.Filter = store.WalletFilter(chosen)
	}
	if !v.may(tenancy.PlansRead) {
		return options, nil
	}
	plans, _, err := v.tenant().Plans(v.context, store.Page{Limit: maxOptions})
	for _, plan := range plans {
		value := planFilter + plan.Key
		options = append(options, component.Option{Value: value, Text: "On plan " + plan.Name})
		if chosen == value {
			q.Filter, q.PlanID = store.WalletsOfPlan, plan.ID
		}
	}
	return options, err
}

// walletHead reads what every tab of a wallet's page begins with. It shows balances,
// so a tab's own permission is not enough.
func (v *visit) walletHead(tab string) (page.WalletHead, store.WalletFound, error) {
	id, err := v.id("id", ids.Wallet)
	if err != nil {
		return page.WalletHead{}, store.WalletFound{}, err
	}
	if err := v.member.Permissions().Require(tenancy.WalletsRead); err != nil {
		return page.WalletHead{}, store.WalletFound{}, err
	}
	w, err := v.tenant().WalletByID(v.context, id)
	if err != nil {
		return page.WalletHead{}, w, err
	}
	head := page.WalletHead{
		Frame: v.frame(component.ShortText(w.Identity), "wallets"), List: v.appPath("wallets"), Path: v.walletPath(id), Tab: tab,
		ID: id.Format(ids.Wallet), Identity: w.Identity, CreatedAt: w.CreatedAt, Balances: w.Balances,
		BillingPeriod: w.BillingPeriod, Locked: w.BillingPeriodLocked(),
	}
	if w.BillingPeriod != nil {
		head.Current = w.BillingPeriod.Containing(v.now())
	}
	if w.Subscription != nil {
		row := v.subscriptionRow(*w.Subscription, false)
		head.Subscription = &row
	}
	if v.may(tenancy.JournalRead) {
		head.Check = v.listing(v.appPath("check")).at("identity", w.Identity)
	}
	if v.may(tenancy.BalancesAdjust) {
		head.Adjust = head.Path + "/adjust"
	}
	return head, w, nil
}

func (s *Site) walletJournal(v *visit) (answer, error) {
	before, err := v.beforeSeq()
	if err != nil {
		return answer{}, err
	}
	head, w, err := v.walletHead("journal")
	if err != nil {
		return answer{}, err
	}
	lines, proof, more, err := v.tenant().Journal(v.context, store.JournalPage{WalletID: w.ID, Before: before, Limit: deskPage})
	if err != nil {
		return answer{}, err
	}
	view := page.WalletJournal{WalletHead: head, Export: head.Path + "/journal.csv"}
	credits := map[ids.ID]string{}
	for _, l := range lines {
		credits[l.CreditID] = l.CreditKey
		view.Lines = append(view.Lines, page.JournalRow{
			Href: v.transactionPath(l.ID), Seq: l.Seq, Kind: l.Kind, About: aboutEntry(l), Deduplicated: l.Deduplicated,
			Delta: l.Delta, BalanceAfter: l.BalanceAfter, DebtAfter: l.DebtAfter, CreditKey: l.CreditKey, CreatedAt: l.CreatedAt,
		})
	}
	for _, r := range proof {
		proven := page.JournalProof{BalanceProof: r, CreditKey: credits[r.CreditID]}
		if before == 0 && unmoved(w.Wallet, lines) {
			stored := w.Balance(r.CreditID)
			proven.Stored = &stored
		}
		view.Proofs = append(view.Proofs, proven)
	}
	older := ""
	if more {
		older = strconv.FormatInt(lines[len(lines)-1].Seq, 10)
	}
	view.Pages = listing{path: head.Path}.pages("before", before != 0, older)
	return show(page.WalletJournalPage(view)), nil
}

// aboutEntry says in a word what an entry was for.
func aboutEntry(l store.JournalLine) string {
	switch {
	case l.Kind == metering.EntryCharge:
		return l.FeatureKey + " × " + strconv.FormatInt(l.Quantity, 10)
	case l.Reason != "":
		return l.Reason
	case l.SourceID != "":
		return sourceText(l.SourceKind, l.SourceID)
	case l.IdempotencyKey != nil:
		return *l.IdempotencyKey
	default:
		return ""
	}
}

// unmoved reports whether the wallet and the newest entries were read at the same
// point: a use may have come between the two looks, and would prove nothing wrong.
func unmoved(w metering.Wallet, lines []store.JournalLine) bool {
	newest := map[ids.ID]bool{}
	for _, l := range lines {
		if newest[l.CreditID] {
			continue
		}
		newest[l.CreditID] = true
		if b := w.Balance(l.CreditID); b.Amount != l.BalanceAfter || b.Debt != l.DebtAfter {
			return false
		}
	}
	return true
}

func (s *Site) walletUsage(v *visit) (answer, error) {
	before, err := v.beforeSeq()
	if err != nil {
		return answer{}, err
	}
	head, w, err := v.walletHead("usage")
	if err != nil {
		return answer{}, err
	}
	events, next, err := v.tenant().Events(v.context, store.EventQuery{WalletID: w.ID, BeforeSeq: before, Page: store.Page{Limit: deskPage}})
	if err != nil {
		return answer{}, err
	}
	view := page.WalletUsage{WalletHead: head}
	for _, e := range events {
		view.Events = append(view.Events, v.eventRow(e, false))
	}
	older := ""
	if next != nil {
		older = strconv.FormatInt(events[len(events)-1].Seq, 10)
	}
	view.Pages = listing{path: head.Path + "/usage"}.pages("before", before != 0, older)
	return show(page.WalletUsagePage(view)), nil
}

func (s *Site) walletDeposits(v *visit) (answer, error) {
	before, err := v.beforeSeq()
	if err != nil {
		return answer{}, err
	}
	head, w, err := v.walletHead("deposits")
	if err != nil {
		return answer{}, err
	}
	list, more, err := v.tenant().DepositsOf(v.context, store.JournalPage{WalletID: w.ID, Before: before, Limit: deskPage})
	if err != nil {
		return answer{}, err
	}
	view := page.WalletDeposits{WalletHead: head}
	for _, d := range list {
		view.Deposits = append(view.Deposits, v.depositRow(d, false))
	}
	older := ""
	if more {
		older = strconv.FormatInt(list[len(list)-1].Seq, 10)
	}
	view.Pages = listing{path: head.Path + "/deposits"}.pages("before", before != 0, older)
	return show(page.WalletDepositsPage(view)), nil
}

func (s *Site) walletSubscriptions(v *visit) (answer, error) {
	head, w, err := v.walletHead("subscription")
	if err != nil {
		return answer{}, err
	}
	list, err := v.tenant().SubscriptionsOf(v.context, w.ID)
	if err != nil {
		return answer{}, err
	}
	view := page.WalletSubscriptions{WalletHead: head, Test: !v.app.Live}
	if view.Test && s.cashier != nil && v.may(tenancy.SubscriptionsWrite) {
		view.Portal = head.Path + "/portal"
	}
	for _, subscription := range list {
		view.Subscriptions = append(view.Subscriptions, v.subscriptionRow(subscription, false))
	}
	return show(page.WalletSubscriptionsPage(view)), nil
}

// openPortal leads to the billing page of a wallet's identity, in an application for
// trying out. In a live one that page is the customer's alone.
func (s *Site) openPortal(v *visit) (answer, error) {
	if v.app.Live {
		return answer{}, fault.New(fault.PathNotFound)
	}
	if s.cashier == nil {
		return answer{}, fault.New(fault.PaymentsNotConfigured)
	}
	id, err := v.id("id", ids.Wallet)
	if err != nil {
		return answer{}, err
	}
	w, err := v.tenant().WalletByID(v.context, id)
	if err != nil {
		return answer{}, err
	}
	address, err := s.cashier.Portal(v.context, v.scope(), w.Identity, s.server.Address+v.walletPath(id)+"/subscription")
	if err != nil {
		return answer{}, err
	}
	return redirect(address), nil
}
