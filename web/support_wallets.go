package web

import (
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/notifications"
	"purser/store/reports"
	"purser/tenancy"
	"purser/views/component"
	notifypage "purser/views/page/notifications"
	supportpage "purser/views/page/support"
)

// planFilter is the prefix of the filter by plan.
const planFilter = "plan:"

func (s *Site) wallets(req *request) (response, error) {
	p, err := req.before(ids.Wallet)
	if err != nil {
		return response{}, err
	}
	q := reports.WalletQuery{Page: p}
	options, err := walletFilters(req, &q)
	if err != nil {
		return response{}, err
	}
	list := req.listing(req.appPath("wallets"), "q", "show")
	view := supportpage.WalletList{
		Frame: req.frame("Wallets", "wallets"), Path: list.path, Query: req.query("q"), Show: req.query("show"), Shows: options,
	}
	if req.may(tenancy.WalletsWrite) {
		view.New = req.appPath("wallets", "new")
	}
	var found []reports.WalletFound
	if view.Query != "" {
		var next *reports.WalletSearch
		found, next, err = req.reports().SearchWallets(req.context, walletSearch(req, view.Query, p))
		view.Pages, view.Unfinished = searchPages(req, list, next, len(found))
	} else {
		var more bool
		found, more, err = req.reports().FindWallets(req.context, q)
		view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Wallet, func(w reports.WalletFound) ids.ID { return w.ID }))
	}
	if err != nil {
		return response{}, err
	}
	for _, w := range found {
		row := supportpage.WalletRow{Href: req.walletPath(w.ID), Identity: w.Identity, Balances: w.Balances, CreatedAt: w.CreatedAt}
		if w.Subscription != nil {
			subscription := newSubscriptionRow(req, *w.Subscription, false)
			row.Subscription = &subscription
		}
		view.Wallets = append(view.Wallets, row)
	}
	return show(supportpage.Wallets(view)), nil
}

// walletSearch reads where a search for wallets goes on.
func walletSearch(req *request, text string, p store.Page) reports.WalletSearch {
	return reports.WalletSearch{Text: text, After: req.query("after"), Inside: !p.Before.IsZero(), Page: p}
}

// searchPages links to the next page of a search, and reports whether this one is
// partial.
func searchPages(req *request, list listing, next *reports.WalletSearch, found int) (pages component.Pages, unfinished bool) {
	begun := req.query("after") != "" || req.query("before") != ""
	switch {
	case next == nil:
		return list.pages("after", begun, ""), false
	case next.Inside:
		before := next.Before
		if before.IsZero() { // the page is full of wallets that begin with the text
			before = next.Start()
		}
		return list.pages("before", begun, before.Format(ids.Wallet)), found < next.Limit
	default:
		return list.pages("after", begun, next.After), false
	}
}

// walletFilters reads the active filter and lists the available ones.
func walletFilters(req *request, q *reports.WalletQuery) ([]component.Option, error) {
	options := []component.Option{
		{Value: "", Text: "All wallets"},
		{Value: string(reports.WalletsInDebt), Text: "In debt"},
		{Value: string(reports.WalletsOnHold), Text: "On payment hold"},
	}
	chosen := req.query("show")
	switch chosen {
	case string(reports.WalletsInDebt), string(reports.WalletsOnHold):
		q.Filter = reports.WalletFilter(chosen)
	}
	if !req.may(tenancy.PlansRead) {
		return options, nil
	}
	plans, _, err := req.tenant().Plans(req.context, store.Page{Limit: maxOptions})
	for _, plan := range plans {
		value := planFilter + plan.Key
		options = append(options, component.Option{Value: value, Text: "On plan " + plan.Name})
		if chosen == value {
			q.Filter, q.PlanID = reports.WalletsOfPlan, plan.ID
		}
	}
	return options, err
}

