package httpd

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"time"

	"purser/fault"
)

const (
	// lookupTimeout is the deadline of one lookup. A client that disconnects must not
	// cancel it: pgx closes the connection of a cancelled query.
	lookupTimeout = 5 * time.Second
	// The rate at which one unknown secret is looked up; beyond it, it is unknown without a
	// lookup. The burst is above one so that a secret tried just before it was stored works
	// at once.
	unknownInterval = time.Second
	unknownBurst    = 5
	// A network that sends more unknown secrets than this uses the slow queue.
	guessInterval = 50 * time.Millisecond
	guessBurst    = 100
	// Concurrent and queued lookups, of the usual queue and of the slow queue for
	// networks that send unknown secrets. One network gets half of a queue.
	lookupsAtOnce, lookupsWaiting = 4, 1024
	guessesAtOnce, guessesWaiting = 1, 64
)

// Secret is what anyone can make up: an API key, the cookie of a session, or a link.
type Secret struct {
	Kind string
	Hash [sha256.Size]byte
}

// Lookups bounds the database cost of secrets that a node has not found before. The API and
// the dashboard share one.
type Lookups struct {
	unknown *Buckets[Secret]
	guesses *Buckets[netip.Prefix]
	usual   *lookupQueue
	slow    *lookupQueue
}

// NewLookups requires a monotonic clock.
func NewLookups(now func() time.Duration) *Lookups {
	return &Lookups{
		unknown: NewBuckets[Secret](unknownInterval, unknownBurst, now),
		guesses: NewBuckets[netip.Prefix](guessInterval, guessBurst, now),
		usual:   newLookupQueue(lookupsAtOnce, lookupsWaiting),
		slow:    newLookupQueue(guessesAtOnce, guessesWaiting),
	}
}

// Find reports whether a secret is known. It looks it up when it is the network's turn, or
// refuses when too many wait.
func (l *Lookups) Find(ctx context.Context, secret Secret, network netip.Prefix, find func(context.Context) (known bool, err error)) (known bool, err error) {
	if l.unknown.IsEmpty(secret) {
		return false, nil
	}
	queue := l.usual
	if l.guesses.IsEmpty(network) {
		queue = l.slow
	}
	err = queue.run(ctx, network, func(ctx context.Context) error {
		known, err = find(ctx)
		return err
	})
	if err == nil && !known {
		l.unknown.Take(secret, Claim{Tokens: 1})
		l.guesses.Take(network, Claim{Tokens: 1})
	}
	return known, err
}

// Read runs another read that anyone can cause. It waits in the usual queue: those who guess in
// the same network don't keep others from signing in.
func (l *Lookups) Read(ctx context.Context, network netip.Prefix, read func(context.Context) error) error {
	return l.usual.run(ctx, network, read)
}

// lookupQueue bounds concurrent and queued lookups and refuses the rest.
type lookupQueue struct {
	running  chan struct{}
	admitted *InFlight[netip.Prefix] // running or waiting
}

func newLookupQueue(atOnce, waiting int) *lookupQueue {
	return &lookupQueue{running: make(chan struct{}, atOnce), admitted: NewInFlight[netip.Prefix](int64(atOnce + waiting))}
}

// run runs a read when it is the network's turn, or refuses it.
func (q *lookupQueue) run(ctx context.Context, network netip.Prefix, read func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	leave, err := q.enter(ctx, network)
	if err != nil {
		return err
	}
	defer leave()
	return read(ctx)
}

func (q *lookupQueue) enter(ctx context.Context, network netip.Prefix) (leave func(), err error) {
	if err := q.admitted.Enter(network, 1); err != nil {
		return nil, err
	}
	select {
	case q.running <- struct{}{}:
		return func() {
			<-q.running
			q.admitted.Leave(network, 1)
		}, nil
	case <-ctx.Done():
		q.admitted.Leave(network, 1)
		return nil, fault.New(fault.Overloaded)
	}
}
