package support

import (
	"slices"
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
	"purser/web/site"
)

// planFilter is the prefix of the filter by plan.
const planFilter = "plan:"

// maxSearches bounds how often a page searches on for wallets of its filter.
const maxSearches = 20

func (s *Pages) wallets(req *site.Request, p store.Page) (site.Response, error) {
	q := reports.WalletQuery{Page: p}
	options, err := walletFilters(req, &q)
	if err != nil {
		return site.Response{}, err
	}
	list := req.Listing(req.AppPath("wallets"), "q", "show", "sort")
	view := supportpage.WalletList{
		Frame: req.Frame("Wallets", "wallets"), Path: list.Path, Query: req.Query("q"), Show: req.Query("show"), Shows: options,
		New: req.LinkIfPermitted(tenancy.WalletsWrite, "wallets", "new"),
	}
	sortWallets(list, &q, &view)
	var found []reports.WalletFound
	if view.Query != "" {
		search := walletSearch(req, view.Query, p)
		next := &search
		for range maxSearches {
			var page []reports.WalletFound
			page, next, err = req.Reports().SearchWallets(req.Context, *next)
			found = append(found, slices.DeleteFunc(page, func(w reports.WalletFound) bool { return !isListed(w, q) })...)
			if err != nil || next == nil || len(found) > 0 || q.Filter == reports.AllWallets {
				break
			}
		}
		view.Pages, view.Unfinished = searchPages(req, list, next), next != nil && len(found) < p.Limit
	} else {
		var more bool
		found, more, err = req.Reports().FindWallets(req.Context, q)
		view.Pages = list.Pages("before", !p.Before.IsZero(), site.LastID(found, more, ids.Wallet, func(w reports.WalletFound) ids.ID { return w.ID }))
	}
	if err != nil {
		return site.Response{}, err
	}
	for _, w := range found {
		row := supportpage.WalletRow{Href: req.WalletPath(w.ID), Identity: w.Identity, Balances: w.Balances, CreatedAt: w.CreatedAt}
		if w.Subscription != nil && req.May(tenancy.SubscriptionsRead) {
			subscription := newSubscriptionRow(req, *w.Subscription, false)
			row.Subscription = &subscription
		}
		view.Wallets = append(view.Wallets, row)
	}
	return site.Show(supportpage.Wallets(view)), nil
}

// sortWallets reads the order of all wallets, and adds links to the others. A search or a
// filter has one order.
func sortWallets(list site.Listing, q *reports.WalletQuery, view *supportpage.WalletList) {
	if view.Query != "" || q.Filter != reports.AllWallets {
		keepOrder(list)
		return
	}
	keepOrder(list, string(reports.OldestWallets), string(reports.ByIdentity))
	q.Order = reports.WalletOrder(list.Filter.Get("sort"))
	view.ByAge = byAge(list)
	view.ByIdentity = component.Sort{Href: site.Listing{Path: list.Path, Filter: list.Without("sort")}.At("sort", string(reports.ByIdentity))}
	if q.Order == reports.ByIdentity {
		view.ByIdentity.Now = "ascending"
	}
}

// walletSearch reads where a search for wallets goes on.
func walletSearch(req *site.Request, text string, p store.Page) reports.WalletSearch {
	return reports.WalletSearch{Text: text, After: req.Query("after"), Inside: !p.Before.IsZero(), Page: p}
}

// isListed reports whether a wallet that a search found is one of the filter's, too.
func isListed(w reports.WalletFound, q reports.WalletQuery) bool {
	switch s := w.Subscription; q.Filter {
	case reports.WalletsInDebt:
		return slices.ContainsFunc(w.Balances, func(b metering.Balance) bool { return b.Debt > 0 })
	case reports.WalletsOnHold:
		return s != nil && (s.Status == metering.StatusPastDue || s.Status == metering.StatusUnpaid)
	case reports.WalletsOfPlan:
		return s != nil && s.PlanID == q.PlanID
	default:
		return true
	}
}

// searchPages links to the next page of a search.
func searchPages(req *site.Request, list site.Listing, next *reports.WalletSearch) component.Pages {
	begun := req.Query("after") != "" || req.Query("before") != ""
	switch {
	case next == nil:
		return list.Pages("after", begun, "")
	case next.Inside:
		before := next.Before
		if before.IsZero() { // the page is full of wallets that begin with the text
			before = next.Start()
		}
		return list.Pages("before", begun, before.Format(ids.Wallet))
	default:
		return list.Pages("after", begun, next.After)
	}
}