// walletHead reads the header of every wallet tab. It shows balances, so it requires
// more than the tab's own permission.
func (s *Site) walletHead(req *request, tab string) (supportpage.WalletHead, reports.WalletFound, error) {
	id, err := req.id("id", ids.Wallet)
	if err != nil {
		return supportpage.WalletHead{}, reports.WalletFound{}, err
	}
	if err := req.member.Permissions().Require(tenancy.WalletsRead); err != nil {
		return supportpage.WalletHead{}, reports.WalletFound{}, err
	}
	w, err := req.reports().WalletByID(req.context, id)
	if err != nil {
		return supportpage.WalletHead{}, w, err
	}
	head := supportpage.WalletHead{
		Frame: req.frame(component.ShortIdentity(w.Identity), "wallets"), List: req.appPath("wallets"), Path: req.walletPath(id), Tab: tab,
		ID: id.Format(ids.Wallet), Identity: w.Identity, CreatedAt: w.CreatedAt, Balances: w.Balances,
		BillingPeriod: w.BillingPeriod, Locked: w.BillingPeriodLocked(),
	}
	if w.BillingPeriod != nil {
		head.Current = w.BillingPeriod.Containing(req.now())
	}
	if w.Subscription != nil {
		row := newSubscriptionRow(req, *w.Subscription, false)
		head.Subscription = &row
		if head.Plan, err = s.walletPlan(req, w.Identity); err != nil {
			return head, w, err
		}
	}
	if req.may(tenancy.JournalRead) {
		head.Check = req.listing(req.appPath("check")).at("identity", w.Identity)
	}
	if s.exportWallet != nil && req.may(tenancy.JournalRead) && req.may(tenancy.WalletsWrite) {
		head.Export = head.Path + "/export.json"
	}
	if req.may(tenancy.WalletsWrite) && !metering.IsTombstone(w.Identity) {
		head.Rename = head.Path + "/rename"
	}
	if req.may(tenancy.BalancesAdjust) {
		head.Adjust, head.Transfer = head.Path+"/adjust", head.Path+"/transfer"
		if !metering.IsTombstone(w.Identity) {
			head.Erase = head.Path + "/erase"
		}
	}
	if req.may(tenancy.DepositsWrite) {
		head.Deposit = head.Path + "/deposit"
	}
	head.Actions = planActions(req, head)
	return head, w, nil
}

func (s *Site) walletJournal(req *request) (response, error) {
	before, err := req.beforeSeq()
	if err != nil {
		return response{}, err
	}
	head, w, err := s.walletHead(req, "journal")
	if err != nil {
		return response{}, err
	}
	lines, proof, more, err := req.reports().Journal(req.context, reports.JournalPage{WalletID: w.ID, Before: before, Limit: pageSize})
	if err != nil {
		return response{}, err
	}
	view := supportpage.WalletJournal{WalletHead: head, Export: head.Path + "/journal.csv"}
	credits := map[ids.ID]string{}
	for _, l := range lines {
		credits[l.CreditID] = l.CreditKey
		row := supportpage.JournalRow{
			Href: req.transactionPath(l.ID), Seq: l.Seq, Kind: l.Kind, About: entryLabel(l), Deduplicated: l.Deduplicated,
			Delta: l.Delta, BalanceAfter: l.BalanceAfter, DebtAfter: l.DebtAfter, CreditKey: l.CreditKey, CreatedAt: l.CreatedAt,
		}
		if t := l.Transfer; t != nil {
			row.Other, row.OtherHref = t.Identity, req.walletPath(t.WalletID)
		}
		view.Lines = append(view.Lines, row)
	}
	for _, r := range proof {
		proven := supportpage.JournalProof{BalanceProof: r, CreditKey: credits[r.CreditID]}
		if before == 0 && isSameVersion(w.Wallet, lines) {
			stored := w.Balance(r.CreditID)
			proven.Stored = &stored
		}
		view.Proofs = append(view.Proofs, proven)
	}
	older := int64(0)
	if more {
		older = lines[len(lines)-1].Seq
	}
	view.Pages = listing{path: head.Path}.pages("before", before != 0, olderSeq(older))
	return show(supportpage.WalletJournalPage(view)), nil
}

