package metering

import (
	"slices"

	"purser/fault"
	"purser/ids"
)

// DecideGroup decides usages of one wallet that are recorded together or not at all. It
// returns the decisions, each against the state that the previous ones leave, and the
// index of the first usage that refuses the group, or -1. The state does not change.
//
// A group that was recorded before is answered as duplicates. One of which only some
// event ids are recorded is refused: it is not the group that recorded them.
func DecideGroup(state *State, usages []Usage) (decisions []Decision, refused int) {
	decisions = make([]Decision, len(usages))
	if i := state.partlyRecorded(usages); i >= 0 {
		decisions[i] = Decision{Gate: GateEventID, Verdict: Refused, Code: fault.GroupConflict}
		return decisions, i
	}
	trial := state.trial(usages)
	for i, usage := range usages {
		decisions[i] = Decide(&trial, usage)
		if !decisions[i].Allowed() {
			return decisions, i
		}
		trial.Apply(decisions[i])
	}
	return decisions, -1
}

// partlyRecorded returns the index of the first usage that another transaction has
// recorded, unless it recorded all of them or none; then it returns -1.
func (s *State) partlyRecorded(usages []Usage) int {
	recorded, first := 0, -1
	for i, usage := range usages {
		if event, known := s.Events[usage.EventID]; known && event.TransactionID != usage.TransactionID {
			if recorded == 0 {
				first = i
			}
			recorded++
		}
	}
	if recorded == len(usages) {
		return -1
	}
	return first
}

// trial copies what decides the usages, so that decisions can be applied to it.
func (s *State) trial(usages []Usage) State {
	trial := *s
	trial.Wallet.Balances = slices.Clone(s.Wallet.Balances)
	trial.Events = make(map[string]*Event)
	trial.Billed = make(map[BilledKey]ids.ID)
	trial.Used = make(map[CounterKey]int64)
	for _, usage := range usages {
		if event, known := s.Events[usage.EventID]; known {
			trial.Events[usage.EventID] = event
		}
		keys := s.Keys(usage)
		if transaction, billed := s.Billed[keys.Billed]; billed {
			trial.Billed[keys.Billed] = transaction
		}
		if used, known := s.Used[keys.Counter]; known {
			trial.Used[keys.Counter] = used
		}
	}
	return trial
}
