package sandbox

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"purser/fault"
	"purser/ids"
)

// maxControl is the largest body of a control request.
const maxControl = 16 << 10

// controlRoutes registers the control API, with which an application advances its
// clock, creates refunds and disputes, and holds, replays and shuffles webhooks.
func (s *Server) controlRoutes(mux *http.ServeMux) {
	get := func(path string, c control) { mux.HandleFunc("GET /sandbox/apps/{app}/"+path, s.control(c)) }
	post := func(path string, c control) { mux.HandleFunc("POST /sandbox/apps/{app}/"+path, s.control(c)) }

	get("clock", s.readClock)
	post("clock", s.advanceClock)
	post("refunds", s.controlRefund)
	post("disputes", s.controlDispute)
	post("webhooks", s.controlWebhooks)
}

// control handles a control request of the caller's own application.
type control func(w http.ResponseWriter, r *http.Request, app ids.ID) (any, error)

func (s *Server) control(do control) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, status := any(nil), http.StatusOK
		app, err := s.authorizeControl(r)
		if err == nil {
			body, err = do(w, r, app)
		}
		if err != nil {
			f := s.controlFault(r, err)
			body, status = refusal{f.Code, f.Message}, f.Kind().Status()
		}
		text, err := json.Marshal(body)
		if err != nil {
			s.options.Log.Error("sandbox control response not encoded", "cause", err)
			status = http.StatusInternalServerError
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		if _, err := w.Write(text); err != nil {
			s.options.Log.Debug("sandbox control response not written", "cause", err)
		}
	}
}

// authorizeControl returns the application in the path, which must be the caller's own.
func (s *Server) authorizeControl(r *http.Request) (ids.ID, error) {
	owner, err := s.options.Authorize(r)
	if err != nil {
		return ids.ID{}, err
	}
	app, err := ids.Parse(ids.Application, r.PathValue("app"))
	if err != nil || app != owner {
		s.options.Log.Warn("sandbox access refused", "caller", owner.Format(ids.Application), "route", r.Pattern, "code", fault.PathNotFound)
		return ids.ID{}, fault.New(fault.PathNotFound)
	}
	admitted, err := s.options.Admits(r.Context(), app)
	if err == nil && !admitted {
		err = fault.Newf(fault.PathNotFound, "This application does not use the payments sandbox.")
	}
	return app, err
}

type refusal struct {
	Error   fault.Code `json:"error"`
	Message string     `json:"message"`
}

// controlFault is the error that the caller sees.
func (s *Server) controlFault(r *http.Request, err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](publicRefusal(err)); ok {
		return f
	}
	s.options.Log.Error("sandbox control request failed", "route", r.Pattern, "cause", err)
	return fault.New(fault.InternalError)
}

// readJSON decodes a body strictly: unknown fields are refused.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fault.New(fault.BodyTooLarge)
	case err != nil:
		return fault.Newf(fault.InvalidRequest, "The body could not be read.")
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return fault.Newf(fault.InvalidRequest, "The body is not a valid JSON object for this path.")
	}
	return nil
}

type clockReply struct {
	Now int64 `json:"now"`
}

func (s *Server) readClock(_ http.ResponseWriter, r *http.Request, app ids.ID) (any, error) {
	now, err := s.Clock(r.Context(), app)
	return clockReply{now}, err
}

// advanceTime is the timeout of an advance, in which years of webhooks may be delivered
// and applied.
const advanceTime = 10 * time.Minute

func (s *Server) advanceClock(w http.ResponseWriter, r *http.Request, app ids.ID) (any, error) {
	var body struct {
		AdvanceTo *int64 `json:"advanceTo"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return nil, err
	}
	if body.AdvanceTo == nil {
		return nil, fault.Newf(fault.InvalidRequest, "Send {\"advanceTo\": <milliseconds since 1970>}.")
	}
	// Longer than the server's usual deadlines. A request that takes even longer times out;
	// the clock keeps its progress, and a retry continues from there.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(advanceTime)); err != nil {
		s.options.Log.Debug("sandbox write deadline not extended", "cause", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), advanceTime)
	defer cancel()
	now, err := s.Advance(ctx, app, *body.AdvanceTo)
	return clockReply{now}, err
}

func (s *Server) controlRefund(w http.ResponseWriter, r *http.Request, app ids.ID) (any, error) {
	var body struct {
		CheckoutID  string `json:"checkoutId"`
		AmountCents *int64 `json:"amountCents"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return nil, err
	}
	return s.Refund(r.Context(), app, body.CheckoutID, body.AmountCents)
}

func (s *Server) controlDispute(w http.ResponseWriter, r *http.Request, app ids.ID) (any, error) {
	var body struct {
		CheckoutID string `json:"checkoutId"`
		Outcome    string `json:"outcome"`
	}
	if err := readJSON(w, r, &body); err != nil {
		return nil, err
	}
	return s.Dispute(r.Context(), app, body.CheckoutID, body.Outcome)
}

func (s *Server) controlWebhooks(w http.ResponseWriter, r *http.Request, app ids.ID) (any, error) {
	var body WebhookCommand
	if err := readJSON(w, r, &body); err != nil {
		return nil, err
	}
	return s.Webhooks(r.Context(), app, body)
}
