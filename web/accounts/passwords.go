package accounts

import (
	"context"
	"crypto/rand"

	"purser/fault"
	"purser/tenancy/credential"
)

// A check takes 46 MiB and a core for tens of milliseconds, so few run at once and some
// wait. The rest get a 429 before any work. Known devices and sessions have their own
// queue, which other clients cannot fill.
const (
	checkingAtOnce  = 2
	checkingInQueue = 32
	knownInQueue    = 16
)

// passwords hashes and checks passwords at a bounded cost.
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

// enter waits for a slot, or refuses if too many wait.
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

func (p *passwords) hash(ctx context.Context, password string, known bool) (string, error) {
	leave, err := p.enter(ctx, known)
	if err != nil {
		return "", err
	}
	defer leave()
	return credential.HashPassword(password, rand.Reader)
}
