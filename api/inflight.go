package api

import (
	"sync"

	"purser/fault"
)

// inFlight bounds what is under way at once, and shares it: each owner may have
// as much as is still free. So one owner gets half of the limit, two a third each,
// and what floods leave free lets every other owner in. Beyond that a request is
// refused before anything was done with it: a longer queue would only make every
// answer late.
type inFlight[K comparable] struct {
	limit int64

	mu     sync.Mutex
	taken  int64
	owners map[K]int64
}

// newInFlight makes one with a limit for all together.
func newInFlight[K comparable](limit int64) *inFlight[K] {
	return &inFlight[K]{limit: limit, owners: make(map[K]int64)}
}

// enter takes a weight for an owner, until leave gives it back.
func (f *inFlight[K]) enter(owner K, weight int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.owners[owner]; own+weight > f.limit-f.taken {
		return fault.New(fault.Overloaded)
	}
	f.taken += weight
	f.owners[owner] += weight
	return nil
}

// leave gives a weight back.
func (f *inFlight[K]) leave(owner K, weight int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken -= weight
	if f.owners[owner] -= weight; f.owners[owner] == 0 {
		delete(f.owners, owner)
	}
}
