package cashier

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"purser/billing"
	"purser/fault"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
)

// operationRun runs the steps of one operation under its lease. It always starts at
// the first step: finished steps are skipped, and a step that may have been sent is
// checked at the provider before it is repeated.
type operationRun struct {
	c         *Cashier
	app       payments.App
	fence     queue.Fence
	rec       payments.OperationRecord
	initiator billing.Initiator
	fresh     bool // whether it was decided under the same lease
	now       int64
	account

	remote *stripe.Subscription // as last read; nil after a call that changes it
}

var (
	// errTooLate is returned when too much time has passed to repeat a step without a
	// caller.
	errTooLate = errors.New("cashier: too late to repeat this step without a caller")
	// errUnsettled is returned while a step that is not repeated may still take effect.
	errUnsettled = errors.New("cashier: this step may still take effect")
	// errSuperseded is returned for an operation that was decided on outdated state.
	errSuperseded = errors.New("cashier: the operation was superseded")
)

// maxNewKeys is how many new idempotency keys one run tries when the provider repeats
// a saved failure.
const maxNewKeys = 1

// stepOrder is the order of the steps in every command. An operation at one step has
// finished those before it.
var stepOrder = map[billing.Step]int{
	"":                   0,
	billing.StepRelease:  1,
	billing.StepVoid:     2,
	billing.StepExpire:   3,
	billing.StepUpgrade:  4,
	billing.StepSchedule: 5,
	billing.StepPhases:   6,
	billing.StepFinalize: 7,
	billing.StepUnbill:   8,
	billing.StepFlag:     9,
	billing.StepSession:  10,
	billing.StepEnd:      11,
	billing.StepRefund:   12,
	billing.StepCredit:   13,
}

// step runs one step: it calls isDone, and send unless the step's effect is there. The
// operation is stored before each call, so that after a crash it is known what may
// have been sent, and under which key.
func (run *operationRun) step(ctx context.Context, step billing.Step, isDone func(context.Context) (bool, error), send func(ctx context.Context, key string) error) error {
	if stepOrder[step] < stepOrder[run.rec.Step] {
		return nil // finished before
	}
	op := run.rec.Operation
	if op.Step != step {
		op = op.AtStep(step)
	}
	var failure error
	for newKeys := 0; ; newKeys++ {
		done, err := isDone(ctx)
		if err != nil {
			return err
		}
		observed := billing.Observation{Outcome: billing.OutcomeNotDone, SavedFailure: failure != nil}
		if done {
			observed.Outcome = billing.OutcomeDone
		}
		before := op.AttemptedAt // also under the key of an earlier attempt
		switch billing.Recover(op, observed, run.initiator, run.now) {
		case billing.RecoverDone:
			return nil
		case billing.RecoverLater:
			return errors.Join(errUnsettled, failure)
		case billing.RecoverClose:
			return errors.Join(errTooLate, failure)
		case billing.RecoverRenew:
			if newKeys > maxNewKeys {
				return failure
			}
			op = op.NextAttempt()
		}
		op = op.Attempted(run.now)
		if err := run.putOperation(ctx, op); err != nil {
			return err
		}
		if err := leaseError(ctx); err != nil {
			return err
		}
		failure = send(ctx, op.ProviderKey())
		run.remote = nil
		if failure == nil {
			return nil
		}
		problem, ok := errors.AsType[*stripe.Problem](failure)
		if ok && problem.Definite && step.Charges() && !isFinal(failure) {
			op.AttemptedAt = before
			return errors.Join(failure, run.putOperation(ctx, op))
		}
		if !ok || problem.Kind != stripe.Unavailable || !problem.Saved {
			return failure
		}
	}
}

// stepOn is step for a step whose effect the provider's subscription shows.
func (run *operationRun) stepOn(ctx context.Context, step billing.Step, isDone func(stripe.Subscription) bool, send func(ctx context.Context, key string, s stripe.Subscription) error) error {
	return run.step(ctx, step,
		func(ctx context.Context) (bool, error) {
			s, err := run.subscription(ctx)
			return err == nil && isDone(s), err
		},
		func(ctx context.Context, key string) error {
			s, err := run.subscription(ctx)
			if err != nil {
				return err
			}
			return send(ctx, key, s)
		})
}

func (run *operationRun) putOperation(ctx context.Context, op billing.Operation) error {
	err := run.app.PutOperation(ctx, run.fence, op)
	if err == nil {
		run.rec.Operation = op
	}
	return err
}

