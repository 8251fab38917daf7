package billing

import (
	"strconv"

	"purser/fault"
	"purser/ids"
)

// Operation is a sequence of calls to the provider. It is stored before the first call
// with all parameters, so that recovery after a crash sends the same calls again.
type Operation struct {
	ID             ids.ID
	Kind           OperationKind
	IdempotencyKey string // the caller's; unique for the kind in the application
	Fingerprint    Fingerprint

	// ConnectionID is the account that is called, set before the first call; zero
	// until then. An operation finishes at the account where it began, also when the
	// application has another one by then.
	ConnectionID ids.ID

	// Parameters are fixed when the operation begins: a retry with, say, a later
	// expiry would be another request under the same idempotency key, which the
	// provider refuses for a day.
	Parameters Parameters

	Step      Step
	Attempt   int // from 1, for each step
	State     OperationState
	CreatedAt int64
	// AttemptedAt is when this step was first sent in this attempt, or last, if it
	// charges; zero when not yet.
	AttemptedAt int64
}

type OperationKind string

// The kinds of operations. The first four are requested by callers.
const (
	OperationChange   OperationKind = "change"
	OperationCancel   OperationKind = "cancel"
	OperationCheckout OperationKind = "checkout"
	OperationTopUp    OperationKind = "topup"
	OperationAction   OperationKind = "action" // requested by a projection
)

// Step is one call of an operation.
type Step string

const (
	StepExpire   Step = "expire"   // a session
	StepSession  Step = "session"  // a new one; the customer is charged on its page, not by the call
	StepRelease  Step = "release"  // a schedule
	StepVoid     Step = "void"     // an invoice
	StepFinalize Step = "finalize" // a renewal's draft, before it can be voided
	StepUnbill   Step = "unbill"   // void a renewal's invoice
	StepUpgrade  Step = "upgrade"  // charges
	StepSchedule Step = "schedule" // created from the subscription
	StepPhases   Step = "phases"   // of the schedule
	StepFlag     Step = "flag"     // cancel_at_period_end
	StepEnd      Step = "end"      // a subscription, now
	StepRefund   Step = "refund"
	StepCredit   Step = "credit" // the customer's balance
)

// Charges reports whether the call itself can charge.
func (s Step) Charges() bool { return s == StepUpgrade }

type OperationState string

const (
	OperationRunning OperationState = "running"
	OperationDone    OperationState = "done"
	OperationFailed  OperationState = "failed"
)

// ProviderKey is the idempotency key of the call. It is built from our own id and
// never from the caller's key, which may be too long and collide with other programs'
// keys.
func (o Operation) ProviderKey() string {
	return "psr:" + o.ID.Format("op") + ":" + string(o.Step) + ":" + strconv.Itoa(o.Attempt)
}

// AtStep is the operation at its next step.
func (o Operation) AtStep(step Step) Operation {
	o.Step, o.Attempt, o.AttemptedAt = step, 1, 0
	return o
}

// NextAttempt is the operation with a new attempt at its step, under a new key.
func (o Operation) NextAttempt() Operation {
	o.Attempt++
	o.AttemptedAt = 0
	return o
}

// Attempted is the operation as it has to be stored before its step is sent.
func (o Operation) Attempted(now int64) Operation {
	if o.AttemptedAt == 0 || o.Step.Charges() {
		o.AttemptedAt = now
	}
	return o
}

// CheckFingerprint refuses another request with the operation's idempotency key.
func (o Operation) CheckFingerprint(request Fingerprint) error {
	if request != o.Fingerprint {
		return fault.New(fault.IdempotencyConflict)
	}
	return nil
}
