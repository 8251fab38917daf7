package support

import (
	"purser/billing"
	"purser/ids"
	"purser/store"
	"purser/store/payments"
	"purser/tenancy"
	supportpage "purser/views/page/support"
	"purser/web/site"
)

// alertWords describe an alert: what happened, what Purser did and what is left to do.
var alertWords = map[billing.AlertKind]struct{ title, advice string }{
	billing.UnknownPrice: {
		"Unknown price on a subscription",
		"This subscription, or the one that this invoice is for, was moved to a price that Purser didn't create. Its previous terms still apply, and payments at that price grant no credits. Move it back to a plan's price at the payment provider.",
	},
	billing.UnrequestedUpdate: {
		"Plan changed outside Purser",
		"This invoice was paid for a change made directly at the payment provider. No credits were granted. Refund it there, or adjust the wallet's balance.",
	},
	billing.DuplicateSubscription: {
		"Duplicate subscription",
		"The customer already had a subscription, so this one was canceled and refunded. Check why they were asked to subscribe twice.",
	},
	billing.AmountMismatch: {
		"Payment doesn't match the checkout",
		"The amount or currency differs from the checkout, or the checkout was paid twice. No credits were added. Compare both at the payment provider, then refund the payment or adjust the wallet's balance.",
	},
	billing.BalanceFull: {
		"Balance limit reached; credits not added",
		"This payment was collected, or its refund failed, but the wallet can't hold the credits: it has 100 balances, or the balance would exceed 19 digits. Refund the payment at the payment provider, or adjust the balance once there is room.",
	},
	billing.DebtFull: {
		"Debt limit reached",
		"This payment was refunded or disputed after its credits were spent. The debt would exceed 19 digits, so only part of it was recorded. Settle the rest with the customer.",
	},
	billing.BalanceSpent: {
		"Customer balance not credited back",
		"The customer's balance at the payment provider paid for this invoice, which granted no credits: an upgrade replaced the renewal, or the subscription was bought twice. Purser tried to credit the amount back and was rejected. Credit it to the customer's balance there.",
	},
	billing.PaidLate: {
		"Renewal paid after the subscription ended",
		"The customer paid this renewal after their subscription had ended, so no credits were granted. The charge is refunded, and the part paid from their balance at the payment provider is credited back. To get the plan back, the customer can subscribe again.",
	},
	billing.KeyRefused: {
		"Stripe rejected the API key",
		"Stripe rejected the stored key for this account (last characters shown). Refunds and other changes there are not being applied. Purser retries every few hours. Reconnect the account with a valid key, and Purser catches up.",
	},
	billing.SaleMissing: {
		"Paid, but missing in the database",
		"This checkout or subscription was sold here, but the database doesn't have it: it was restored to an earlier moment. No credits were granted. Find the customer at the payment provider. Refund a single payment there, or deposit its credits. Cancel and refund a subscription; then the customer can subscribe again.",
	},
	billing.ActionRefused: {
		"Cancellation or refund failed",
		"The payment provider permanently rejected canceling this subscription or refunding this payment, the refund failed later at the customer's bank, or the account was replaced long ago. The customer is paying for something they don't have: cancel or refund it at the payment provider, or return the money another way.",
	},
}

func (s *Pages) alerts(req *site.Request, p store.Page) (site.Response, error) {
	all := req.Query("show") == "all"
	found, more, err := req.Payments().Alerts(req.Context, p, all)
	if err != nil {
		return site.Response{}, err
	}
	list := req.Listing(req.AppPath("alerts"), "show")
	view := supportpage.AlertList{Frame: req.Frame("Payment issues", "alerts"), Path: list.Path, All: all}
	for _, a := range found {
		view.Alerts = append(view.Alerts, newAlertRow(req, a))
	}
	view.Pages = list.Pages("before", !p.Before.IsZero(), site.LastID(found, more, ids.Alert, func(a payments.Alert) ids.ID { return a.ID }))
	return site.Show(supportpage.Alerts(view)), nil
}

func newAlertRow(req *site.Request, a payments.Alert) supportpage.AlertRow {
	words := alertWords[a.Kind]
	row := supportpage.AlertRow{
		Title: words.title, Advice: words.advice, ObjectID: a.ObjectID, Identity: a.Identity, CreatedAt: a.CreatedAt, ResolvedAt: a.ResolvedAt,
	}
	if a.Identity != "" {
		row.WalletHref = req.CustomerLink(a.Identity)
	}
	if a.ResolvedAt == 0 && req.May(tenancy.SubscriptionsWrite) {
		row.Resolve = req.AppPath("alerts", a.ID.Format(ids.Alert), "resolve")
	}
	return row
}

func (s *Pages) resolveAlert(req *site.Request, id ids.ID) (site.Response, error) {
	if err := req.Payments().ResolveAlert(req.Context, id, req.Now()); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.AppPath("alerts"), "Resolved.")
}
