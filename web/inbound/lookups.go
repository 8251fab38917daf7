package inbound

import (
	"context"
	"net/netip"
	"sync"

	"purser/fault"
)

const (
	// lookupsAtOnce bounds lookups: reads before a webhook's signature is verified. Anyone
	// can cause them, and other requests need the database connections.
	lookupsAtOnce = 4
	// lookupsOfNetwork is how many of one network run at once, or wait to run before
	// those of others.
	lookupsOfNetwork = 2
	// lookupsPresent is how many of one network may run or wait; more are refused.
	lookupsPresent = 128
)

// lookups bounds concurrent lookups, in total and per network.
// Networks take turns: one that floods delays only itself.
type lookups struct {
	running chan struct{}

	mu       sync.Mutex
	networks map[netip.Prefix]*networkLookups
}

type networkLookups struct {
	running  chan struct{}
	admitted int // running or waiting
}

func newLookups() *lookups {
	return &lookups{running: make(chan struct{}, lookupsAtOnce), networks: make(map[netip.Prefix]*networkLookups)}
}

// enter waits for a slot until the context ends.
func (l *lookups) enter(ctx context.Context, network netip.Prefix) (leave func(), err error) {
	own := l.join(network)
	if own == nil {
		return nil, fault.New(fault.Overloaded)
	}
	for i, places := range []chan struct{}{own.running, l.running} {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own.running
			}
			l.leave(network, own)
			return nil, fault.New(fault.Overloaded)
		}
	}
	return func() {
		<-l.running
		<-own.running
		l.leave(network, own)
	}, nil
}

// join counts a lookup of the network, or returns nil if it has too many.
func (l *lookups) join(network netip.Prefix) *networkLookups {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.networks[network]
	if own == nil {
		own = &networkLookups{running: make(chan struct{}, lookupsOfNetwork)}
		l.networks[network] = own
	}
	if own.admitted == lookupsPresent {
		return nil
	}
	own.admitted++
	return own
}

func (l *lookups) leave(network netip.Prefix, own *networkLookups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.admitted--; own.admitted == 0 {
		delete(l.networks, network)
	}
}
