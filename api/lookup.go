package api

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"purser/fault"
	"purser/keys"
	"purser/store"
)

const (
	// lookupTimeout is a lookup's own: a caller that hangs up must not cancel it,
	// because pgx closes the connection of a cancelled query.
	lookupTimeout = 5 * time.Second
	// An unknown key is looked up at this rate; beyond it, it is refused from memory.
	// More than once, so that a key that was tried before it was stored works at once.
	unknownInterval = time.Second
	unknownBurst    = 5
	// A network that sends more unknown keys than this waits in a queue of its own.
	guessInterval = 50 * time.Millisecond
	guessBurst    = 100
	// Lookups at once and lookups waiting, in the queue of networks that send unknown
	// keys and in the queue of all others.
	lookupsAtOnce, lookupsWaiting = 4, 1024
	guessesAtOnce, guessesWaiting = 1, 64
)

// keyLookup finds the application of keys that a node does not know yet, at a
// bounded cost to the database.
type keyLookup struct {
	find    func(context.Context, keys.Hash) (store.KeyAddress, error)
	unknown *buckets[keys.Hash]
	guesses *buckets[netip.Prefix]
	usual   *lookupQueue
	slow    *lookupQueue
}

func newKeyLookup(find func(context.Context, keys.Hash) (store.KeyAddress, error), now func() time.Duration) *keyLookup {
	return &keyLookup{
		find:    find,
		unknown: newBuckets[keys.Hash](unknownInterval, unknownBurst, now),
		guesses: newBuckets[netip.Prefix](guessInterval, guessBurst, now),
		usual:   newLookupQueue(lookupsAtOnce, lookupsWaiting),
		slow:    newLookupQueue(guessesAtOnce, guessesWaiting),
	}
}

func (l *keyLookup) address(ctx context.Context, hash keys.Hash, network netip.Prefix) (store.KeyAddress, error) {
	if l.unknown.isEmpty(hash) {
		return store.KeyAddress{}, fault.New(fault.InvalidAPIKey)
	}
	queue := l.usual
	if l.guesses.isEmpty(network) {
		queue = l.slow
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	if err := queue.enter(ctx); err != nil {
		return store.KeyAddress{}, err
	}
	defer queue.leave()
	address, err := l.find(ctx, hash)
	if fault.Is(err, fault.InvalidAPIKey) {
		l.unknown.take(hash)
		l.guesses.take(network)
	}
	return address, err
}

// lookupQueue lets some lookups run and some wait, and refuses the others.
type lookupQueue struct {
	running chan struct{}
	present atomic.Int64 // running or waiting
	limit   int64
}

func newLookupQueue(atOnce, waiting int) *lookupQueue {
	return &lookupQueue{running: make(chan struct{}, atOnce), limit: int64(atOnce + waiting)}
}

func (l *lookupQueue) enter(ctx context.Context) error {
	if l.present.Add(1) > l.limit {
		l.present.Add(-1)
		return fault.New(fault.Overloaded)
	}
	select {
	case l.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.present.Add(-1)
		return fault.New(fault.Overloaded)
	}
}

func (l *lookupQueue) leave() {
	<-l.running
	l.present.Add(-1)
}
