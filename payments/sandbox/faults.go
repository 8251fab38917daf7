package sandbox

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"purser/ids"
	"purser/payments/sandbox/engine"
)

// FaultKind is a failure of a provider or a network.
type FaultKind int

// The faults of API requests.
const (
	DropAfter    FaultKind = iota + 1 // the connection breaks after the request is executed, before the response
	Fail                              // 500, saved for the idempotency key
	Conflict                          // 409 lock_timeout
	Limit                             // 429
	Decline                           // 402 card_declined, saved for the idempotency key
	DeliverFirst                      // webhooks are delivered before the response
)

// Fault is a failure of the next requests of an application.
type Fault struct {
	Kind  FaultKind
	Times int    // 1 when zero
	Only  string // substring of "POST /v1/…"; empty matches all
}

// faults are the injected faults that have not been used up.
type faults struct {
	mu  sync.Mutex
	all map[ids.ID][]*Fault
}

// Inject adds a fault. It is for tests only.
func (s *Server) Inject(app ids.ID, fault Fault) {
	fault.Times = max(fault.Times, 1)
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.all == nil {
		s.faults.all = map[ids.ID][]*Fault{}
	}
	s.faults.all[app] = append(s.faults.all[app], &fault)
}

// next returns the kind of the first matching fault, or 0, and counts it down.
func (f *faults) next(app ids.ID, request string) FaultKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.all[app] {
		if !strings.Contains(request, fault.Only) {
			continue
		}
		if fault.Times--; fault.Times == 0 {
			f.all[app] = slices.Delete(f.all[app], i, i+1)
		}
		return fault.Kind
	}
	return 0
}

// withFaults executes the request with an injected fault, if there is one.
func (s *Server) withFaults(ctx context.Context, r *request, op operation) (reply, error) {
	fault := s.faults.next(r.app, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/sandbox/stripe"))
	switch fault {
	case Fail:
		return s.failWith(ctx, r, &engine.Refusal{Status: http.StatusInternalServerError, Type: "api_error", Message: "An unknown error occurred.", Kept: true})
	case Decline:
		return s.failWith(ctx, r, &engine.Refusal{
			Status: http.StatusPaymentRequired, Type: "card_error", Code: "card_declined", DeclineCode: "generic_decline",
			Message: "Your card was declined.", Kept: true,
		})
	case Conflict:
		return reply{}, &engine.Refusal{
			Status: http.StatusConflict, Type: "invalid_request_error", Code: "lock_timeout",
			Message: "This object cannot be accessed right now because another API request or Stripe process is currently accessing it.",
		}
	case Limit:
		return reply{}, rateLimited
	}
	got, err := s.execute(ctx, r, op)
	switch fault {
	case DropAfter:
		panic(http.ErrAbortHandler)
	case DeliverFirst:
		if err := s.Flush(ctx, r.app); err != nil {
			return reply{}, err
		}
	}
	return got, err
}

// failWith refuses the request and saves that response for its idempotency key.
func (s *Server) failWith(ctx context.Context, r *request, refusal *engine.Refusal) (reply, error) {
	return s.execute(ctx, r, func(*call) (engine.Doc, error) { return nil, refusal })
}
