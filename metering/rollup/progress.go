package rollup

import "time"

// Margin is how long before its insertion an event may have got its id and its time: a
// request is retried for 10 seconds, its decision may be 10 seconds old when it is
// inserted, and a statement runs some seconds before it is given a transaction id.
const Margin = 30 * time.Second

// Horizon is what the database says about running transactions, in one statement.
type Horizon struct {
	Now         int64 // the database's clock, before the transactions were looked at
	Oldest      int64 // the oldest transaction id that is still running
	Next        int64 // a transaction id behind all that were given out
	ClockOffset int64 // of the application's clock
}

// Progress is up to where an application's events are added up. Events are compared by
// the time in their id, which is that of the database's clock; they are added to the hour
// of the application's clock, which is ahead of it or equal.
//
// An id is made before its transaction commits, so a boundary is proposed first: a moment
// in the past, with a transaction id that was new. Whatever is inserted later has
// a later id. Once every transaction before that id has ended, no event below the
// boundary can appear any more.
type Progress struct {
	Added int64 // events with an id before this time are in the sums
	Until int64 // every event before this time, by the application's clock, is in the sums

	// Proposed is the next boundary; Transaction is 0 for none.
	Proposed, ProposedUntil, Transaction int64
	ProposedAt                           int64 // when, by the database's clock
	ClockOffset                          int64 // when it was proposed
}

// Confirmed reports whether no transaction can insert an event below the proposed
// boundary any more.
func (p Progress) Confirmed(h Horizon) bool {
	return p.Transaction != 0 && p.Transaction <= h.Oldest
}

// Propose sets the next boundary, unless one waits to be confirmed. Proposals are a margin
// apart: the clock of an application may be advanced between two of them, and events that
// were decided before are inserted within the margin. So the time up to which sums are
// final goes by the offset of the earlier proposal.
func (p Progress) Propose(h Horizon, margin time.Duration) Progress {
	restored := p.Transaction > h.Next // the rows come from another database
	if p.Transaction != 0 && !restored || p.ProposedAt != 0 && h.Now < p.ProposedAt+margin.Milliseconds() {
		return p
	}
	if boundary := h.Now - margin.Milliseconds(); boundary > p.Added {
		// A third of the margin is for the clocks of nodes, which differ a little.
		until := boundary + min(h.ClockOffset, p.ClockOffset) - margin.Milliseconds()/3
		p.Proposed, p.ProposedUntil = boundary, max(p.Until, until)
		p.Transaction, p.ProposedAt, p.ClockOffset = h.Next, h.Now, h.ClockOffset
	}
	return p
}

// Advance moves the boundary after everything below it was added. The time up to which
// sums are final moves only at the end of a proposal.
func (p Progress) Advance(added int64) Progress {
	p.Added = added
	if added == p.Proposed {
		p.Until, p.Transaction = p.ProposedUntil, 0
	}
	return p
}
