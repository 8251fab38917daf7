package cashier

import (
	"context"
	"errors"
	"fmt"

	"purser/billing"
	"purser/billing/stripe"
	"purser/fault"
	"purser/store"
)

// operationRun is a conversation with the provider about one op, by whoever holds the
// lease. It runs from the beginning each time; what was done before is skipped,
// and of the step that was under way it is first looked whether it was taken.
type operationRun struct {
	c         *Cashier
	app       store.App
	fence     store.Fence
	rec       store.OperationRecord
	initiator billing.Initiator
	now       int64
	account

	remote *stripe.Subscription // as last looked at; nil after something was sent
}

var (
	// errTooLate is for an op that will not be gone on with by ourselves.
	errTooLate = errors.New("cashier: too much time has passed to repeat this request by ourselves")
	// errSuperseded is for an op that was decided on a state of things that is over.
	errSuperseded = errors.New("cashier: something else was bought in the meantime")
)

// maxNewKeys is how many new keys one run tries when the provider repeats a
// failure of its own.
const maxNewKeys = 1

// stepOrder is the order of the steps, in every act that has them. An op that stands
// at one has taken those before it.
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

// step takes one step: look whether its aim is reached, and if not, send. The op
// is stored before each call, so whoever comes after a crash knows what may have
// been sent, and under which key.
func (run *operationRun) step(ctx context.Context, step billing.Step, look func(context.Context) (bool, error), send func(ctx context.Context, key string) error) error {
	if stepOrder[step] < stepOrder[run.rec.Step] {
		return nil // taken before
	}
	op := run.rec.Operation
	if op.Step != step {
		op = op.AtStep(step)
	}
	var failure error
	for renewals := 0; ; renewals++ {
		done, err := look(ctx)
		if err != nil {
			return err
		}
		observed := billing.Observation{Outcome: billing.OutcomeNotDone, SavedFailure: failure != nil}
		if done {
			observed.Outcome = billing.OutcomeDone
		}
		switch billing.Recover(op, observed, run.initiator, run.now) {
		case billing.RecoverDone:
			return nil
		case billing.RecoverClose:
			return errors.Join(errTooLate, failure)
		case billing.RecoverRenew:
			if renewals > maxNewKeys {
				return failure
			}
			op = op.NextAttempt()
		}
		op = op.Attempted(run.now)
		if err := run.app.PutOperation(ctx, run.fence, op); err != nil {
			return err
		}
		run.rec.Operation = op
		if err := leaseError(ctx); err != nil {
			return err
		}
		failure = send(ctx, op.ProviderKey())
		run.remote = nil
		if failure == nil {
			return nil
		}
		var problem *stripe.Problem
		if !errors.As(failure, &problem) || problem.Kind != stripe.Unavailable || !problem.Saved {
			return failure
		}
	}
}

// checkSuperseded refuses an op after which something else was asked of the same
// subscription: of an identity's wishes the last one counts. Carried out late, an
// earlier one would undo it, and may charge for that. One that was carried out
// before it was overtaken is closed as done: its caller was charged.
func (run *operationRun) checkSuperseded(ctx context.Context) (done bool, err error) {
	if run.rec.Kind == billing.OperationTopUp || run.rec.Kind == billing.OperationAction {
		return false, nil
	}
	superseded, err := run.app.Overtaken(ctx, run.rec.ID)
	if err != nil || !superseded {
		return false, err
	}
	switch command(run.rec.Parameters[paramCommand]) { // which may tell the caller more
	case commandUpgrade:
		if done, err := run.completeIfApplied(ctx); done || err != nil {
			return done, err
		}
		err = run.recheckUpgrade(ctx)
	case commandCheckout:
		err = run.recheckCheckout(ctx)
	}
	if err != nil {
		return false, err
	}
	return false, errors.Join(errSuperseded, errChangedSince())
}

// completeIfApplied closes the op when what it asks for was paid, whatever has become of the
// subscription since: at its present price it looks as if nothing had been sent.
func (run *operationRun) completeIfApplied(ctx context.Context) (bool, error) {
	if _, err := run.c.syncSubscription(ctx, run.account, run.fence, run.rec.Parameters[paramSubscription], syncOptions{scheduleRefresh: true}); err != nil {
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

// subscription is the provider's, as it stands.
func (run *operationRun) subscription(ctx context.Context) (stripe.Subscription, error) {
	if run.remote == nil {
		seen, err := run.provider.Subscription(ctx, run.rec.Parameters[paramSubscription])
		if err != nil {
			return seen, err
		}
		run.remote = &seen
	}
	return *run.remote, nil
}

// fail notes that the op will not be gone on with, and why.
func (run *operationRun) fail(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), run.c.limits.cleanup)
	defer cancel()
	end := store.Completion{Operation: run.rec.Operation, Error: cause.Error(), DropChange: run.rec.ChangeID, Now: run.now}
	end.Operation.State = billing.OperationFailed
	if run.rec.Kind == billing.OperationAction {
		// No caller hears of it, and nobody asks again: somebody goes on paying for what
		// they do not have, or never gets their money back.
		alert := billing.Alert{Kind: billing.ActionRefused, ObjectID: run.rec.Parameters[paramObject]}
		if run.rec.Parameters[paramAction] == string(billing.ReturnBalance) {
			alert.Kind = billing.BalanceSpent
		}
		end.Alerts = []billing.Alert{alert}
	}
	return run.app.CompleteOperation(ctx, run.fence, end)
}

// finish sorts out how a run ended. What the provider refuses for good ends
// the op; anything else leaves it to be gone on with.
func (run *operationRun) finish(ctx context.Context, err error) error {
	if !isFinal(err) {
		return err
	}
	if stripe.Is(err, stripe.KeyMisused) {
		run.c.options.Log.Error("cashier: an idempotency key was used for two requests", "op", run.rec.ID.String(), "cause", err)
	}
	if unclosed := run.fail(ctx, err); unclosed != nil {
		// It is still to be closed, and has to be found again for that. The provider's
		// refusal alone would say that nothing is left to do.
		return fmt.Errorf("%w (after: %v)", unclosed, err)
	}
	return err
}

// isFinal reports whether nothing would come of another try.
func isFinal(err error) bool {
	var problem *stripe.Problem
	return errors.Is(err, errTooLate) || errors.Is(err, errSuperseded) ||
		errors.As(err, &problem) && problem.Kind != stripe.Unavailable && problem.Kind != stripe.Unauthorized
}

// publicError is an error as the caller may know it.
func publicError(err error) error {
	var problem *stripe.Problem
	var known *fault.Fault
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrFenced):
		return fault.New(fault.OperationInProgress)
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
