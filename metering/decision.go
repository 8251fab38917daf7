package metering

import "purser/fault"

type Verdict string

// The verdicts. Refused usage may succeed later with another state; unprocessable usage
// has to be sent differently.
const (
	Accepted      Verdict = "accepted"
	Duplicate     Verdict = "duplicate"
	Deduplicated  Verdict = "deduplicated"
	Refused       Verdict = "refused"
	Unprocessable Verdict = "unprocessable"
)

// Decision is the decision about usage, and what has to be stored when it is new.
type Decision struct {
	Verdict Verdict
	Code    fault.Code // why, when refused or unprocessable
	Gate    Gate       // that settled it; empty for usage that passed all gates

	// New says that there is something to store. It is false for an accepted
	// transaction that an earlier attempt has already committed.
	New bool
	// Differs marks a duplicate event id with other fields than the first event.
	Differs bool

	// Event is the record to store when new, the first one's when duplicate, and
	// otherwise what would have been recorded. Its Charge.Amount is the charge;
	// for usage refused before the price gate it is zero.
	Event Event
	// Allowance is the subscription's limit of the feature, also for usage that takes
	// nothing from it.
	Allowance Allowance
	// Before and After are the balance of the feature's credit.
	Before, After Balance

	// The first accepted event locks the feature's deduplication; this is set for that
	// event. The wallet's billing period is locked once it is charged.
	LocksDeduplication bool
}

// Allowed reports whether the usage is allowed.
func (d *Decision) Allowed() bool {
	return d.Verdict == Accepted || d.Verdict == Duplicate || d.Verdict == Deduplicated
}

// Err is the fault of usage that is not allowed, nil otherwise.
func (d *Decision) Err() error {
	if d.Allowed() {
		return nil
	}
	return fault.New(d.Code)
}
