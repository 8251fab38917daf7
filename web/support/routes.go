package support

import (
	"purser/ids"
	"purser/tenancy"
	"purser/web/site"
)

// Routes are the support pages of an application.
func (s *Pages) Routes() []site.Route {
	const app = site.AppPrefix
	return []site.Route{
		site.Get(app, site.AnyMember, s.overview),
		site.Get(app+"/search", tenancy.WalletsRead, s.search),

		site.Get(app+"/wallets", tenancy.WalletsRead, site.With(site.Before(ids.Wallet), s.wallets)),
		site.Get(app+"/wallets/new", tenancy.WalletsWrite, s.newWallet),
		site.Post(app+"/wallets/new", tenancy.WalletsWrite, s.createWallet),
		site.Get(app+"/wallets/{id}", tenancy.WalletsRead, site.With(s.walletList("journal"), s.walletJournal)),
		site.Get(app+"/wallets/{id}/journal.csv", tenancy.JournalRead, s.Export(s.journalExport)),
		site.Get(app+"/wallets/{id}/export.json", tenancy.JournalRead, site.With(site.ID("id", ids.Wallet), s.downloadWallet)),
		site.Get(app+"/wallets/{id}/usage", tenancy.JournalRead, site.With(s.walletList("usage"), s.walletUsage)),
		site.Get(app+"/wallets/{id}/denials", tenancy.JournalRead, site.With(site.Before(ids.Denial), s.walletDenials)),
		site.Get(app+"/wallets/{id}/notifications", tenancy.NotificationsRead, site.With(s.walletList("notifications"), s.walletNotifications)),
		site.Get(app+"/wallets/{id}/deposits", tenancy.DepositsRead, site.With(s.walletList("deposits"), s.walletDeposits)),
		site.Get(app+"/wallets/{id}/subscription", tenancy.SubscriptionsRead, site.With(s.wallet("subscription"), s.walletSubscriptions)),
		site.Get(app+"/wallets/{id}/deposit", tenancy.DepositsWrite, site.With(s.wallet(""), s.addCreditsForm)),
		site.Post(app+"/wallets/{id}/deposit", tenancy.DepositsWrite, site.With(s.wallet(""), s.addCredits)),
		site.Get(app+"/wallets/{id}/checkout", tenancy.SubscriptionsWrite, site.With(s.wallet(""), s.checkoutLinkForm)),
		site.Post(app+"/wallets/{id}/checkout", tenancy.SubscriptionsWrite, site.With(s.wallet(""), s.createCheckoutLink)),
		site.Get(app+"/wallets/{id}/topup", tenancy.SubscriptionsWrite, site.With(s.wallet(""), s.topUpLinkForm)),
		site.Post(app+"/wallets/{id}/topup", tenancy.SubscriptionsWrite, site.With(s.wallet(""), s.createTopUpLink)),
		site.Get(app+"/wallets/{id}/change", tenancy.SubscriptionsWrite, site.With(s.wallet(""), s.changePlanForm)),
		site.Post(app+"/wallets/{id}/change", tenancy.SubscriptionsWrite, site.With(s.wallet(""), s.changePlan)),
		site.Post(app+"/wallets/{id}/cancel", tenancy.SubscriptionsWrite, site.With(site.ID("id", ids.Wallet), s.cancelPlan)),
		site.Post(app+"/wallets/{id}/portal", tenancy.SubscriptionsWrite, site.With(site.ID("id", ids.Wallet), s.openPortal)),
		site.Get(app+"/wallets/{id}/adjust", tenancy.BalancesAdjust, s.adjustForm),
		site.Post(app+"/wallets/{id}/adjust", tenancy.BalancesAdjust, site.With(site.ID("id", ids.Wallet), s.adjust)),
		site.Get(app+"/wallets/{id}/rename", tenancy.WalletsWrite, site.With(s.wallet(""), s.renameForm)),
		site.Post(app+"/wallets/{id}/rename", tenancy.WalletsWrite, site.With(s.wallet(""), s.rename)),
		site.Get(app+"/wallets/{id}/erase", tenancy.WalletsErase, site.With(s.wallet(""), s.eraseForm)),
		site.Post(app+"/wallets/{id}/erase", tenancy.WalletsErase, site.With(s.wallet(""), s.erase)),
		site.Get(app+"/wallets/{id}/transfer", tenancy.WalletsTransfer, site.With(s.wallet(""), s.transferForm)),
		site.Post(app+"/wallets/{id}/transfer", tenancy.WalletsTransfer, site.With(s.wallet(""), s.transfer)),

		site.Get(app+"/transactions/{id}", tenancy.JournalRead, site.With(site.ID("id", ids.Transaction), s.transaction)),
		site.Get(app+"/transactions/{id}/reverse", tenancy.BalancesAdjust, s.reverseForm),
		site.Post(app+"/transactions/{id}/reverse", tenancy.BalancesAdjust, s.reverse),
		site.Get(app+"/transactions/{id}/refund", tenancy.BalancesAdjust, s.refundForm),
		site.Post(app+"/transactions/{id}/refund", tenancy.BalancesAdjust, s.refund),
		site.Get(app+"/check", tenancy.JournalRead, s.check),
		site.Get(app+"/denials", tenancy.JournalRead, site.With(site.Before(ids.Denial), s.denials)),
		site.Get(app+"/denials/{id}", tenancy.JournalRead, site.With(site.ID("id", ids.Denial), s.denial)),
		site.Get(app+"/usage", tenancy.JournalRead, s.Report(site.With(groupings, s.usageReport))),
		site.Get(app+"/usage.csv", tenancy.JournalRead, s.Export(site.With(groupings, s.usageExport))),
		site.Get(app+"/events", tenancy.JournalRead, site.With(site.Before(ids.Transaction), s.events)),
		site.Get(app+"/events.csv", tenancy.JournalRead, s.Export(s.eventsExport)),
		site.Get(app+"/deposits", tenancy.DepositsRead, site.With(site.Before(ids.Deposit), s.deposits)),
		site.Get(app+"/deposits.csv", tenancy.DepositsRead, s.Export(s.depositsExport)),
		site.Get(app+"/subscriptions", tenancy.SubscriptionsRead, site.With(site.Before(ids.Subscription), s.subscriptions)),
		site.Get(app+"/subscriptions.csv", tenancy.SubscriptionsRead, s.Export(s.subscriptionsExport)),
		site.Get(app+"/checkouts", tenancy.SubscriptionsRead, site.With(site.Before(ids.Checkout), s.checkouts)),
		site.Get(app+"/checkouts.csv", tenancy.SubscriptionsRead, s.Export(s.checkoutsExport)),
		site.Get(app+"/alerts", tenancy.SubscriptionsRead, site.With(site.Before(ids.Alert), s.alerts)),
		site.Post(app+"/alerts/{id}/resolve", tenancy.SubscriptionsWrite, site.With(site.ID("id", ids.Alert), s.resolveAlert)),
		site.Get(app+"/jobs", tenancy.SubscriptionsRead, s.jobs),
		site.Post(app+"/jobs/retry", tenancy.SubscriptionsWrite, s.retryJob),
		site.Get(app+"/requests", tenancy.RequestsRead, site.With(site.Before(ids.Request), s.requests)),
		site.Get(app+"/requests/{id}", tenancy.RequestsRead, site.With(site.ID("id", ids.Request), s.request)),
	}
}
