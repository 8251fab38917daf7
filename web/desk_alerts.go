package web

import (
	"purser/billing"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/views/page"
)

// alertWords say what an alert is, what has been done already and what is left to do.
var alertWords = map[billing.AlertKind]struct{ title, advice string }{
	billing.UnknownPrice: {
		"A price that no plan has",
		"At the provider a subscription has this price, which Purser did not make. Its terms of before stay, and nothing was granted. Put the subscription back on a plan's price there.",
	},
	billing.UnaskedUpdate: {
		"A change that nobody asked Purser for",
		"This invoice was paid for a change made at the provider. Nothing was granted for it. Refund it there, or adjust the wallet's balance by hand.",
	},
	billing.ExtraSubscription: {
		"A second subscription of one identity",
		"It was cancelled and refunded at once; the first goes on. Look at why the customer was asked to subscribe twice.",
	},
	billing.AmountMismatch: {
		"A payment that is not what was asked for",
		"Its amount or currency differs from the checkout's, or the checkout was paid twice, so no credits came in. Compare both at the provider; then refund the payment, or adjust the wallet's balance by hand.",
	},
	billing.BalanceFull: {
		"Credits that found no room",
		"This payment was collected, or a refund of it failed, but the wallet has no room for its credits: it holds 100 balances, or the balance would pass 19 digits. They were left out. Refund the payment at the provider, or adjust the balance by hand once there is room.",
	},
	billing.DebtFull: {
		"A debt that cannot grow further",
		"Money of this payment went back, and the credits that it had bought are spent. The debt would pass 19 digits, so it was booked up to that limit and the rest was left out. Settle the rest with the customer.",
	},
	billing.BalanceSpent: {
		"A balance that could not be credited back",
		"The customer's balance at the provider paid for this invoice, which granted nothing: an upgrade had replaced the renewal, or the subscription was bought twice. Purser tried to credit the amount back and was refused. Credit it to the customer's balance there.",
	},
	billing.PaidLate: {
		"A renewal paid after the subscription ended",
		"The customer paid this renewal after their subscription had ended, so it granted nothing. The charge is refunded, and what the customer's balance at the provider paid of it is credited back. If the customer wants the plan again, ask them to subscribe again.",
	},
	billing.KeyRefused: {
		"An account does not take its key",
		"The provider refuses the key, whose last characters are shown, that is stored for this account. What happens there, such as refunds, is not heard of; Purser tries again every few hours. Connect the account with a key that works: everything is then made up for.",
	},
	billing.ActionRefused: {
		"The provider refused to cancel or to refund",
		"Purser asked the provider to end this subscription, or to refund this invoice, and was refused for good. Do it there by hand: the customer pays for something that they do not have.",
	},
}

func (s *Site) alerts(v *visit) (answer, error) {
	p, err := v.before(ids.Alert)
	if err != nil {
		return answer{}, err
	}
	all := v.query("show") == "all"
	found, more, err := v.tenant().Alerts(v.context, p, all)
	if err != nil {
		return answer{}, err
	}
	list := v.listing(v.appPath("alerts"), "show")
	view := page.AlertList{Frame: v.frame("Payments to look at", "overview"), Path: list.path, All: all}
	for _, a := range found {
		view.Alerts = append(view.Alerts, v.alertRow(a))
	}
	view.Pages = list.pages("before", !p.Before.IsZero(), lastID(found, more, ids.Alert, func(a store.Alert) ids.ID { return a.ID }))
	return show(page.Alerts(view)), nil
}

func (v *visit) alertRow(a store.Alert) page.AlertRow {
	words := alertWords[a.Kind]
	row := page.AlertRow{
		Title: words.title, Advice: words.advice, ObjectID: a.ObjectID, Identity: a.Identity, CreatedAt: a.CreatedAt, ResolvedAt: a.ResolvedAt,
	}
	if a.Identity != "" {
		row.WalletHref = v.listing(v.appPath("wallets")).at("q", a.Identity)
	}
	if a.ResolvedAt == 0 && v.may(tenancy.SubscriptionsWrite) {
		row.Resolve = v.appPath("alerts", a.ID.Format(ids.Alert), "resolve")
	}
	return row
}

func (s *Site) resolveAlert(v *visit) (answer, error) {
	id, err := v.id("id", ids.Alert)
	if err != nil {
		return answer{}, err
	}
	if err := v.tenant().ResolveAlert(v.context, id, v.now()); err != nil {
		return answer{}, err
	}
	return v.done(v.appPath("alerts"), "Noted. It stays in the list of all.")
}
