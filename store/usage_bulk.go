package store

import (
	"slices"

	"purser/fault"
	"purser/metering"
)

// Outcome is the result of one request of a batch: a committed decision, or why there
// is none.
type Outcome struct {
	metering.Decision
	Err error
}

// TrackBatch decides and records requests of one application, each on its own, as Track
// would one after the other: those of one wallet in their order. It returns an error
// before anything is done when the queue has no room for all of them.
func (e *Engine) TrackBatch(events []Usage) ([]Outcome, error) {
	requests := make([]*request, len(events))
	for i := range events {
		requests[i] = &request{Usage: events[i]}
		e.prepare(requests[i])
	}
	if !enqueueTogether(e.bulks, e.spread(requests)) {
		return nil, errOverloaded
	}
	outcomes := make([]Outcome, len(requests))
	for i, r := range requests {
		outcomes[i] = e.outcome(r, await(r))
	}
	return outcomes, nil
}

// spread divides requests by the lanes of their wallets. Where two have one event id,
// their order matters across wallets, so the first one's lane gets them all.
func (e *Engine) spread(requests []*request) [][]*request {
	shares := make([][]*request, len(e.bulks))
	if len(e.bulks) == 1 || repeatsEventID(requests) {
		shares[e.laneIndex(len(e.bulks), requests[0])] = requests
		return shares
	}
	place := e.places.Of(requests[0].Scope.AppID) // one for all, though it may change meanwhile
	for _, r := range requests {
		i := e.laneAt(len(e.bulks), place, r.Identity)
		shares[i] = append(shares[i], r)
	}
	return shares
}

func (e *Engine) outcome(r *request, err error) Outcome {
	if err != nil {
		return Outcome{Err: err}
	}
	if r.err != nil {
		return Outcome{Err: r.err}
	}
	if r.decision.Differs {
		e.differing.Add(1)
	}
	e.record(r, false)
	return Outcome{Decision: r.decision}
}

// TrackGroup decides and records requests for one wallet together: all of them are
// recorded, or none. If none is, it returns the error and the index of the first request
// that refuses the group.
func (e *Engine) TrackGroup(events []Usage) (outcomes []Outcome, refused int, err error) {
	head := &request{Usage: events[0], group: &group{}}
	e.prepare(head)
	for i := range events {
		member := &request{Usage: events[i], group: head.group, deadline: head.deadline}
		head.group.members = append(head.group.members, member)
	}
	if err := e.laneOf(e.bulks, head).tracks.submit(head); err != nil {
		return nil, 0, err
	}
	if head.err != nil {
		return nil, 0, head.err
	}
	for i, member := range head.group.members {
		if member.err != nil {
			return nil, i, member.err
		}
		if v := member.decision.Verdict; v == metering.Refused || v == metering.Unprocessable {
			if member.decision.Code != fault.GroupConflict { // a mistake of the caller, and no denial
				e.record(member, false)
			}
			return nil, i, member.decision.Err()
		}
	}
	for _, member := range head.group.members {
		outcomes = append(outcomes, e.outcome(member, nil))
	}
	return outcomes, 0, nil
}

// group is requests for one wallet that are recorded together or not at all. It waits
// in the queue as one request, its head, and runs as its members.
type group struct{ members []*request }

// expandGroups replaces the heads of groups by their members.
func expandGroups(requests []*request) []*request {
	expanded := requests[:0:0]
	for i, r := range requests {
		if r.group == nil {
			if expanded != nil {
				expanded = append(expanded, r)
			}
			continue
		}
		if expanded == nil {
			expanded = append(expanded, requests[:i]...)
		}
		if r.claim() { // else its caller has abandoned it
			expanded = append(expanded, r.group.members...)
		}
	}
	if expanded == nil {
		return requests
	}
	return expanded
}

// unitAt returns what is decided together with the request at an index: the request
// alone, or all members of its group.
func unitAt(requests []*request, i int) []*request {
	end := i + 1
	if g := requests[i].group; g != nil {
		for end < len(requests) && requests[end].group == g {
			end++
		}
	}
	return requests[i:end]
}

// splitPoint is where a failing batch is halved, never inside a group. It is 0 for a
// batch that cannot be divided.
func splitPoint(requests []*request) int {
	half := len(requests) / 2
	before, point := 0, 0
	for point < half {
		before, point = point, point+len(unitAt(requests, point))
	}
	if point == len(requests) {
		return before
	}
	return point
}

func resetAll(requests []*request) {
	for _, r := range requests {
		r.reset()
	}
}

// decideGroup decides the members of a group against the state left by earlier
// requests. A refused group leaves no trace in the state.
func (b *appBatch) decideGroup(members []*request, now int64) {
	// One that failed before a decision refuses the group, unless one before it does.
	decided := members
	failed := slices.IndexFunc(members, func(r *request) bool { return r.resolved })
	if failed >= 0 {
		decided = members[:failed]
	}
	w := b.wallets[members[0].Identity]
	state := &metering.State{Now: b.appTime(now), Events: b.events}
	if w != nil {
		w.state.Now, w.state.Events = b.appTime(now), b.events
		state = &w.state
	}
	recorded := false
	decisions, refused := metering.DecideGroup(state, usagesOf(decided))
	if refused >= 0 {
		d := decisions[refused]
		members[refused].decision = d
		if w != nil {
			// The members before it were not charged, so the balance is still the wallet's.
			d.After = w.state.Wallet.Balance(d.After.CreditID)
			b.raise(w, &d)
		}
		return
	}
	if failed >= 0 {
		return
	}
	for i, r := range members {
		r.decision = decisions[i]
		recorded = recorded || r.decision.New
		if w != nil {
			b.apply(w, r)
			b.raise(w, &r.decision)
		} else {
			state.Apply(r.decision)
		}
	}
	if w == nil && recorded {
		b.events, b.missingWallets = state.Events, append(b.missingWallets, members[0].Identity)
	}
}

// acceptGroup applies a group if cached state accepts every member as new.
func (b *appBatch) acceptGroup(w *walletState, members []*request) bool {
	decisions, refused := metering.DecideGroup(&w.state, usagesOf(members))
	if refused >= 0 {
		return false
	}
	for i := range decisions {
		if d := &decisions[i]; d.Verdict != metering.Accepted || !d.New || b.needsMarks(w, d) {
			return false
		}
	}
	for i, r := range members {
		r.decision = decisions[i]
		b.apply(w, r)
		b.raise(w, &r.decision)
	}
	return true
}

func usagesOf(requests []*request) []metering.Usage {
	list := make([]metering.Usage, len(requests))
	for i, r := range requests {
		list[i] = r.Usage.Usage
	}
	return list
}
