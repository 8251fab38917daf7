package payments

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/store/internal/pg"
	"purser/store/queue"
	"purser/tenancy/audit"
)

var (
	selectPayment = pg.Declare("select payment", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND source_kind = $2 AND source_id = $3`)

	selectChargeQueued = pg.Declare("select charge queued", `
		SELECT EXISTS (SELECT 1 FROM work_queue WHERE app_id = $1 AND kind = $2 AND object = $3)`)

	lockPayment = pg.Declare("lock payment", `
		SELECT`+paymentColumns+`
		FROM provider_payments WHERE app_id = $1 AND source_kind = $2 AND source_id = $3 FOR NO KEY UPDATE`)
)

// PaymentRefund is a payment and the last refund of it that a member requested.
type PaymentRefund struct {
	billing.Payment
	State billing.OperationState // empty without a request
	Error string                 // why it failed
	// Confirming is whether the provider's state after the refund is still to be read.
	Confirming bool
}

// PaymentRefund reads a payment and the state of its refund.
func (a App) PaymentRefund(ctx context.Context, source billing.Source) (PaymentRefund, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (found PaymentRefund, err error) {
		paid, err := tx.payment(ctx, selectPayment, source)
		if err != nil {
			return found, err
		}
		found.Payment = paid.Payment
		op, err := tx.operation(ctx, billing.OperationAction, actionKey(billing.RefundCharge, paid.ChargeID))
		if errors.Is(err, ErrUnknown) {
			return found, nil
		}
		found.State, found.Error = op.State, op.Error
		if err != nil || op.State != billing.OperationDone {
			return found, err
		}
		queued, err := pg.Collect(ctx, tx, selectChargeQueued, pgx.RowTo[bool], queue.JobCharge, paid.ChargeID)
		found.Confirming = slices.Contains(queued, true)
		return found, err
	})
}

func (tx appTx) payment(ctx context.Context, s pg.Statement, source billing.Source) (storedPayment, error) {
	list, err := tx.payments(ctx, s, source.Kind, source.ID)
	if err == nil && len(list) == 0 {
		err = ErrUnknown
	}
	if err != nil {
		return storedPayment{}, err
	}
	return list[0], nil
}

// RequestRefund records a refund of what is left of a payment, which the next job requests
// from the provider. The provider's state then takes the credits back, as it does for any
// other refund. A refund that is under way is not requested twice.
func (a App) RequestRefund(ctx context.Context, source billing.Source, reason string, now int64) (billing.Refund, error) {
	return pg.Return(ctx, a.transact, func(ctx context.Context, tx appTx) (refund billing.Refund, err error) {
		paid, err := tx.payment(ctx, lockPayment, source)
		if errors.Is(err, ErrUnknown) {
			return refund, fault.New(fault.PathNotFound)
		}
		if err != nil {
			return refund, err
		}
		if refund, err = paid.DecideRefund(); err != nil {
			return refund, err
		}
		if op, err := tx.operation(ctx, billing.OperationAction, actionKey(billing.RefundCharge, paid.ChargeID)); err == nil && op.State == billing.OperationRunning {
			return refund, nil
		} else if err != nil && !errors.Is(err, ErrUnknown) {
			return refund, err
		}
		actions := []billing.Action{{Kind: billing.RefundCharge, ObjectID: paid.ChargeID}}
		if err := tx.enqueueActions(ctx, paid.walletID, ids.ID{}, actions, now); err != nil {
			return refund, err
		}
		if err := tx.ScheduleWake(ctx); err != nil {
			return refund, err
		}
		return refund, tx.Audit(ctx, "payment.refund", source.ID, nil, audit.Fields{
			"amount": billing.FormatMoney(refund.AmountCents, paid.Currency), "charge": paid.ChargeID, "reason": reason,
		})
	})
}
