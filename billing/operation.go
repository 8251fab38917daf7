package billing

import (
	"strconv"

	"purser/fault"
	"purser/ids"
)

// Operation is the intent of a conversation with the provider. It is stored before the
// first call, with everything that the calls will say, so that whoever finds it
// after a crash says the same again.
type Operation struct {
	ID             ids.ID
	Kind           OperationKind
	IdempotencyKey string // the caller's; unique for the kind in the application
	Fingerprint    Fingerprint

	// ConnectionID is the account that it is said to, from before the first call on;
	// zero while that is open. Whatever account the application has by then, what was
	// begun at one is finished there.
	ConnectionID ids.ID

	// Parameters are frozen with the intent: a repeat with a later expiry, say, would
	// be another request under the same key, which the provider refuses for a day.
	Parameters map[string]string

	Step        Step
	Attempt     int // from 1, for each step
	State       OperationState
	CreatedAt   int64
	AttemptedAt int64 // when this step was first sent in this attempt; zero when not yet
}

// OperationKind is what the conversation is about.
type OperationKind string

// The kinds of conversations. The first four are asked for by callers.
const (
	OperationChange   OperationKind = "change"
	OperationCancel   OperationKind = "cancel"
	OperationCheckout OperationKind = "checkout"
	OperationTopUp    OperationKind = "topup"
	OperationAction   OperationKind = "action" // something that a projection asked for
)

// Step is one call of a conversation.
type Step string

// The steps.
const (
	StepExpire   Step = "expire"   // a session
	StepSession  Step = "session"  // a new one; whoever opens the page is charged there, not by the call
	StepRelease  Step = "release"  // a schedule
	StepVoid     Step = "void"     // an invoice
	StepFinalize Step = "finalize" // a renewal's draft, so that it can be voided
	StepUnbill   Step = "unbill"   // a renewal's invoice: it is voided
	StepUpgrade  Step = "upgrade"  // charges
	StepSchedule Step = "schedule" // made from the subscription
	StepPhases   Step = "phases"   // of the schedule
	StepFlag     Step = "flag"     // to cancel with the period, or not
	StepEnd      Step = "end"      // a subscription, now
	StepRefund   Step = "refund"
	StepCredit   Step = "credit" // the customer's balance
)

// Charges reports whether the call itself can take money.
func (s Step) Charges() bool { return s == StepUpgrade }

// OperationState is how a conversation ended.
type OperationState string

// The states of a conversation.
const (
	OperationRunning OperationState = "running"
	OperationDone    OperationState = "done"
	OperationFailed  OperationState = "failed"
)

// ProviderKey is the idempotency key of the call. It is made from our own id and
// never from the caller's key, which the provider would trim and share.
func (o Operation) ProviderKey() string {
	return "psr:" + o.ID.Format("op") + ":" + string(o.Step) + ":" + strconv.Itoa(o.Attempt)
}

// AtStep gives the op at its next step.
func (o Operation) AtStep(step Step) Operation {
	o.Step, o.Attempt, o.AttemptedAt = step, 1, 0
	return o
}

// NextAttempt gives the op with a new attempt at its step, under a new key.
func (o Operation) NextAttempt() Operation {
	o.Attempt++
	o.AttemptedAt = 0
	return o
}

// Attempted gives the op as it has to be stored before its step is sent.
func (o Operation) Attempted(now int64) Operation {
	if o.AttemptedAt == 0 {
		o.AttemptedAt = now
	}
	return o
}

// CheckFingerprint refuses a request that carries the op's idempotency key and says
// something else.
func (o Operation) CheckFingerprint(request Fingerprint) error {
	if request != o.Fingerprint {
		return fault.New(fault.IdempotencyConflict)
	}
	return nil
}
