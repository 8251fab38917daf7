package api

import (
	"sync"

	"purser/fault"
)

// inFlight bounds concurrent work and shares it among owners: each may hold as much as
// is still free. One owner gets half of the limit, two get a third each, and the rest
// stays free for others. Beyond that a request is refused before any work: a longer
// queue would only delay every response.
type inFlight[K comparable] struct {
	limit int64

	mu     sync.Mutex
	used   int64
	owners map[K]int64
}

// newInFlight returns one with a limit for all owners together.
func newInFlight[K comparable](limit int64) *inFlight[K] {
	return &inFlight[K]{limit: limit, owners: make(map[K]int64)}
}

// enter acquires a weight for an owner; leave releases it.
func (f *inFlight[K]) enter(owner K, weight int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.owners[owner]; own+weight > f.limit-f.used {
		return fault.New(fault.Overloaded)
	}
	f.used += weight
	f.owners[owner] += weight
	return nil
}

// leave releases a weight.
func (f *inFlight[K]) leave(owner K, weight int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= weight
	if f.owners[owner] -= weight; f.owners[owner] == 0 {
		delete(f.owners, owner)
	}
}
