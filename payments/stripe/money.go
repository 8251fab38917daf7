package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v79"

	"purser/billing"
	"purser/metering"
)

func invoiceOf(i *sdk.Invoice) billing.ProviderInvoice {
	out := billing.ProviderInvoice{
		ID:         i.ID,
		Status:     billing.InvoiceStatus(i.Status),
		Reason:     billing.InvoiceReason(i.BillingReason),
		CreatedAt:  milliseconds(i.Created),
		AmountDue:  i.AmountDue,
		AmountPaid: i.AmountPaid,
		Currency:   string(i.Currency),
		PaymentURL: i.HostedInvoiceURL,
	}
	if i.Status == sdk.InvoiceStatusDraft {
		out.FinalizesAt = milliseconds(i.AutomaticallyFinalizesAt)
	} else {
		out.FromBalance = max(0, i.EndingBalance-i.StartingBalance) // negative is in the customer's favour
	}
	if i.StatusTransitions != nil {
		out.PaidAt = milliseconds(i.StatusTransitions.PaidAt)
	}
	if i.Customer != nil {
		out.CustomerID = i.Customer.ID
	}
	if i.PaymentIntent != nil {
		out.IntentID = i.PaymentIntent.ID
	}
	if i.Charge != nil {
		out.ChargeID = i.Charge.ID
	}
	if i.Lines == nil {
		return out
	}
	for _, line := range i.Lines.Data {
		out.Lines = append(out.Lines, lineOf(line))
	}
	return out
}

func lineOf(line *sdk.InvoiceLineItem) billing.ProviderLine {
	out := billing.ProviderLine{
		Subscription: line.Type == sdk.InvoiceLineItemTypeSubscription,
		Proration:    line.Proration,
		PriceID:      priceID(line.Price),
		AmountCents:  line.Amount,
	}
	if line.Period != nil {
		out.Period = metering.Period{Start: milliseconds(line.Period.Start), End: milliseconds(line.Period.End)}
	}
	return out
}

const (
	// maxLines is how many lines of an invoice are read. Stripe allows 250 pending items
	// and 20 items of the subscription.
	maxLines = 300
	// maxLongInvoices is how many invoices of a subscription are read beyond their first
	// lines, the latest ones: a year of months.
	maxLongInvoices = 12
)

// hidesPeriod reports whether the line that says which period was bought may be behind
// the first ten, which is what an invoice embeds: pending items come before it.
func hidesPeriod(i *sdk.Invoice, read billing.ProviderInvoice) bool {
	return read.LacksPeriod() && i.Lines != nil && i.Lines.HasMore && len(i.Lines.Data) > 0
}

// readLines reads the invoice's other lines up to the one that says which period was
// bought.
func (c *Client) readLines(ctx context.Context, i *sdk.Invoice, read *billing.ProviderInvoice) error {
	last := i.Lines.Data[len(i.Lines.Data)-1].ID
	list := c.api.Invoices.ListLines(&sdk.InvoiceListLinesParams{ListParams: pageAfter(ctx, last), Invoice: sdk.String(i.ID)})
	for read.LacksPeriod() && list.Next() {
		if len(read.Lines) == maxLines {
			return &Problem{Kind: Refused, Message: "The invoice " + i.ID + " has too many lines."}
		}
		read.Lines = append(read.Lines, lineOf(list.InvoiceLineItem()))
	}
	return problem(list.Err())
}

// Invoice reads an invoice with its first lines, and the id of its subscription; empty
// for none.
func (c *Client) Invoice(ctx context.Context, id string) (out billing.ProviderInvoice, subscriptionID string, err error) {
	i, err := c.api.Invoices.Get(id, &sdk.InvoiceParams{Params: params(ctx)})
	if err != nil {
		return out, "", problem(err)
	}
	if i.Subscription != nil {
		subscriptionID = i.Subscription.ID
	}
	return invoiceOf(i), subscriptionID, nil
}