// checkSuperseded refuses an operation after which another one was requested for the
// same subscription: the last request counts. Run late, an earlier one would undo it,
// and may charge for that. One that took effect before it was superseded completes:
// its caller was charged.
func (run *operationRun) checkSuperseded(ctx context.Context) (done bool, err error) {
	if run.rec.Kind == billing.OperationTopUp || run.rec.Kind == billing.OperationAction {
		return false, nil
	}
	superseded, err := run.app.Superseded(ctx, run.rec.ID)
	if err != nil || !superseded {
		return false, err
	}
	switch run.rec.Parameters.Command() { // for a more precise error
	case billing.CommandUpgrade:
		if done, err := run.completeIfApplied(ctx); done || err != nil {
			return done, err
		}
		err = run.recheckUpgrade(ctx)
	case billing.CommandCheckout:
		err = run.recheckCheckout(ctx)
	}
	if err != nil {
		return false, err
	}
	return false, errors.Join(errSuperseded, errChangedSince())
}

// completeIfApplied completes the operation when its change was paid, whatever
// happened to the subscription since: its current price alone looks as if nothing had
// been sent.
func (run *operationRun) completeIfApplied(ctx context.Context) (bool, error) {
	if _, err := run.c.syncSubscription(ctx, run.account, run.fence, run.rec.Parameters.SubscriptionID(), syncOptions{scheduleRefresh: true}); err != nil {
		return false, err
	}
	change, err := run.app.Change(ctx, run.rec.ChangeID)
	if err != nil || change.State != billing.ChangeApplied {
		return false, err
	}
	return true, run.complete(ctx)
}

func errChangedSince() error {
	return fault.Newf(fault.OperationInProgress, "The subscription changed since the first request. Send it again with a new idempotency key.")
}

func errAccountChanged() error {
	return fault.Newf(fault.OperationInProgress, "The payment account or its customer changed since the first request. Send it again with a new idempotency key.")
}

func errRenamed() error {
	return fault.Newf(fault.OperationInProgress, "The customer's identity changed since the first request. Send it again with the current identity and a new idempotency key.")
}

// subscription reads the provider's subscription, cached until the next call that
// changes something.
func (run *operationRun) subscription(ctx context.Context) (stripe.Subscription, error) {
	if run.remote == nil {
		seen, err := run.provider.Subscription(ctx, run.rec.Parameters.SubscriptionID())
		if err != nil {
			return seen, err
		}
		run.remote = &seen
	}
	return *run.remote, nil
}

// finishWith stores the operation as done, with the rest of its completion.
func (run *operationRun) finishWith(ctx context.Context, end payments.Completion) error {
	end.Operation = run.rec.Operation
	end.Operation.State = billing.OperationDone
	return run.app.CompleteOperation(ctx, run.fence, end)
}

// fail stores the operation as failed.
func (run *operationRun) fail(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), run.c.limits.cleanup)
	defer cancel()
	end := payments.Completion{Operation: run.rec.Operation, Error: cmp.Or(errorMessage(cause), cause.Error()), DropChange: run.rec.ChangeID, Now: run.now}
	end.Operation.State = billing.OperationFailed
	if run.rec.Kind == billing.OperationAction {
		// No caller sees the error or retries: without an alert the customer would go on
		// paying, or never get the refund.
		alert := billing.Alert{Kind: billing.ActionRefused, ObjectID: run.rec.Parameters.ObjectID()}
		if run.rec.Parameters.Action.Kind == billing.ReturnBalance {
			alert.Kind = billing.BalanceSpent
		}
		end.Alerts = []billing.Alert{alert}
	}
	return run.app.CompleteOperation(ctx, run.fence, end)
}

// finish stores the operation as failed when the error is final. Any other error
// leaves it to be resumed.
func (run *operationRun) finish(ctx context.Context, err error) error {
	if !isFinal(err) {
		return err
	}
	if stripe.Is(err, stripe.KeyMisused) {
		run.c.options.Log.Error("idempotency key reused for another request", "op", run.rec.ID.String(), "cause", err)
	}
	if storeErr := run.fail(ctx, err); storeErr != nil {
		// The failure is not stored yet, so the error must not be final: the job has to
		// run again.
		return fmt.Errorf("%w (after: %v)", storeErr, err)
	}
	return err
}

// isFinal reports whether a retry could not succeed.
func isFinal(err error) bool {
	var problem *stripe.Problem
	return errors.Is(err, errTooLate) || errors.Is(err, errSuperseded) ||
		errors.As(err, &problem) && problem.Kind != stripe.Unavailable && problem.Kind != stripe.Unauthorized
}

// publicError maps an error to what the caller may see.
func publicError(err error) error {
	var problem *stripe.Problem
	var known *fault.Fault
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, queue.ErrFenced):
		return fault.New(fault.OperationInProgress)
	case errors.Is(err, errAccountRetired):
		return errAccountChanged()
	case !errors.As(err, &problem):
		return err
	}
	switch problem.Kind {
	case stripe.Unavailable:
		return errors.Join(fault.New(fault.ProviderUnavailable), err)
	case stripe.Unauthorized:
		return fault.Newf(fault.PaymentsNotConfigured, "The payment provider rejected the stored key. Reconnect the account in the dashboard.")
	case stripe.KeyMisused:
		return err
	default:
		return fault.Newf(fault.ProviderRefused, "The payment provider refused this: %s", problem.Message)
	}
}
