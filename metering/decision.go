package metering

import "purser/fault"

// Verdict is what becomes of a use.
type Verdict string

// The verdicts. A refused use may be tried again once things have changed; an
// unprocessable one has to be sent differently.
const (
	Accepted      Verdict = "accepted"
	Duplicate     Verdict = "duplicate"
	Deduplicated  Verdict = "deduplicated"
	Refused       Verdict = "refused"
	Unprocessable Verdict = "unprocessable"
)

// Decision is the answer to a use, and what has to be stored when it is new.
type Decision struct {
	Verdict Verdict
	Code    fault.Code // why, when refused or unprocessable
	Gate    Gate       // where it was settled; empty for a use that passed them all

	// New says that there is something to store. It is false for a transaction
	// that an earlier try has already committed, although it was accepted.
	New bool
	// Differs marks a duplicate that says something else than the first use.
	Differs bool

	// Event is the record to store when new, the first one's when duplicate, and
	// otherwise what would have been recorded. Its Charge.Amount is the charge;
	// that of a use refused before it came to a price is zero.
	Event Event
	// Allowance is what the subscription's limit says of the feature, also for a
	// use that takes nothing from it.
	Allowance Allowance
	// Before and After are the balance of the feature's credit.
	Before, After Balance

	// An accepted use fixes the wallet's billing period and the feature's
	// deduplication; these say that it is the first to do so.
	LocksBillingPeriod bool
	LocksDeduplication bool
}

// Allowed reports whether the use may go ahead.
func (d *Decision) Allowed() bool {
	return d.Verdict == Accepted || d.Verdict == Duplicate || d.Verdict == Deduplicated
}

// Err is the fault of a use that may not go ahead, nil otherwise.
func (d *Decision) Err() error {
	if d.Allowed() {
		return nil
	}
	return fault.New(d.Code)
}
