package jobs

import (
	"errors"
	"time"
)

// Retry delays double from minRetryDelay to maxRetryDelay.
const (
	minRetryDelay = 2 * time.Second
	maxRetryDelay = time.Hour
)

// Failure is an error that says how its job goes on. Any other error is retried after a
// delay that doubles with each consecutive failure.
type Failure struct {
	Err        error
	Message    string        // for people; the error's text when empty
	RetryAfter time.Duration // the doubling delay when zero
	// Stop keeps the job from being retried until it is requested again or a person
	// retries it.
	Stop bool
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

// failureOf completes what an error says about its job.
func failureOf(err error, tries int) Failure {
	complete := Failure{Err: err}
	if given, ok := errors.AsType[*Failure](err); ok {
		complete = *given
	}
	if complete.Message == "" {
		complete.Message = err.Error()
	}
	if complete.RetryAfter == 0 {
		complete.RetryAfter = RetryDelay(tries)
	}
	return complete
}

// RetryDelay is the delay after a failure that follows this many others.
func RetryDelay(tries int) time.Duration {
	return min(minRetryDelay<<min(tries, 20), maxRetryDelay)
}
