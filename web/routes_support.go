package web

import "purser/tenancy"

// supportRoutes are the support pages of an application.
func (s *Site) supportRoutes() []route {
	return []route{
		get("/o/{org}/a/{app}", tenancy.WalletsRead, s.overview),
		get("/o/{org}/a/{app}/search", tenancy.WalletsRead, s.search),

		get("/o/{org}/a/{app}/wallets", tenancy.WalletsRead, s.wallets),
		get("/o/{org}/a/{app}/wallets/new", tenancy.WalletsWrite, s.newWallet),
		post("/o/{org}/a/{app}/wallets/new", tenancy.WalletsWrite, s.createWallet),
		get("/o/{org}/a/{app}/wallets/{id}", tenancy.JournalRead, s.walletJournal),
		get("/o/{org}/a/{app}/wallets/{id}/journal.csv", tenancy.JournalRead, s.export(s.journalExport)),
		get("/o/{org}/a/{app}/wallets/{id}/export.json", tenancy.JournalRead, s.downloadWallet),
		get("/o/{org}/a/{app}/wallets/{id}/usage", tenancy.JournalRead, s.walletUsage),
		get("/o/{org}/a/{app}/wallets/{id}/denials", tenancy.JournalRead, s.walletDenials),
		get("/o/{org}/a/{app}/wallets/{id}/deposits", tenancy.DepositsRead, s.walletDeposits),
		get("/o/{org}/a/{app}/wallets/{id}/subscription", tenancy.SubscriptionsRead, s.walletSubscriptions),
		get("/o/{org}/a/{app}/wallets/{id}/deposit", tenancy.DepositsWrite, s.addCreditsForm),
		post("/o/{org}/a/{app}/wallets/{id}/deposit", tenancy.DepositsWrite, s.addCredits),
		get("/o/{org}/a/{app}/wallets/{id}/checkout", tenancy.SubscriptionsWrite, s.checkoutLinkForm),
		post("/o/{org}/a/{app}/wallets/{id}/checkout", tenancy.SubscriptionsWrite, s.createCheckoutLink),
		get("/o/{org}/a/{app}/wallets/{id}/change", tenancy.SubscriptionsWrite, s.changePlanForm),
		post("/o/{org}/a/{app}/wallets/{id}/change", tenancy.SubscriptionsWrite, s.changePlan),
		post("/o/{org}/a/{app}/wallets/{id}/cancel", tenancy.SubscriptionsWrite, s.cancelPlan),
		post("/o/{org}/a/{app}/wallets/{id}/portal", tenancy.SubscriptionsWrite, s.openPortal),
		get("/o/{org}/a/{app}/wallets/{id}/adjust", tenancy.BalancesAdjust, s.adjustForm),
		post("/o/{org}/a/{app}/wallets/{id}/adjust", tenancy.BalancesAdjust, s.adjust),
		get("/o/{org}/a/{app}/wallets/{id}/rename", tenancy.WalletsWrite, s.renameForm),
		post("/o/{org}/a/{app}/wallets/{id}/rename", tenancy.WalletsWrite, s.rename),
		get("/o/{org}/a/{app}/wallets/{id}/transfer", tenancy.BalancesAdjust, s.transferForm),
		post("/o/{org}/a/{app}/wallets/{id}/transfer", tenancy.BalancesAdjust, s.transfer),

		get("/o/{org}/a/{app}/transactions/{id}", tenancy.JournalRead, s.transaction),
		get("/o/{org}/a/{app}/transactions/{id}/reverse", tenancy.BalancesAdjust, s.reverseForm),
		post("/o/{org}/a/{app}/transactions/{id}/reverse", tenancy.BalancesAdjust, s.reverse),
		get("/o/{org}/a/{app}/transactions/{id}/refund", tenancy.BalancesAdjust, s.refundForm),
		post("/o/{org}/a/{app}/transactions/{id}/refund", tenancy.BalancesAdjust, s.refund),
		get("/o/{org}/a/{app}/check", tenancy.JournalRead, s.check),
		get("/o/{org}/a/{app}/denials", tenancy.JournalRead, s.denials),
		get("/o/{org}/a/{app}/denials/{id}", tenancy.JournalRead, s.denial),
		get("/o/{org}/a/{app}/events", tenancy.JournalRead, s.events),
		get("/o/{org}/a/{app}/events.csv", tenancy.JournalRead, s.export(s.eventsExport)),
		get("/o/{org}/a/{app}/deposits", tenancy.DepositsRead, s.deposits),
		get("/o/{org}/a/{app}/deposits.csv", tenancy.DepositsRead, s.export(s.depositsExport)),
		get("/o/{org}/a/{app}/subscriptions", tenancy.SubscriptionsRead, s.subscriptions),
		get("/o/{org}/a/{app}/subscriptions.csv", tenancy.SubscriptionsRead, s.export(s.subscriptionsExport)),
		get("/o/{org}/a/{app}/checkouts", tenancy.SubscriptionsRead, s.checkouts),
		get("/o/{org}/a/{app}/checkouts.csv", tenancy.SubscriptionsRead, s.export(s.checkoutsExport)),
		get("/o/{org}/a/{app}/alerts", tenancy.SubscriptionsRead, s.alerts),
		post("/o/{org}/a/{app}/alerts/{id}/resolve", tenancy.SubscriptionsWrite, s.resolveAlert),
		get("/o/{org}/a/{app}/jobs", tenancy.SubscriptionsRead, s.jobs),
		post("/o/{org}/a/{app}/jobs/retry", tenancy.SubscriptionsWrite, s.retryJob),
		get("/o/{org}/a/{app}/requests", tenancy.RequestsRead, s.requests),
		get("/o/{org}/a/{app}/requests/{id}", tenancy.RequestsRead, s.request),
	}
}