// entryLabel is a short label for an entry.
func entryLabel(l reports.JournalLine) string {
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

// isSameVersion reports whether the wallet and its newest entries were read in the same
// state: usage may have been charged between the two reads, which is no difference.
func isSameVersion(w metering.Wallet, lines []reports.JournalLine) bool {
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

func (s *Site) walletUsage(req *request) (response, error) {
	before, err := req.beforeSeq()
	if err != nil {
		return response{}, err
	}
	head, w, err := s.walletHead(req, "usage")
	if err != nil {
		return response{}, err
	}
	events, next, err := req.reports().Events(req.context, reports.EventQuery{WalletID: w.ID, BeforeSeq: before, Page: store.Page{Limit: pageSize}})
	if err != nil {
		return response{}, err
	}
	chart, err := walletUsageChart(req, w.Identity)
	if err != nil {
		return response{}, err
	}
	view := supportpage.WalletUsage{WalletHead: head, Chart: chart}
	for _, e := range events {
		view.Events = append(view.Events, newEventRow(req, e, false))
	}
	older := int64(0)
	if next != nil {
		older = events[len(events)-1].Seq
	}
	view.Pages = listing{path: head.Path + "/usage"}.pages("before", before != 0, olderSeq(older))
	return show(supportpage.WalletUsagePage(view)), nil
}

func (s *Site) walletDeposits(req *request) (response, error) {
	before, err := req.beforeSeq()
	if err != nil {
		return response{}, err
	}
	head, w, err := s.walletHead(req, "deposits")
	if err != nil {
		return response{}, err
	}
	list, more, err := req.reports().DepositsOf(req.context, reports.JournalPage{WalletID: w.ID, Before: before, Limit: pageSize})
	if err != nil {
		return response{}, err
	}
	view := supportpage.WalletDeposits{WalletHead: head}
	for _, d := range list {
		view.Deposits = append(view.Deposits, newDepositRow(req, d, false))
	}
	older := int64(0)
	if more {
		older = list[len(list)-1].Seq
	}
	view.Pages = listing{path: head.Path + "/deposits"}.pages("before", before != 0, olderSeq(older))
	return show(supportpage.WalletDepositsPage(view)), nil
}

func (s *Site) walletSubscriptions(req *request) (response, error) {
	head, w, err := s.walletHead(req, "subscription")
	if err != nil {
		return response{}, err
	}
	list, err := req.reports().SubscriptionsOf(req.context, w.ID)
	if err != nil {
		return response{}, err
	}
	view := supportpage.WalletSubscriptions{WalletHead: head, Test: !req.app.Live}
	if view.Test && s.cashier != nil && req.may(tenancy.SubscriptionsWrite) {
		view.Portal = head.Path + "/portal"
	}
	for _, subscription := range list {
		view.Subscriptions = append(view.Subscriptions, newSubscriptionRow(req, subscription, false))
	}
	return show(supportpage.WalletSubscriptionsPage(view)), nil
}

// openPortal redirects to the billing portal of a wallet's identity, in test mode only.
// In live mode the portal belongs to the customer.
func (s *Site) openPortal(req *request) (response, error) {
	if req.app.Live {
		return response{}, fault.New(fault.PathNotFound)
	}
	if s.cashier == nil {
		return response{}, fault.New(fault.PaymentsNotConfigured)
	}
	id, err := req.id("id", ids.Wallet)
	if err != nil {
		return response{}, err
	}
	w, err := req.reports().WalletByID(req.context, id)
	if err != nil {
		return response{}, err
	}
	address, err := s.cashier.Portal(req.context, req.scope(), w.Identity, s.server.Address+req.walletPath(id)+"/subscription")
	if err != nil {
		return response{}, err
	}
	return redirect(address), nil
}

func (s *Site) walletNotifications(req *request) (response, error) {
	before, err := req.beforeSeq()
	if err != nil {
		return response{}, err
	}
	head, w, err := s.walletHead(req, "notifications")
	if err != nil {
		return response{}, err
	}
	found, next, err := req.notifications().Newest(req.context, notifications.Backwards{Before: before, WalletID: w.ID, Limit: pageSize})
	if err != nil {
		return response{}, err
	}
	view := supportpage.WalletNotifications{WalletHead: head, Webhooks: req.appPath("webhooks")}
	for _, n := range found {
		view.Rows = append(view.Rows, notifypage.NotificationRow{Notification: n, Href: req.notificationPath(n.ID)})
	}
	view.Pages = listing{path: head.Path + "/notifications"}.pages("before", before != 0, olderSeq(next))
	return show(supportpage.WalletNotificationsPage(view)), nil
}
