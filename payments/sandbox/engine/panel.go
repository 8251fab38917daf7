package engine

import "purser/payments/sandbox/persist"

// OpenInvoice is an open invoice of a subscription, for the dashboard's panel.
type OpenInvoice struct {
	ID           string
	Subscription string
	AmountDue    int64
	Currency     string
	URL          string // of its hosted page
}

// OpenInvoices lists the open invoices of subscriptions, at most one of each.
func (a *Account) OpenInvoices(subscriptions []string) (list []OpenInvoice) {
	for _, id := range subscriptions {
		for _, i := range a.Invoices.By(persist.ByLiveOf, id) {
			if i.Status == open && i.AmountDue > 0 {
				list = append(list, OpenInvoice{i.ID, i.Subscription, i.AmountDue, i.Currency, a.invoiceURL(i)})
				break
			}
		}
	}
	return list
}

// PayOpen attempts the payment of an open invoice with a card that pays, or with one
// that is declined. The reason says why a payment failed.
func (a *Account) PayOpen(env Env, id string, succeeds bool) (reason string, err error) {
	invoice, err := Get(a.Invoices, "invoice", id)
	if err != nil {
		return "", err
	}
	if invoice.Status != open || invoice.AmountDue == 0 {
		return "", NotOpen(invoice.Status)
	}
	card := Card("pays")
	if !succeeds {
		card = "declined"
	}
	step, err := a.payHosted(env, invoice, card, customerPresent)
	return step.Reason, err
}

// FailRenewals saves a card for a subscription whose every charge fails.
func (a *Account) FailRenewals(env Env, id string) error {
	s, err := Get(a.Subscriptions, "subscription", id)
	if err != nil {
		return err
	}
	was := a.Render(s)
	s.Method = a.addMethod(env, s.Customer, "saved_declined").ID
	a.emitChange(env, subscriptionUpdated, was, s)
	return nil
}
