package accounts

import (
	"context"
	"crypto/rand"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
	"purser/tenancy/credential"
)

// A check takes 46 MiB and a core for tens of milliseconds, so few run at once and some
// wait. The rest get a 429 before any work. Known devices and sessions have their own
// queue, of which a user gets half at most, so one account cannot fill it.
const (
	checkingAtOnce  = 2
	checkingInQueue = 32
	knownInQueue    = 16
)

// passwords hashes and checks passwords at a bounded cost.
type passwords struct {
	running chan struct{}
	queue   chan struct{}
	known   *httpd.InFlight[ids.ID] // the queue of known devices, by user
}

func newPasswords() *passwords {
	return &passwords{
		running: make(chan struct{}, checkingAtOnce),
		queue:   make(chan struct{}, checkingAtOnce+checkingInQueue), known: httpd.NewInFlight[ids.ID](knownInQueue),
	}
}

// enter waits for a slot, or refuses if too many wait. Known is the user of a known device
// or a session; zero for others.
func (p *passwords) enter(ctx context.Context, known ids.ID) (leave func(), err error) {
	leaveQueue, err := p.enterQueue(known)
	if err != nil {
		return nil, tooManyChecks()
	}
	select {
	case p.running <- struct{}{}:
		return func() { <-p.running; leaveQueue() }, nil
	case <-ctx.Done():
		leaveQueue()
		return nil, tooManyChecks()
	}
}

func (p *passwords) enterQueue(known ids.ID) (leave func(), err error) {
	if !known.IsZero() {
		return func() { p.known.Leave(known, 1) }, p.known.Enter(known, 1)
	}
	select {
	case p.queue <- struct{}{}:
		return func() { <-p.queue }, nil
	default:
		return nil, tooManyChecks()
	}
}

func tooManyChecks() error {
	return fault.Newf(fault.Overloaded, "Too many sign-in attempts. Try again in a few seconds.")
}

func (p *passwords) hash(ctx context.Context, password string, known ids.ID) (string, error) {
	leave, err := p.enter(ctx, known)
	if err != nil {
		return "", err
	}
	defer leave()
	return credential.HashPassword(password, rand.Reader)
}
