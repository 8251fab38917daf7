package billing

import "time"

const (
	// keyLifetime is how long a repeat under the same key is sent: the provider
	// remembers keys for 24 hours, and an hour is left for clocks and queues.
	keyLifetime = int64(23 * time.Hour / time.Millisecond)

	// chargeWindow is how long after the request the service by itself repeats a
	// call that charges. Nobody is charged hours after they gave up.
	chargeWindow = int64(10 * time.Minute / time.Millisecond)

	// maxAttempts is how many keys a step is tried under without a caller.
	maxAttempts = 10
)

// Observation is what a look at the provider showed of a step that may or may not
// have been taken. The look always comes first.
type Observation struct {
	Outcome Outcome
	// SavedFailure says that the provider has kept a failure as the answer to the
	// key, as it does with its own errors, and would repeat it for a day.
	SavedFailure bool
}

// Outcome is whether the step's aim is reached at the provider.
type Outcome int

// The aim can be reached, not reached, or out of sight.
const (
	OutcomeUnknown Outcome = iota // the look itself failed
	OutcomeNotDone
	OutcomeDone
)

// Initiator is who wants an op to go on.
type Initiator int

// A caller who repeats the request is there to be charged; the background is not.
const (
	Background Initiator = iota
	Caller
)

// Recovery is how to go on with an op that a crash left behind.
type Recovery string

// The ways to go on.
const (
	RecoverDone   Recovery = "done"   // take the step as taken
	RecoverLater  Recovery = "later"  // look again before anything is sent
	RecoverRepeat Recovery = "repeat" // send it under the same key
	RecoverRenew  Recovery = "renew"  // send it under the key of a new attempt
	RecoverClose  Recovery = "close"  // send nothing more, close the op as failed
)

// Recover says how to go on.
func Recover(o Operation, observed Observation, initiator Initiator, now int64) Recovery {
	background := initiator == Background
	switch {
	case observed.Outcome == OutcomeDone:
		return RecoverDone
	case observed.Outcome == OutcomeUnknown:
		return RecoverLater
	case background && o.Step.Charges() && now-o.CreatedAt >= chargeWindow:
		return RecoverClose
	case o.AttemptedAt == 0:
		return RecoverRepeat
	case !observed.SavedFailure && now-o.AttemptedAt < keyLifetime:
		return RecoverRepeat
	case background && o.Attempt >= maxAttempts:
		return RecoverClose
	default:
		return RecoverRenew
	}
}
