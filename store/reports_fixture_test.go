package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/store/reports"
)

// What the fixture has in the tables that people look at.

const debtor = "debtor@example.com"

// adjustment is the fixture's, by an id that is its deposit's turned round.
func (h fixture) adjustment() store.Adjustment {
	return store.Adjustment{
		ID: mirrored(h.deposit.ID), WalletID: h.walletID, CreditKey: h.credit.Key, Delta: metering.Delta{Amount: 1},
		Reason: "goodwill", By: h.owner.UserID, Now: moment,
	}
}

func mirrored(id ids.ID) ids.ID {
	id[15] ^= 0xff
	return id
}

// reportRows inserts a row into each table of reports, beside the wallet that the other
// tests count by. It returns the id of a denial.
func (h fixture) reportRows(tb testing.TB, usage *store.Engine) ids.ID {
	tb.Helper()
	w, _, err := h.CreateWallet(tb.Context(), ids.New(), debtor, moment)
	noError(tb, err)
	adjustment := h.adjustment()
	adjustment.WalletID = w.ID
	noError(tb, h.Adjust(tb.Context(), adjustment))
	noError(tb, store.TakeBack(tb.Context(), h.App, debtor, h.credit.Key, 6, moment))
	denied := h.useOf("messages", "too expensive")
	denied.Identity, denied.RequestID = debtor, h.use.TransactionID
	decision, err := usage.Check(denied)
	noError(tb, err)
	wantFault(tb, decision.Err(), fault.InsufficientBalance)
	h.reversed(tb, usage)
	h.transferred(tb)
	h.renamed(tb)
	h.db.Stats().RecordRequest(h.application.Scope(), reports.Request{
		ID: ids.New(), At: moment, Method: "POST", Route: "/v1/check", Status: 200, TookMicros: 900, KeyID: h.key.ID,
	})
	h.db.Stats().RecordRequest(h.application.Scope(), reports.Request{
		ID: mirrored(h.use.TransactionID), At: moment, Method: "POST", Route: "/v1/check", Status: 409, Code: fault.InsufficientBalance, KeyID: h.key.ID,
		Identity: debtor, Feature: "messages", Authenticated: true,
	})
	_, _, err = h.Reports().Requests(tb.Context(), reports.RequestQuery{Page: store.Page{Limit: 1}}) // writes the figures down
	noError(tb, err)
	denials, _, err := h.Reports().Denials(tb.Context(), reports.DenialQuery{Identity: debtor, Page: store.Page{Limit: 1}})
	noError(tb, err)
	return denials[0].ID
}

