package billing

import "time"

const (
	// keyLifetime is how long a call is repeated under the same key: the provider
	// keeps keys for 24 hours, less an hour for clocks and queues.
	keyLifetime = int64(23 * time.Hour / time.Millisecond)

	// chargeWindow is how long after the request a call that charges is repeated
	// without a caller: a customer must not be charged hours after giving up.
	chargeWindow = int64(10 * time.Minute / time.Millisecond)

	// UnsettledTime is how long a call that charges and got no definite answer may still
	// take effect, in milliseconds.
	UnsettledTime = int64(3 * time.Minute / time.Millisecond)

	// maxAttempts is how many keys a step of a caller's request is tried under without
	// the caller. An action has none: it stops or returns a charge, so it is tried until
	// the provider takes or refuses it.
	maxAttempts = 10
)

// Observation is the provider's state of a step that may have been sent. It is always
// read before anything is sent.
type Observation struct {
	Outcome Outcome
	// SavedFailure says that the provider returned a failure as the stored result of the
	// key, which it would repeat for a day.
	SavedFailure bool
}

// Outcome is whether a step has taken effect at the provider.
type Outcome int

// The outcomes of a step.
const (
	OutcomeUnknown Outcome = iota // reading it failed
	OutcomeNotDone
	OutcomeDone
)

// Initiator is what makes an operation run.
type Initiator int

// A caller who retries the request expects to be charged; a background job has no caller.
const (
	Background Initiator = iota
	Caller
)

// Recovery is how to resume an interrupted operation.
type Recovery string

// The ways to go on.
const (
	RecoverDone   Recovery = "done"   // the step is done
	RecoverLater  Recovery = "later"  // read again before anything is sent or it fails
	RecoverRepeat Recovery = "repeat" // send it under the same key
	RecoverRenew  Recovery = "renew"  // send it under the key of a new attempt
	RecoverClose  Recovery = "close"  // send nothing more, fail the operation
)

// Recover decides how to resume an operation.
func Recover(o Operation, observed Observation, initiator Initiator, now int64) Recovery {
	background := initiator == Background
	switch {
	case observed.Outcome == OutcomeDone:
		return RecoverDone
	case observed.Outcome == OutcomeUnknown:
		return RecoverLater
	case background && o.Step.Charges() && now-o.CreatedAt >= chargeWindow:
		if o.AttemptedAt != 0 && now-o.AttemptedAt < UnsettledTime {
			return RecoverLater // a failed one would not hold back another charge
		}
		return RecoverClose
	case o.AttemptedAt == 0:
		return RecoverRepeat
	case !observed.SavedFailure && now-o.AttemptedAt < keyLifetime:
		return RecoverRepeat
	case background && o.Attempt >= maxAttempts && o.Kind != OperationAction:
		return RecoverClose
	default:
		return RecoverRenew
	}
}
