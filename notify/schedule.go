package notify

import (
	"time"
)

// schedule is how long an attempt waits after the one before it. The last delay repeats
// while the endpoint accepts nothing.
var schedule = []time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	// MaxAttempts is after how many attempts a delivery fails at an endpoint that accepts
	// others between them.
	MaxAttempts = 10
	// MaxRetryAfter bounds the delay that a receiver may ask for.
	MaxRetryAfter = 24 * time.Hour
	// PauseAfter is how long an endpoint may fail before it is paused.
	PauseAfter = 5 * 24 * time.Hour
	// MaxConcurrent is how many deliveries are sent to an endpoint at once.
	MaxConcurrent = 8
	// spreadPermille is by how much a delay is longer or shorter at most, so that
	// deliveries that failed together do not return together.
	spreadPermille = 200
)

// Delay is how long the next attempt waits after this many. random is any number; it
// chooses within the spread.
func Delay(attempts int, random uint64) time.Duration {
	delay := schedule[min(max(attempts, 0), len(schedule)-1)]
	spread := int64(random%(2*spreadPermille+1)) - spreadPermille
	return delay + delay/1000*time.Duration(spread)
}

type DeliveryStatus string

// The states of a delivery.
const (
	Pending   DeliveryStatus = "pending" // to be sent, or sent again
	Delivered DeliveryStatus = "delivered"
	Failed    DeliveryStatus = "failed" // given up: a replay sends it again
)

type EndpointStatus string

// The states of an endpoint. Deliveries of one that is not enabled stay pending.
const (
	Enabled  EndpointStatus = "enabled"
	Paused   EndpointStatus = "paused"
	Disabled EndpointStatus = "disabled" // it answered 410 Gone
)

// PauseReason is why an endpoint is not enabled.
type PauseReason string

const (
	PauseRequested PauseReason = "requested" // by a person or an API key
	PauseFailing   PauseReason = "failing"   // no success in PauseAfter
	PauseGone      PauseReason = "gone"      // 410
)

// Result is what came of an attempt.
type Result struct {
	Status     int           // of the answer; zero without one
	RetryAfter time.Duration // that the receiver asked for; zero for none
}

// Accepted reports whether the receiver has the notification.
func (r Result) Accepted() bool { return r.Status >= 200 && r.Status < 300 }

// Progress is a delivery and its endpoint before the result of an attempt. Times go by
// the application's clock; zero is never.
type Progress struct {
	Attempts     int   // so far, with this one
	Refusals     int   // see Verdict
	TriedBefore  int64 // when the attempt before this one ended
	FailingSince int64 // of the endpoint
	SucceededAt  int64 // of the endpoint
	// Idle is for how long no attempt at the endpoint was made although one was due, such as
	// while the server was down.
	Idle int64
}

// Verdict is what follows from the result of an attempt.
type Verdict struct {
	Status DeliveryStatus
	DueAt  int64 // the next attempt of a pending delivery
	// Refusals are the attempts that failed although the endpoint had accepted another
	// delivery since the attempt before.
	Refusals     int
	FailingSince int64 // of the endpoint
	SucceededAt  int64 // of the endpoint
	// Pause is the endpoint's new state, and why; empty when it does not change.
	Pause  EndpointStatus
	Reason PauseReason
}

// Judge decides what follows from the result of an attempt. A delivery fails only by
// attempts between which its endpoint accepted others. Of those in an outage only the first
// counts, also after it has ended: the endpoint may have accepted another just before. Time
// in which no attempt was made does not count as failing.
func Judge(p Progress, r Result, now int64, random uint64) Verdict {
	if r.Accepted() {
		return Verdict{Status: Delivered, Refusals: p.Refusals, SucceededAt: now}
	}
	v := Verdict{Status: Pending, Refusals: p.Refusals, FailingSince: p.FailingSince, SucceededAt: p.SucceededAt}
	if p.Attempts > 1 && p.SucceededAt > 0 && p.SucceededAt >= p.TriedBefore {
		v.Refusals++
	}
	if v.FailingSince == 0 {
		v.FailingSince = now
	}
	v.FailingSince = min(now, v.FailingSince+p.Idle)
	wait := max(Delay(p.Attempts, random), min(r.RetryAfter, MaxRetryAfter))
	v.DueAt = now + wait.Milliseconds()
	switch {
	case r.Status == 410:
		v.Pause, v.Reason = Disabled, PauseGone
	case now-v.FailingSince >= PauseAfter.Milliseconds():
		v.Pause, v.Reason = Paused, PauseFailing
	case v.Refusals >= MaxAttempts-1: // the first attempt has none before it
		v.Status, v.DueAt = Failed, 0
	}
	return v
}

// Concurrent is how many deliveries are sent at once: one at a time until an endpoint
// that failed accepts one.
func Concurrent(failingSince int64) int {
	if failingSince != 0 {
		return 1
	}
	return MaxConcurrent
}
