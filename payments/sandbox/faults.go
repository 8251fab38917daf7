package sandbox

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"purser/ids"
	"purser/payments/sandbox/engine"
)

// FaultKind is a failure of a provider or a network.
type FaultKind int

// The faults of API requests, then those of webhooks.
const (
	DropBefore   FaultKind = iota + 1 // the connection breaks before the request is executed
	DropAfter                         // the connection breaks after it, before the response
	Fail                              // 500, saved for the idempotency key
	Conflict                          // 409 lock_timeout
	Limit                             // 429
	Decline                           // 402 card_declined, saved for the idempotency key
	Delay                             // the response is delayed
	DeliverFirst                      // webhooks are delivered before the response
	StaleRead                         // a read shows the account as it was at injection

	LoseWebhook  // it is marked delivered but never sent
	LiveWebhook  // it claims to be from live mode
	OtherWebhook // it has the version of another API
	LateWebhook  // its signature is six minutes old
)

func (m FaultKind) forWebhooks() bool { return m >= LoseWebhook }

// Fault is a failure of the next requests, or webhooks, of an application.
type Fault struct {
	Kind  FaultKind
	Times int           // 1 when zero
	Only  string        // substring of "POST /v1/…", or of an event type; empty matches all
	Delay time.Duration // for Delay
	stale []byte
}

// faults are the injected faults that have not been used up.
type faults struct {
	mu  sync.Mutex
	all map[ids.ID][]*Fault
}

// Inject adds a fault. It is for tests only.
func (s *Server) Inject(ctx context.Context, app ids.ID, fault Fault) error {
	fault.Times = max(fault.Times, 1)
	if fault.Kind == StaleRead {
		state, err := s.Snapshot(ctx, app)
		if err != nil {
			return err
		}
		fault.stale = state
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.all == nil {
		s.faults.all = map[ids.ID][]*Fault{}
	}
	s.faults.all[app] = append(s.faults.all[app], &fault)
	return nil
}

// next returns the first matching fault and counts it down.
func (f *faults) next(app ids.ID, webhook bool, what string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.all[app] {
		if fault.Kind.forWebhooks() != webhook || !strings.Contains(what, fault.Only) {
			continue
		}
		if fault.Kind == StaleRead && !strings.HasPrefix(what, http.MethodGet) {
			continue
		}
		if fault.Times--; fault.Times == 0 {
			f.all[app] = append(f.all[app][:i:i], f.all[app][i+1:]...)
		}
		return *fault, true
	}
	return Fault{}, false
}

// withFaults executes the request with an injected fault, if there is one.
func (s *Server) withFaults(ctx context.Context, r *request, op operation) (reply, error) {
	fault, injected := s.faults.next(r.app, false, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/sandbox/stripe"))
	if !injected {
		return s.execute(ctx, r, op)
	}
	switch fault.Kind {
	case DropBefore:
		panic(http.ErrAbortHandler)
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
		return reply{}, &engine.Refusal{Status: http.StatusTooManyRequests, Type: "invalid_request_error", Code: "rate_limit", Message: "Request rate limit exceeded."}
	case Delay:
		if err := wait(ctx, fault.Delay); err != nil {
			return reply{}, err
		}
	case StaleRead:
		return s.readStale(r, op, fault.stale)
	}
	got, err := s.execute(ctx, r, op)
	switch fault.Kind {
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

func (s *Server) readStale(r *request, op operation, state []byte) (reply, error) {
	account, err := engine.Open(state, s.baseURLs(r.app))
	if err != nil {
		return reply{}, err
	}
	env, err := s.newEnv(account)
	if err != nil {
		return reply{}, err
	}
	return s.runOperation(r, account, env, op)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signatureAge is more than the five minutes for which receivers accept a signature.
const signatureAge = 6 * time.Minute

// applyWebhookFault applies an injected fault to a webhook. It reports whether to send it.
func (s *Server) applyWebhookFault(app ids.ID, out *engine.Outgoing, signedAt *time.Time) (send bool, err error) {
	fault, injected := s.faults.next(app, true, out.Type)
	if !injected {
		return true, nil
	}
	var change engine.Doc
	switch fault.Kind {
	case LoseWebhook:
		return false, nil
	case LateWebhook:
		*signedAt = signedAt.Add(-signatureAge)
		return true, nil
	case LiveWebhook:
		change = engine.Doc{"livemode": true}
	case OtherWebhook:
		change = engine.Doc{"api_version": "2025-03-31.basil"}
	}
	var event map[string]any
	if err := json.Unmarshal(out.Body, &event); err != nil {
		return false, err
	}
	maps.Copy(event, change)
	out.Body, err = json.Marshal(event, json.Deterministic(true))
	return true, err
}
