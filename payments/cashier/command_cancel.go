package cashier

import (
	"context"

	"purser/billing"
	"purser/payments/stripe"
	"purser/store/payments"
)

// cancelUnpaid cancels a subscription at once whose paid period is over and whose
// renewal is invoiced but not paid: its period ended when the renewal began. Setting
// the flag would charge for another period and end after that. It reports whether the
// subscription was ended.
func (run *operationRun) cancelUnpaid(ctx context.Context) (ended bool, err error) {
	renewal := run.rec.Parameters.Cancel.RenewalID
	if renewal == "" {
		s, err := run.subscription(ctx)
		if err != nil {
			return false, err
		}
		if renewal = s.UnpaidRenewal(); renewal == "" {
			return false, nil
		}
		// Stored with the first call: once its renewal is voided, the subscription looks
		// as if it had been paid.
		run.rec.Parameters.Cancel.RenewalID = renewal
	}
	left, err := run.voidRenewal(ctx, renewal)
	if err != nil {
		return false, err
	}
	if charged(left) {
		// It was paid in the meantime, or its debit is processing: this period is the last.
		run.rec.Parameters.Cancel.RenewalID = ""
		return false, nil
	}
	if err := run.cancelNow(ctx, run.rec.Parameters.SubscriptionID()); err != nil {
		return false, err
	}
	sub, err := run.c.syncSubscription(ctx, run.account, run.fence, run.rec.Parameters.SubscriptionID(), syncOptions{})
	if err != nil {
		return false, err
	}
	sub.CancelAtPeriodEnd = true
	return true, run.finishWith(ctx, payments.Completion{Answer: &sub})
}

// completeCancellation completes a cancellation. When the renewal's debit is
// processing, which cannot be stopped, the answer has the period that it pays as the
// last one.
func (run *operationRun) completeCancellation(ctx context.Context) error {
	s, err := run.subscription(ctx)
	if err != nil {
		return err
	}
	if s.UnpaidRenewal() == "" {
		return run.complete(ctx)
	}
	sub, err := run.c.syncSubscription(ctx, run.account, run.fence, run.rec.Parameters.SubscriptionID(), syncOptions{scheduleRefresh: true})
	if err != nil {
		return err
	}
	if sub.Period.End < s.Period.End {
		sub.Period = s.Period
	}
	return run.finishWith(ctx, payments.Completion{Answer: &sub})
}

// charged reports whether an invoice takes money, from a card or from the customer's
// balance: it was paid, or it is open and due.
func charged(i billing.ProviderInvoice) bool {
	return i.Status == billing.InvoiceOpen && i.AmountDue > 0 || i.Status == billing.InvoicePaid && i.AmountPaid+i.FromBalance > 0
}

// voidRenewal finalizes and voids a renewal invoice and returns it as it is then. It
// is charged all the same when it was paid or its debit is processing. An invoice with
// nothing due is left alone.
func (run *operationRun) voidRenewal(ctx context.Context, id string) (invoice billing.ProviderInvoice, err error) {
	// read returns the invoice; a deleted one is not charged.
	read := func(ctx context.Context) (billing.ProviderInvoice, error) {
		invoice, _, err := run.provider.Invoice(ctx, id)
		return invoice, ignoreNotFound(err)
	}
	settled := func(i billing.ProviderInvoice) bool {
		return i.AmountDue == 0 || i.Status != billing.InvoiceDraft && i.Status != billing.InvoiceOpen
	}
	steps := []struct {
		step billing.Step
		done func(billing.ProviderInvoice) bool
		send func(ctx context.Context, key, id string) error
	}{
		{billing.StepFinalize, func(i billing.ProviderInvoice) bool { return settled(i) || i.Status == billing.InvoiceOpen }, run.provider.FinalizeInvoice},
		{billing.StepUnbill, settled, run.provider.VoidInvoice},
	}
	var refusal error
	for _, s := range steps {
		err := run.step(ctx, s.step,
			func(ctx context.Context) (bool, error) { invoice, err := read(ctx); return s.done(invoice), err },
			func(ctx context.Context, key string) error { return s.send(ctx, key, id) })
		if err != nil && !stripe.Is(err, stripe.Refused) {
			return invoice, err
		}
		refusal = err
	}
	invoice, err = read(ctx)
	if err == nil && !settled(invoice) && invoice.Status == billing.InvoiceDraft {
		err = refusal
	}
	return invoice, err
}