// walletFilters reads the active filter and lists the available ones, by plan and by payment
// only for members who may read subscriptions.
func walletFilters(req *site.Request, q *reports.WalletQuery) ([]component.Option, error) {
	options := []component.Option{
		{Value: "", Text: "All wallets"},
		{Value: string(reports.WalletsInDebt), Text: "In debt"},
	}
	chosen := req.Query("show")
	if req.May(tenancy.SubscriptionsRead) {
		options = append(options, component.Option{Value: string(reports.WalletsOnHold), Text: "On payment hold"})
	}
	if chosen != "" && component.HasOption(options, chosen) {
		q.Filter = reports.WalletFilter(chosen)
	}
	if !req.May(tenancy.PlansRead) || !req.May(tenancy.SubscriptionsRead) {
		return options, nil
	}
	plans, _, err := req.Tenant().Plans(req.Context, store.Page{Limit: site.MaxOptions})
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
func (s *Pages) walletHead(req *site.Request, tab string) (supportpage.WalletHead, reports.WalletFound, error) {
	id, err := req.ID("id", ids.Wallet)
	if err != nil {
		return supportpage.WalletHead{}, reports.WalletFound{}, err
	}
	if err := req.Require(tenancy.WalletsRead); err != nil {
		return supportpage.WalletHead{}, reports.WalletFound{}, err
	}
	w, err := req.Reports().WalletByID(req.Context, id)
	if err != nil {
		return supportpage.WalletHead{}, w, err
	}
	head := supportpage.WalletHead{
		Frame: req.Frame(component.ShortIdentity(w.Identity), "wallets"), List: req.AppPath("wallets"), Path: req.WalletPath(id), Tab: tab, May: req.Member.Permissions(),
		ID: id.Format(ids.Wallet), Identity: w.Identity, CreatedAt: w.CreatedAt, Balances: w.Balances,
		BillingPeriod: w.BillingPeriod, Locked: w.BillingPeriodLocked(),
	}
	if w.BillingPeriod != nil {
		head.Current = w.BillingPeriod.Containing(req.Now())
	}
	if w.Subscription != nil {
		row := newSubscriptionRow(req, *w.Subscription, false)
		head.Subscription = &row
		if head.Plan, err = s.walletPlan(req, w.Identity); err != nil {
			return head, w, err
		}
	}
	if req.May(tenancy.JournalRead) {
		head.Check = req.Listing(req.AppPath("check")).At("identity", w.Identity)
	}
	if s.exportWallet != nil && req.May(tenancy.JournalRead) && req.May(tenancy.WalletsWrite) {
		head.Export = head.Path + "/export.json"
	}
	if !metering.IsTombstone(w.Identity) {
		head.Rename = req.LinkIfPermitted(tenancy.WalletsWrite, "wallets", head.ID, "rename")
		head.Erase = req.LinkIfPermitted(tenancy.WalletsErase, "wallets", head.ID, "erase")
	}
	head.Transfer = req.LinkIfPermitted(tenancy.WalletsTransfer, "wallets", head.ID, "transfer")
	head.Adjust = req.LinkIfPermitted(tenancy.BalancesAdjust, "wallets", head.ID, "adjust")
	head.Deposit = req.LinkIfPermitted(tenancy.DepositsWrite, "wallets", head.ID, "deposit")
	head.NewCredit = req.LinkIfPermitted(tenancy.CreditsWrite, "credits", "new")
	head.Actions = planActions(req, head)
	return head, w, nil
}

// walletPage is what a page of a wallet begins with.
type walletPage struct {
	reports.WalletFound
	head   supportpage.WalletHead
	before int64 // the number that a list ends before; zero for its first page
}

// wallet loads a tab of a wallet, or a page of none.
func (s *Pages) wallet(tab string) func(*site.Request) (walletPage, error) {
	return func(req *site.Request) (w walletPage, err error) {
		w.head, w.WalletFound, err = s.walletHead(req, tab)
		return w, err
	}
}

// walletList loads a tab that lists what has numbers.
func (s *Pages) walletList(tab string) func(*site.Request) (walletPage, error) {
	return func(req *site.Request) (walletPage, error) {
		before, err := req.BeforeSeq()
		if err != nil {
			return walletPage{}, err
		}
		w, err := s.wallet(tab)(req)
		w.before = before
		return w, err
	}
}

// walletJournal is the first page of a wallet. Members who may not read journals get its
// header alone.
func (s *Pages) walletJournal(req *site.Request, w walletPage) (site.Response, error) {
	if !req.May(tenancy.JournalRead) {
		return site.Show(supportpage.WalletBalancesPage(w.head)), nil
	}
	lines, proof, more, err := req.Reports().Journal(req.Context, reports.JournalPage{WalletID: w.ID, Before: w.before, Limit: site.PageSize})
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.WalletJournal{WalletHead: w.head, Export: w.head.Path + "/journal.csv", Months: statementMonths(req, w.CreatedAt)}
	credits := map[ids.ID]string{}
	for _, l := range lines {
		credits[l.CreditID] = l.CreditKey
		row := supportpage.JournalRow{
			Href: req.TransactionPath(l.ID), Seq: l.Seq, Kind: l.Kind, About: journalLabel(l), Deduplicated: l.Deduplicated,
			Delta: l.Delta, BalanceAfter: l.BalanceAfter, DebtAfter: l.DebtAfter, CreditKey: l.CreditKey, CreatedAt: l.CreatedAt,
		}
		if t := l.Transfer; t != nil {
			row.Other, row.OtherHref = t.Identity, req.WalletPath(t.WalletID)
		}
		view.Lines = append(view.Lines, row)
	}
	for _, r := range proof {
		proven := supportpage.JournalProof{BalanceProof: r, CreditKey: credits[r.CreditID]}
		if w.before == 0 && isSameVersion(w.Wallet, lines) {
			stored := w.Balance(r.CreditID)
			proven.Stored = &stored
		}
		view.Proofs = append(view.Proofs, proven)
	}
	older := int64(0)
	if more {
		older = lines[len(lines)-1].Seq
	}
	view.Pages = site.Listing{Path: w.head.Path}.Pages("before", w.before != 0, site.OlderSeq(older))
	return site.Show(supportpage.WalletJournalPage(view)), nil
}

// journalLabel is the label of an entry as people read it.
func journalLabel(l reports.JournalLine) string {
	if l.Kind == metering.EntryCharge {
		return l.FeatureKey + " × " + component.WholeNumber(l.Quantity)
	}
	return entryLabel(l)
}

// entryLabel is a short label for an entry, as in files.
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

func (s *Pages) walletUsage(req *site.Request, w walletPage) (site.Response, error) {
	events, next, err := req.Reports().Events(req.Context, reports.EventQuery{WalletID: w.ID, BeforeSeq: w.before, Page: store.Page{Limit: site.PageSize}})
	if err != nil {
		return site.Response{}, err
	}
	chart, err := walletUsageChart(req, w.Identity)
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.WalletUsage{WalletHead: w.head, Chart: chart}
	for _, e := range events {
		view.Events = append(view.Events, newEventRow(req, e, false))
	}
	older := int64(0)
	if next != nil {
		older = events[len(events)-1].Seq
	}
	view.Pages = site.Listing{Path: w.head.Path + "/usage"}.Pages("before", w.before != 0, site.OlderSeq(older))
	return site.Show(supportpage.WalletUsagePage(view)), nil
}

func (s *Pages) walletDeposits(req *site.Request, w walletPage) (site.Response, error) {
	list, more, err := req.Reports().DepositsOf(req.Context, reports.JournalPage{WalletID: w.ID, Before: w.before, Limit: site.PageSize})
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.WalletDeposits{WalletHead: w.head}
	for _, d := range list {
		view.Deposits = append(view.Deposits, newDepositRow(req, d, false))
	}
	older := int64(0)
	if more {
		older = list[len(list)-1].Seq
	}
	view.Pages = site.Listing{Path: w.head.Path + "/deposits"}.Pages("before", w.before != 0, site.OlderSeq(older))
	return site.Show(supportpage.WalletDepositsPage(view)), nil
}

func (s *Pages) walletSubscriptions(req *site.Request, w walletPage) (site.Response, error) {
	list, err := req.Reports().SubscriptionsOf(req.Context, w.ID)
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.WalletSubscriptions{WalletHead: w.head, Test: !req.App.Live}
	if view.Test && req.May(tenancy.SubscriptionsWrite) {
		view.Portal = w.head.Path + "/portal"
	}
	for _, subscription := range list {
		view.Subscriptions = append(view.Subscriptions, newSubscriptionRow(req, subscription, false))
	}
	return site.Show(supportpage.WalletSubscriptionsPage(view)), nil
}

// openPortal redirects to the billing portal of a wallet's identity, in test mode only.
// In live mode the portal belongs to the customer.
func (s *Pages) openPortal(req *site.Request, id ids.ID) (site.Response, error) {
	if req.App.Live {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	w, err := req.Reports().WalletByID(req.Context, id)
	if err != nil {
		return site.Response{}, err
	}
	address, err := s.Cashier.Portal(req.Context, req.Scope(), w.Identity, s.Server.Address+req.WalletPath(id)+"/subscription")
	if err != nil {
		return site.Response{}, err
	}
	return site.Redirect(address), nil
}

func (s *Pages) walletNotifications(req *site.Request, w walletPage) (site.Response, error) {
	found, next, err := req.Notifications().Newest(req.Context, notifications.Backwards{Before: w.before, WalletID: w.ID, Limit: site.PageSize})
	if err != nil {
		return site.Response{}, err
	}
	view := supportpage.WalletNotifications{WalletHead: w.head, Webhooks: req.AppPath("webhooks")}
	for _, n := range found {
		view.Rows = append(view.Rows, notifypage.NotificationRow{Notification: n, Href: req.NotificationPath(n.ID)})
	}
	view.Pages = site.Listing{Path: w.head.Path + "/notifications"}.Pages("before", w.before != 0, site.OlderSeq(next))
	return site.Show(supportpage.WalletNotificationsPage(view)), nil
}
