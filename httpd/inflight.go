package httpd

import (
	"sync"

	"purser/fault"
)

// InFlight bounds concurrent work and shares it among owners: each may hold as much as
// is still free. One owner gets half of the limit, two get a third each, and the rest
// stays free for others. Beyond that a request is refused before any work: a longer
// queue would only delay every response.
type InFlight[K comparable] struct {
	limit int64
	// groupOf is the group of an owner; nil if there are none. A group may hold twice as
	// much as is still free, so that many owners in one group leave a third to others.
	groupOf func(K) K

	mu     sync.Mutex
	used   int64
	owners map[K]int64 // and groups
}

// NewInFlight returns one with a limit for all owners together.
func NewInFlight[K comparable](limit int64) *InFlight[K] { return NewGroupsInFlight[K](limit, nil) }

// NewGroupsInFlight returns one whose owners are in groups. No group is equal to an owner.
func NewGroupsInFlight[K comparable](limit int64, groupOf func(owner K) K) *InFlight[K] {
	return &InFlight[K]{limit: limit, groupOf: groupOf, owners: make(map[K]int64)}
}

// Enter acquires a weight for an owner; Leave releases it.
func (f *InFlight[K]) Enter(owner K, weight int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	free := f.limit - f.used
	if f.owners[owner]+weight > free {
		return fault.New(fault.Overloaded)
	}
	if f.groupOf != nil {
		group := f.groupOf(owner)
		if f.owners[group]+2*weight > 2*free {
			return fault.New(fault.Overloaded)
		}
		f.owners[group] += weight
	}
	f.used += weight
	f.owners[owner] += weight
	return nil
}

// smallReply fits into the buffers of a connection: it takes no memory while its client
// reads slowly.
const smallReply = 16 << 10

// EnterReply acquires the size of a reply until sent is called. Small ones are not counted.
func (f *InFlight[K]) EnterReply(owner K, size int64) (sent func(), err error) {
	if size <= smallReply {
		return func() {}, nil
	}
	return func() { f.Leave(owner, size) }, f.Enter(owner, size)
}

// Leave releases a weight.
func (f *InFlight[K]) Leave(owner K, weight int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= weight
	f.release(owner, weight)
	if f.groupOf != nil {
		f.release(f.groupOf(owner), weight)
	}
}

func (f *InFlight[K]) release(owner K, weight int64) {
	if f.owners[owner] -= weight; f.owners[owner] == 0 {
		delete(f.owners, owner)
	}
}
