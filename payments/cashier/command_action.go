package cashier

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"purser/billing"
	"purser/ids"
	"purser/jobs"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
)

// recover resumes an operation that was interrupted.
func (c *Cashier) recover(ctx context.Context, job jobs.Job) (next int64, err error) {
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return 0, err
	}
	app := c.options.Store.Payments(job.Scope)
	rec, err := app.OperationByID(ctx, ids.ID(id))
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	work := func(ctx context.Context, fence queue.Fence) error {
		// Read again: the previous holder of the lease may have finished it.
		rec, err := app.OperationByID(ctx, ids.ID(id))
		if err != nil || rec.State != billing.OperationRunning {
			return ignoreNotFound(err)
		}
		_, err = c.resume(ctx, job.Scope, fence, rec, billing.Background, false)
		if errors.Is(err, errUnsettled) {
			next = c.nowAt(fence.ClockOffset) + resumeDelay.Milliseconds()
			return nil
		}
		if errors.Is(err, errAccountRetired) { // it is never called again
			run := operationRun{c: c, app: app, fence: fence, rec: rec, now: c.nowAt(fence.ClockOffset)}
			return run.fail(ctx, err)
		}
		if isFinal(err) {
			c.options.Log.Warn("operation failed", "op", rec.ID.String(), "kind", string(rec.Kind), "cause", err)
			return nil // stored as failed; a retry would not help
		}
		return err
	}
	if rec.Kind == billing.OperationAction {
		return 0, c.withLease(ctx, job.Scope, actionLease(rec.Parameters.ObjectID()), work)
	}
	identity := func(ctx context.Context) (string, error) {
		rec, err := app.OperationByID(ctx, ids.ID(id))
		return rec.Identity, err
	}
	err = c.withIdentityLease(ctx, job.Scope, identity, work)
	return next, ignoreNotFound(err)
}

// action runs an action that a projection requested.
func (run *operationRun) action(ctx context.Context) error {
	object := run.rec.Parameters.ObjectID()
	var err error
	after := run.job(queue.JobSubscription, object, 0)
	switch run.rec.Parameters.Action.Kind {
	case billing.CancelNow:
		err = run.cancelNow(ctx, object)
	case billing.RefundInvoice:
		after.Kind = queue.JobCharge
		after.Object, err = run.refundInvoice(ctx, object)
	case billing.RefundCharge:
		after.Kind = queue.JobCharge
		err = run.refundCharge(ctx, object)
	case billing.VoidRenewal:
		var left billing.ProviderInvoice
		if left, err = run.voidRenewal(ctx, object); left.Status == billing.InvoiceOpen {
			// A debit is processing. Its outcome may be reported while this operation still
			// runs, which starts no second one, so the invoice is always read again later.
			after.DueAt = run.now + overdueInterval
		}
		after.Kind = queue.JobInvoice
	case billing.ReturnBalance:
		after.Object, err = "", run.returnBalance(ctx, object)
	default:
		return errors.New("cashier: unknown action")
	}
	if err != nil {
		return err
	}
	var end payments.Completion
	if after.Object != "" {
		end.Jobs = []queue.Job{after}
	}
	return run.finishWith(ctx, end)
}

func (run *operationRun) cancelNow(ctx context.Context, id string) error {
	return run.step(ctx, billing.StepEnd,
		func(ctx context.Context) (bool, error) {
			s, err := run.provider.Subscription(ctx, id)
			return s.Status.Terminal() || stripe.Is(err, stripe.NotFound), ignoreNotFound(err)
		},
		func(ctx context.Context, key string) error { return run.provider.CancelNow(ctx, key, id) })
}

// refundInvoice refunds what was paid of an invoice and returns its charge.
func (run *operationRun) refundInvoice(ctx context.Context, id string) (chargeID string, err error) {
	invoice, _, err := run.provider.Invoice(ctx, id)
	if err != nil || invoice.ChargeID == "" {
		return "", ignoreNotFound(err)
	}
	return invoice.ChargeID, run.refundCharge(ctx, invoice.ChargeID)
}

// refundCharge refunds what is left of a charge.
func (run *operationRun) refundCharge(ctx context.Context, id string) error {
	return run.step(ctx, billing.StepRefund,
		func(ctx context.Context) (bool, error) {
			charge, err := run.provider.Charge(ctx, id)
			r := charge.Reversed()
			return r.RefundedCents+r.DisputedCents >= charge.AmountCents, err
		},
		func(ctx context.Context, key string) error { return run.provider.RefundCharge(ctx, key, id) })
}

// returnBalance credits to the customer's balance at the provider what it has paid of
// an invoice. The credit's metadata names the invoice, so it is found also after the
// provider has dropped the idempotency key.
func (run *operationRun) returnBalance(ctx context.Context, id string) error {
	invoice, _, err := run.provider.Invoice(ctx, id)
	if err != nil || invoice.FromBalance == 0 {
		return ignoreNotFound(err)
	}
	return run.step(ctx, billing.StepCredit,
		func(ctx context.Context) (bool, error) {
			return run.provider.BalanceReturned(ctx, invoice.CustomerID, id)
		},
		func(ctx context.Context, key string) error { return run.provider.ReturnBalance(ctx, key, invoice) })
}
