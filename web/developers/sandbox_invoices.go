package developers

import (
	"slices"

	"purser/metering"
	"purser/store"
	"purser/store/reports"
	"purser/views/component"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

// SandboxInvoice is an open invoice in the sandbox.
type SandboxInvoice struct {
	ID           string
	Subscription string // at the provider
	AmountCents  int64
	Currency     string
	URL          string // of its hosted page
}

// sandboxSubscriptions are the latest paid subscriptions and those with a failed payment,
// each with its open invoice.
func (s *Pages) sandboxSubscriptions(req *site.Request) (rows []settingspage.SandboxSubscription, err error) {
	page := store.Page{Limit: sandboxPayments}
	found, _, err := req.Reports().FindSubscriptions(req.Context, reports.SubscriptionQuery{OnHold: true, Page: page})
	if err != nil {
		return nil, err
	}
	latest, _, err := req.Reports().FindSubscriptions(req.Context, reports.SubscriptionQuery{Page: page})
	if err != nil {
		return nil, err
	}
	var providerIDs []string
	for _, sub := range append(found, latest...) {
		if sub.ProviderID == "" || sub.EndedAt != 0 || slices.Contains(providerIDs, sub.ProviderID) {
			continue
		}
		providerIDs = append(providerIDs, sub.ProviderID)
		rows = append(rows, settingspage.SandboxSubscription{
			ID: sub.ProviderID, Identity: sub.Identity, WalletHref: req.WalletLink(sub.WalletID), Plan: sub.PlanName, State: subscriptionBadge(sub),
		})
	}
	if len(rows) == 0 {
		return nil, nil
	}
	open, err := s.Controls.OpenInvoices(req.Context, req.App.ID, providerIDs)
	for _, i := range open {
		row := &rows[slices.Index(providerIDs, i.Subscription)]
		row.Invoice, row.Due, row.URL = i.ID, component.Sum{AmountCents: i.AmountCents, Currency: i.Currency}, i.URL
	}
	return rows, err
}

// payInSandbox pays an open invoice, or has its payment declined.
func (s *Pages) payInSandbox(req *site.Request) (site.Response, error) {
	return s.sandboxAction(req, func(f *site.Form) string {
		reason, err := s.Controls.PayInvoice(req.Context, req.App.ID, f.Text("invoice"), f.Text("do") == "pay")
		f.Check("", err)
		if reason == "" {
			return "Invoice paid."
		}
		return "The payment failed: " + reason + " The invoice stays open."
	})
}

// failInSandbox makes later renewals of a subscription fail.
func (s *Pages) failInSandbox(req *site.Request) (site.Response, error) {
	return s.sandboxAction(req, func(f *site.Form) string {
		f.Check("", s.Controls.FailRenewals(req.Context, req.App.ID, f.Text("subscription")))
		return "The next renewal will fail. Advance the clock past it."
	})
}

// subscriptionBadge is the state of a paid subscription in a word.
func subscriptionBadge(s reports.SubscriptionFound) component.Badge {
	switch {
	case s.Status == metering.StatusPastDue || s.Status == metering.StatusUnpaid:
		return component.Badge{Text: "Payment overdue", Tone: "danger"}
	case s.Pending || s.Status == metering.StatusIncomplete:
		return component.Badge{Text: "Payment pending", Tone: "warn"}
	case s.CancelAtPeriodEnd:
		return component.Badge{Text: "Cancels", Tone: "warn"}
	}
	return component.Badge{Text: "Active", Tone: "ok"}
}
