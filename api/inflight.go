package api

import (
	"sync"

	"purser/fault"
)

// InFlight bounds what is under way at once, and shares it: each owner may have
// as much as is still free. So one owner gets half of the limit, two a third each,
// and what floods leave free lets every other owner in. Beyond that a request is
// refused before anything was done with it: a longer queue would only make every
// answer late.
type InFlight[K comparable] struct {
	limit int64

	mu     sync.Mutex
	taken  int64
	owners map[K]int64
}

// NewInFlight makes one for so much in all.
func NewInFlight[K comparable](limit int64) *InFlight[K] {
	return &InFlight[K]{limit: limit, owners: make(map[K]int64)}
}

// Enter takes a weight for an owner, until Leave gives it back.
func (f *InFlight[K]) Enter(owner K, weight int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.owners[owner]; own+weight > f.limit-f.taken {
		return fault.New(fault.Overloaded)
	}
	f.taken += weight
	f.owners[owner] += weight
	return nil
}

// Leave gives a weight back.
func (f *InFlight[K]) Leave(owner K, weight int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken -= weight
	if f.owners[owner] -= weight; f.owners[owner] == 0 {
		delete(f.owners, owner)
	}
}
