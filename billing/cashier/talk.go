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

// talk is a conversation with the provider about one op, by whoever holds the
// lease. It runs from the beginning each time; what was done before is skipped,
// and of the step that was under way it is first looked whether it was taken.
type talk struct {
	c     *Cashier
	app   store.App
	fence store.Fence
	rec   store.OperationRecord
	asker billing.Asker
	now   int64
	account

	seen *stripe.Subscription // as last looked at; nil after something was sent
}

var (
	// errClosed is for an op that will not be gone on with by ourselves.
	errClosed = errors.New("cashier: too much time has passed to repeat this request by ourselves")
	// errOvertaken is for an op that was decided on a state of things that is over.
	errOvertaken = errors.New("cashier: something else was bought in the meantime")
)

// maxRenewals is how many new keys one run tries when the provider repeats a
// failure of its own.
const maxRenewals = 1

// turn is the order of the steps, in every act that has them. An op that stands
// at one has taken those before it.
var turn = map[billing.Step]int{
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

// take takes one step: look whether its aim is reached, and if not, send. The op
// is stored before each call, so whoever comes after a crash knows what may have
// been sent, and under which key.
func (t *talk) take(ctx context.Context, step billing.Step, look func(context.Context) (bool, error), send func(ctx context.Context, key string) error) error {
	if turn[step] < turn[t.rec.Step] {
		return nil // taken before
	}
	op := t.rec.Operation
	if op.Step != step {
		op = op.To(step)
	}
	var failure error
	for renewals := 0; ; renewals++ {
		done, err := look(ctx)
		if err != nil {
			return err
		}
		observed := billing.Observation{Seen: billing.SeenUndone, SavedFailure: failure != nil}
		if done {
			observed.Seen = billing.SeenDone
		}
		switch billing.Recover(op, observed, t.asker, t.now) {
		case billing.RecoverDone:
			return nil
		case billing.RecoverClose:
			return errors.Join(errClosed, failure)
		case billing.RecoverRenew:
			if renewals > maxRenewals {
				return failure
			}
			op = op.Again()
		}
		op = op.Sending(t.now)
		if err := t.app.PutOperation(ctx, t.fence, op); err != nil {
			return err
		}
		t.rec.Operation = op
		if err := leaseError(ctx); err != nil {
			return err
		}
		failure = send(ctx, op.ProviderKey())
		t.seen = nil
		if failure == nil {
			return nil
		}
		var problem *stripe.Problem
		if !errors.As(failure, &problem) || problem.Kind != stripe.Unavailable || !problem.Saved {
			return failure
		}
	}
}

// overtaken refuses an op after which something else was asked of the same
// subscription: of an identity's wishes the last one counts. Carried out late, an
// earlier one would undo it, and may charge for that. One that was carried out
// before it was overtaken is closed as done: its caller was charged.
func (t *talk) overtaken(ctx context.Context) (done bool, err error) {
	if t.rec.Kind == billing.OperationTopUp || t.rec.Kind == billing.OperationAction {
		return false, nil
	}
	overtaken, err := t.app.Overtaken(ctx, t.rec.ID)
	if err != nil || !overtaken {
		return false, err
	}
	switch act(t.rec.Parameters[paramAct]) { // which may tell the caller more
	case actUpgrade:
		if done, err := t.applied(ctx); done || err != nil {
			return done, err
		}
		err = t.stillUpgrade(ctx)
	case actCheckout:
		err = t.stillForSale(ctx)
	}
	if err != nil {
		return false, err
	}
	return false, errors.Join(errOvertaken, errChangedSince())
}

// applied closes the op when what it asks for was paid, whatever has become of the
// subscription since: at its present price it looks as if nothing had been sent.
func (t *talk) applied(ctx context.Context) (bool, error) {
	if _, err := t.c.hearSubscription(ctx, t.account, t.fence, t.rec.Parameters[paramSubscription], hearing{watched: true}); err != nil {
		return false, err
	}
	change, err := t.app.Change(ctx, t.rec.ChangeID)
	if err != nil || change.State != billing.ChangeApplied {
		return false, err
	}
	return true, t.close(ctx)
}

func errChangedSince() error {
	return fault.Newf(fault.OperationInProgress, "The subscription changed since the first request. Send it again with a new idempotency key.")
}

// subscription is the provider's, as it stands.
func (t *talk) subscription(ctx context.Context) (stripe.Subscription, error) {
	if t.seen == nil {
		seen, err := t.provider.Subscription(ctx, t.rec.Parameters[paramSubscription])
		if err != nil {
			return seen, err
		}
		t.seen = &seen
	}
	return *t.seen, nil
}

// failed notes that the op will not be gone on with, and why.
func (t *talk) failed(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.c.limits.tidy)
	defer cancel()
	end := store.Completion{Operation: t.rec.Operation, Error: cause.Error(), DropChange: t.rec.ChangeID, Now: t.now}
	end.Operation.State = billing.OperationFailed
	if t.rec.Kind == billing.OperationAction {
		// No caller hears of it, and nobody asks again: somebody goes on paying for what
		// they do not have, or never gets their money back.
		alert := billing.Alert{Kind: billing.ActionRefused, ObjectID: t.rec.Parameters[paramObject]}
		if t.rec.Parameters[paramAction] == string(billing.ReturnBalance) {
			alert.Kind = billing.BalanceSpent
		}
		end.Alerts = []billing.Alert{alert}
	}
	return t.app.CompleteOperation(ctx, t.fence, end)
}

// concluded sorts out how a run ended. What the provider refuses for good ends
// the op; anything else leaves it to be gone on with.
func (t *talk) concluded(ctx context.Context, err error) error {
	if !final(err) {
		return err
	}
	if stripe.Is(err, stripe.KeyMisused) {
		t.c.options.Log.Error("cashier: an idempotency key was used for two requests", "op", t.rec.ID.String(), "cause", err)
	}
	if unclosed := t.failed(ctx, err); unclosed != nil {
		// It is still to be closed, and has to be found again for that. The provider's
		// refusal alone would say that nothing is left to do.
		return fmt.Errorf("%w (after: %v)", unclosed, err)
	}
	return err
}

// final reports whether nothing would come of another try.
func final(err error) bool {
	var problem *stripe.Problem
	return errors.Is(err, errClosed) || errors.Is(err, errOvertaken) ||
		errors.As(err, &problem) && problem.Kind != stripe.Unavailable && problem.Kind != stripe.Unauthorized
}

// told is an error as the caller may know it.
func told(err error) error {
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