var reportCalls = []call[reports.App]{
	{"Progress", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return a.Progress(ctx, moment)
	}},
	{"SearchWallets", "its identity", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.SearchWallets(ctx, reports.WalletSearch{Text: h.deposit.Identity, Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"SearchWallets", "a part of its identity", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.SearchWallets(ctx, reports.WalletSearch{Text: h.deposit.Identity[1:], Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"SubscriptionWallet", "", fault.SubscriptionNotFound, fault.SubscriptionNotFound, "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.SubscriptionWallet(ctx, h.subscription.ID)
	}},
	{"FindWallets", "its debts", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return page(a.FindWallets(ctx, reports.WalletQuery{Filter: reports.WalletsInDebt, Page: store.Page{Limit: 100}}))
	}},
	{"FindWallets", "its plan", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return page(a.FindWallets(ctx, reports.WalletQuery{Filter: reports.WalletsOfPlan, PlanID: h.plan.ID, Page: store.Page{Limit: 100}}))
	}},
	{"FindWallets", "its holds", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return page(a.FindWallets(ctx, reports.WalletQuery{Filter: reports.WalletsOnHold, Page: store.Page{Limit: 100}}))
	}},
	{"WalletByID", "", fault.WalletNotFound, fault.WalletNotFound, "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.WalletByID(ctx, h.walletID)
	}},
	{"Journal", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, proof, _, err := a.Journal(ctx, reports.JournalPage{WalletID: h.walletID, Limit: 100})
		return []any{list, proof}, err
	}},
	{"History", "", fault.WalletNotFound, "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.History(ctx, reports.HistoryQuery{Identity: h.deposit.Identity, Limit: 100})
		return list, err
	}},
	{"EventsOfWallet", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.EventsOfWallet(ctx, reports.HistoryQuery{Identity: h.deposit.Identity, Limit: 100}, "")
		return list, err
	}},
	{"PackedUntil", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) { return a.PackedUntil(ctx) }},
	{"BalancesAt", "", fault.WalletNotFound, "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.BalancesAt(ctx, h.deposit.Identity, time.Now().Add(time.Hour).UnixMilli())
	}},
	{"Events", "its wallet", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.Events(ctx, reports.EventQuery{WalletID: h.walletID, Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"Events", "its event id", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.Events(ctx, reports.EventQuery{EventID: h.use.EventID})
		return list, err
	}},
	{"Events", "all of them", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		list, _, err := a.Events(ctx, reports.EventQuery{Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"Transaction", "its event", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.Transaction(ctx, h.use.TransactionID)
	}},
	{"Transaction", "its deposit", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.Transaction(ctx, h.deposit.ID)
	}},
	{"FindDeposits", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return page(a.FindDeposits(ctx, reports.DepositQuery{Page: store.Page{Limit: 100}}))
	}},
	{"DepositsOf", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return page(a.DepositsOf(ctx, reports.JournalPage{WalletID: h.walletID, Limit: 100}))
	}},
	{"FindSubscriptions", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return page(a.FindSubscriptions(ctx, reports.SubscriptionQuery{Page: store.Page{Limit: 100}}))
	}},
	{"FindDeposits", "its customer", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return page(a.FindDeposits(ctx, reports.DepositQuery{Identity: h.deposit.Identity, Page: store.Page{Limit: 100}}))
	}},
	{"FindSubscriptions", "its plan", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return page(a.FindSubscriptions(ctx, reports.SubscriptionQuery{PlanID: h.plan.ID, Page: store.Page{Limit: 100}}))
	}},
	{"SubscribersOf", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.SubscribersOf(ctx, []ids.ID{h.plan.ID})
	}},
	{"FindSubscriptions", "its customer", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return page(a.FindSubscriptions(ctx, reports.SubscriptionQuery{Identity: h.deposit.Identity, Page: store.Page{Limit: 100}}))
	}},
	{"EventsOfCustomer", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.EventsOfCustomer(ctx, reports.EventQuery{Identity: h.deposit.Identity, Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"ExportHead", "", fault.WalletNotFound, "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.ExportHead(ctx, h.deposit.Identity)
	}},
	{"ExportEntries", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		lines, events, err := a.ExportEntries(ctx, h.walletID, 0)
		return []any{lines, events}, err
	}},
	{"ExportPayments", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.ExportPayments(ctx, h.walletID, reports.PaymentFound{})
	}},
	{"FirstWallet", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		_, err := a.FirstWallet(ctx)
		return nil, err
	}},
	{"MonthlyWallets", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return a.MonthlyWallets(ctx, ids.ID{})
	}},
	{"MonthlyEntries", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.MonthlyEntries(ctx, []reports.MonthlyPosition{{WalletID: h.walletID}})
	}},
	{"SubscriptionsOf", "", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.SubscriptionsOf(ctx, h.walletID)
	}},
	{"Overview", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return a.Overview(ctx, moment, 30)
	}},
	{"Attention", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return a.Attention(ctx, moment)
	}},
	{"DayStats", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		return a.DayStats(ctx, moment)
	}},
	{"Denials", "its identity", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		list, _, err := a.Denials(ctx, reports.DenialQuery{Identity: debtor, Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"Denials", "its request", "", "", "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		list, _, err := a.Denials(ctx, reports.DenialQuery{RequestID: h.use.TransactionID, Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"Denials", "all of them", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		list, _, err := a.Denials(ctx, reports.DenialQuery{Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"Denial", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.Denial(ctx, h.denied)
	}},
	{"Requests", "", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		list, _, err := a.Requests(ctx, reports.RequestQuery{Page: store.Page{Limit: 100}})
		return list, err
	}},
	{"Requests", "of its identity", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		recent, _, err := a.Requests(ctx, reports.RequestQuery{Identity: debtor, Page: store.Page{Limit: 100}})
		failed, _, failure := a.Requests(ctx, reports.RequestQuery{Failed: true, Identity: debtor, Page: store.Page{Limit: 100}})
		return append(recent, failed...), errors.Join(err, failure)
	}},
	{"Request", "", fault.PathNotFound, fault.PathNotFound, "", func(ctx context.Context, a reports.App, h fixture) (any, error) {
		return a.Request(ctx, mirrored(h.use.TransactionID))
	}},
	{"Requests", "that failed", "", "", "", func(ctx context.Context, a reports.App, _ fixture) (any, error) {
		list, _, err := a.Requests(ctx, reports.RequestQuery{Failed: true, Page: store.Page{Limit: 100}})
		return list, err
	}},
}
