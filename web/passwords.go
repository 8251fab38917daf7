package web

import (
	"context"
	"crypto/rand"

	"purser/fault"
	"purser/tenancy/credential"
)

// A check takes 46 MiB and a core for tens of milliseconds, so only some run at a
// time and some wait. The others are refused with 429 before anything was done. Known
// devices and sessions wait in a queue that strangers cannot fill.
const (
	checkingAtOnce  = 2
	checkingInQueue = 32
	knownInQueue    = 16
)

// passwords hashes and checks, at a bounded cost.
type passwords struct {
	running chan struct{}
	queue   chan struct{}
	known   chan struct{} // the queue of known devices
}

func newPasswords() *passwords {
	return &passwords{
		running: make(chan struct{}, checkingAtOnce),
		queue:   make(chan struct{}, checkingAtOnce+checkingInQueue), known: make(chan struct{}, knownInQueue),
	}
}

// enter waits for a turn, or refuses when too many wait already.
func (p *passwords) enter(ctx context.Context, known bool) (leave func(), err error) {
	queue := p.queue
	if known {
		queue = p.known
	}
	select {
	case queue <- struct{}{}:
	default:
		return nil, tooManyChecks()
	}
	select {
	case p.running <- struct{}{}:
		return func() { <-p.running; <-queue }, nil
	case <-ctx.Done():
		<-queue
		return nil, tooManyChecks()
	}
}

func tooManyChecks() error {
	return fault.Newf(fault.Overloaded, "Too many sign-in attempts. Try again in a few seconds.")
}

// hash makes what is kept of a password.
func (p *passwords) hash(ctx context.Context, password string, known bool) (string, error) {
	leave, err := p.enter(ctx, known)
	if err != nil {
		return "", err
	}
	defer leave()
	return credential.HashPassword(password, rand.Reader)
}