// FinalizeInvoice finalizes a draft without collecting it: Stripe neither deletes nor
// voids the draft of a subscription, so it has to be finalized before it can be
// voided.
func (c *Client) FinalizeInvoice(ctx context.Context, key, id string) error {
	_, err := c.api.Invoices.FinalizeInvoice(id, &sdk.InvoiceFinalizeInvoiceParams{Params: keyed(ctx, key), AutoAdvance: sdk.Bool(false)})
	return problem(err)
}

func (c *Client) VoidInvoice(ctx context.Context, key, id string) error {
	_, err := c.api.Invoices.VoidInvoice(id, &sdk.InvoiceVoidInvoiceParams{Params: keyed(ctx, key)})
	return problem(err)
}

// Charge reads a charge with all its refunds and disputes.
func (c *Client) Charge(ctx context.Context, id string) (billing.ProviderCharge, error) {
	charge, err := c.api.Charges.Get(id, &sdk.ChargeParams{Params: params(ctx)})
	if err != nil {
		return billing.ProviderCharge{}, problem(err)
	}
	out := billing.ProviderCharge{ID: charge.ID, AmountCents: charge.Amount}
	if charge.PaymentIntent != nil {
		out.IntentID = charge.PaymentIntent.ID
	}
	refunds := c.api.Refunds.List(&sdk.RefundListParams{ListParams: allPages(ctx), Charge: sdk.String(id)})
	for refunds.Next() {
		r := refunds.Refund()
		out.Refunds = append(out.Refunds, billing.ProviderRefund{ID: r.ID, AmountCents: r.Amount, Status: string(r.Status)})
	}
	if err := refunds.Err(); err != nil {
		return out, problem(err)
	}
	disputes := c.api.Disputes.List(&sdk.DisputeListParams{ListParams: allPages(ctx), Charge: sdk.String(id)})
	for disputes.Next() {
		d := disputes.Dispute()
		out.Disputes = append(out.Disputes, billing.ProviderDispute{
			ID: d.ID, AmountCents: d.Amount, Status: string(d.Status), Movements: len(d.BalanceTransactions),
		})
	}
	return out, problem(disputes.Err())
}

// RefundCharge refunds the remaining amount of a charge.
func (c *Client) RefundCharge(ctx context.Context, key, chargeID string) error {
	_, err := c.api.Refunds.New(&sdk.RefundParams{Params: keyed(ctx, key), Charge: sdk.String(chargeID)})
	return problem(err)
}

func (c *Client) ChargeOfRefund(ctx context.Context, id string) (string, error) {
	r, err := c.api.Refunds.Get(id, &sdk.RefundParams{Params: params(ctx)})
	if err != nil || r.Charge == nil {
		return "", problem(err)
	}
	return r.Charge.ID, nil
}

func (c *Client) ChargeOfDispute(ctx context.Context, id string) (string, error) {
	d, err := c.api.Disputes.Get(id, &sdk.DisputeParams{Params: params(ctx)})
	if err != nil || d.Charge == nil {
		return "", problem(err)
	}
	return d.Charge.ID, nil
}

// Refunds lists the refunds since a time, each with its charge.
func (c *Client) Refunds(ctx context.Context, since int64, after string, each func(Listed) error) error {
	list := c.api.Refunds.List(&sdk.RefundListParams{
		ListParams: pageAfter(ctx, after), CreatedRange: &sdk.RangeQueryParams{GreaterThanOrEqual: seconds(since)},
	})
	for list.Next() {
		if err := each(Listed{ID: list.Refund().ID, ObjectID: chargeID(list.Refund().Charge)}); err != nil {
			return err
		}
	}
	return problem(list.Err())
}

// Disputes lists the disputes since a time, each with its charge.
func (c *Client) Disputes(ctx context.Context, since int64, after string, each func(Listed) error) error {
	list := c.api.Disputes.List(&sdk.DisputeListParams{
		ListParams: pageAfter(ctx, after), CreatedRange: &sdk.RangeQueryParams{GreaterThanOrEqual: seconds(since)},
	})
	for list.Next() {
		if err := each(Listed{ID: list.Dispute().ID, ObjectID: chargeID(list.Dispute().Charge)}); err != nil {
			return err
		}
	}
	return problem(list.Err())
}

func chargeID(c *sdk.Charge) string {
	if c == nil {
		return ""
	}
	return c.ID
}
