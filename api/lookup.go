package api

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"purser/fault"
	"purser/keys"
	"purser/store/people"
)

const (
	// lookupTimeout is the deadline of one lookup. A client that disconnects must not
	// cancel it: pgx closes the connection of a cancelled query.
	lookupTimeout = 5 * time.Second
	// The rate at which one unknown key is looked up; beyond it, it is refused from
	// memory. The burst is above one so that a key tried just before it was stored works
	// at once.
	unknownInterval = time.Second
	unknownBurst    = 5
	// A network that sends more unknown keys than this uses the slow queue.
	guessInterval = 50 * time.Millisecond
	guessBurst    = 100
	// Concurrent and queued lookups, of the usual queue and of the slow queue for
	// networks that send unknown keys.
	lookupsAtOnce, lookupsWaiting = 4, 1024
	guessesAtOnce, guessesWaiting = 1, 64
)

// keyLookup resolves keys that are not in the node's directory, at a bounded database
// cost.
type keyLookup struct {
	find    func(context.Context, keys.Hash) (people.KeyAddress, error)
	unknown *buckets[keys.Hash]
	guesses *buckets[netip.Prefix]
	usual   *lookupQueue
	slow    *lookupQueue
}

func newKeyLookup(find func(context.Context, keys.Hash) (people.KeyAddress, error), now func() time.Duration) *keyLookup {
	return &keyLookup{
		find:    find,
		unknown: newBuckets[keys.Hash](unknownInterval, unknownBurst, now),
		guesses: newBuckets[netip.Prefix](guessInterval, guessBurst, now),
		usual:   newLookupQueue(lookupsAtOnce, lookupsWaiting),
		slow:    newLookupQueue(guessesAtOnce, guessesWaiting),
	}
}

func (l *keyLookup) resolve(ctx context.Context, hash keys.Hash, network netip.Prefix) (people.KeyAddress, error) {
	if l.unknown.isEmpty(hash) {
		return people.KeyAddress{}, fault.New(fault.InvalidAPIKey)
	}
	queue := l.usual
	if l.guesses.isEmpty(network) {
		queue = l.slow
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	if err := queue.enter(ctx); err != nil {
		return people.KeyAddress{}, err
	}
	defer queue.leave()
	address, err := l.find(ctx, hash)
	if fault.Is(err, fault.InvalidAPIKey) {
		l.unknown.take(hash, claim{tokens: 1})
		l.guesses.take(network, claim{tokens: 1})
	}
	return address, err
}

// lookupQueue bounds concurrent and queued lookups and refuses the rest.
type lookupQueue struct {
	running  chan struct{}
	admitted atomic.Int64 // running or waiting
	limit    int64
}

func newLookupQueue(atOnce, waiting int) *lookupQueue {
	return &lookupQueue{running: make(chan struct{}, atOnce), limit: int64(atOnce + waiting)}
}

func (l *lookupQueue) enter(ctx context.Context) error {
	if l.admitted.Add(1) > l.limit {
		l.admitted.Add(-1)
		return fault.New(fault.Overloaded)
	}
	select {
	case l.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.admitted.Add(-1)
		return fault.New(fault.Overloaded)
	}
}

func (l *lookupQueue) leave() {
	<-l.running
	l.admitted.Add(-1)
}
