package store

import (
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
func (u *Engine) TrackBatch(uses []Usage) ([]Outcome, error) {
	requests := make([]*request, len(uses))
	for i := range uses {
		requests[i] = &request{Usage: uses[i]}
		u.prepare(requests[i])
	}
	if !startTogether(u.bulks, u.spread(requests)) {
		return nil, errOverloaded
	}
	outcomes := make([]Outcome, len(requests))
	for i, p := range requests {
		outcomes[i] = u.outcome(p, await(p))
	}
	return outcomes, nil
}

// spread divides requests by the lanes of their wallets. Where two have one event id,
// their order matters across wallets, so the first one's lane gets them all.
func (u *Engine) spread(requests []*request) [][]*request {
	shares := make([][]*request, len(u.bulks))
	if len(u.bulks) == 1 || repeatsEventID(requests) {
		shares[u.laneIndex(len(u.bulks), requests[0])] = requests
		return shares
	}
	place := u.places.Of(requests[0].Scope.AppID) // one for all, though it may change meanwhile
	for _, p := range requests {
		i := u.laneAt(len(u.bulks), place, p.Identity)
		shares[i] = append(shares[i], p)
	}
	return shares
}

func (u *Engine) outcome(p *request, err error) Outcome {
	if err != nil {
		return Outcome{Err: err}
	}
	if p.err != nil {
		return Outcome{Err: p.err}
	}
	if p.decision.Differs {
		u.differing.Add(1)
	}
	u.record(p, false)
	return Outcome{Decision: p.decision}
}

// TrackGroup decides and records requests for one wallet together: all of them are
// recorded, or none. If none is, it returns the error and the index of the first request
// that refuses the group.
func (u *Engine) TrackGroup(uses []Usage) (outcomes []Outcome, refused int, err error) {
	head := &request{Usage: uses[0], group: &group{}}
	u.prepare(head)
	for i := range uses {
		member := &request{Usage: uses[i], group: head.group, deadline: head.deadline}
		head.group.members = append(head.group.members, member)
	}
	if err := u.laneOf(u.bulks, head).tracks.submit(head); err != nil {
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
				u.record(member, false)
			}
			return nil, i, member.decision.Err()
		}
	}
	for _, member := range head.group.members {
		outcomes = append(outcomes, u.outcome(member, nil))
	}
	return outcomes, 0, nil
}

// group is requests for one wallet that are recorded together or not at all. It waits
// in the queue as one request, its head, and runs as its members.
type group struct{ members []*request }

// expandGroups replaces the heads of groups by their members.
func expandGroups(requests []*request) []*request {
	expanded := requests[:0:0]
	for i, p := range requests {
		if p.group == nil {
			if expanded != nil {
				expanded = append(expanded, p)
			}
			continue
		}
		if expanded == nil {
			expanded = append(expanded, requests[:i]...)
		}
		if p.claim() { // else its caller has abandoned it
			expanded = append(expanded, p.group.members...)
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
	point := 0
	for point < half {
		point += len(unitAt(requests, point))
	}
	if point == len(requests) {
		return 0
	}
	return point
}

func resetAll(requests []*request) {
	for _, p := range requests {
		p.reset()
	}
}

// decideGroup decides the members of a group against the state left by earlier
// requests. A refused group leaves no trace in the state.
func (b *appBatch) decideGroup(members []*request, now int64) {
	for _, p := range members {
		if p.resolved { // it failed before a decision, and the group with it
			return
		}
	}
	w := b.wallets[members[0].Identity]
	state := &metering.State{Now: b.appTime(now), Events: b.events}
	if w != nil {
		w.state.Now, w.state.Events = b.appTime(now), b.events
		state = &w.state
	}
	recorded := false
	decisions, refused := metering.DecideGroup(state, usagesOf(members))
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
	for i, p := range members {
		p.decision = decisions[i]
		recorded = recorded || p.decision.New
		if w != nil {
			b.apply(w, p)
			b.raise(w, &p.decision)
		} else {
			state.Apply(p.decision)
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
	for i, p := range members {
		p.decision = decisions[i]
		b.apply(w, p)
		b.raise(w, &p.decision)
	}
	return true
}

func usagesOf(requests []*request) []metering.Usage {
	list := make([]metering.Usage, len(requests))
	for i, p := range requests {
		list[i] = p.Usage.Usage
	}
	return list
}
