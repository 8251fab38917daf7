package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"purser/ids"
	"purser/payments/sandbox/engine"
	"purser/payments/sandbox/form"
)

// maxForm is the largest request body of the API.
const maxForm = 64 << 10

// maxText is Stripe's limit for the characters of a parameter.
const maxText = 5000

// maxKey is the length of the longest idempotency key.
const maxKey = 255

// call is an API request with the account that it reads or changes.
type call struct {
	*http.Request
	account *engine.Account
	env     engine.Env
	params  *form.Fields
}

func (c *call) id() string { return c.PathValue("id") }

// operation handles a call. The returned document is expanded as the caller
// requested.
type operation func(*call) (engine.Doc, error)

// reply is a response that is ready to send.
type reply struct {
	status   int
	body     []byte
	replayed bool
}

func (s *Server) stripeHandler(op operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req := &request{Request: r, id: "req_" + s.randomText()}
		header := w.Header()
		header.Set("Request-Id", req.id)
		// The only supported version, whatever the request asked for.
		header.Set("Stripe-Version", engine.APIVersion)
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "no-store")
		got, err := s.serve(r.Context(), req, op, header)
		if err != nil {
			got = s.errorReply(req, err)
		}
		sent, err := s.options.CountReply(req.app, int64(len(got.body)))
		if err != nil {
			got, sent = s.errorReply(req, tooManyReplies), func() {}
		}
		defer sent()
		if req.key != "" {
			header.Set("Idempotency-Key", req.key)
		}
		if got.replayed {
			header.Set("Idempotent-Replayed", "true")
		}
		w.WriteHeader(got.status)
		if _, err := w.Write(got.body); err != nil {
			s.options.Log.Debug("sandbox response not written", "request", req.id, "cause", err)
		}
	}
}

// tooManyReplies is a refusal that Stripe's clients retry: the same request gets the same
// answer later.
var tooManyReplies = &engine.Refusal{
	Status: http.StatusTooManyRequests, Type: "invalid_request_error", Code: "rate_limit",
	Message: "Responses that were not read take too much memory. Read them, and try again.",
}

// request is a parsed API request.
type request struct {
	*http.Request
	id          string
	app         ids.ID
	values      url.Values
	key         string // Idempotency-Key
	fingerprint string // detects different requests with the same key
}

func (s *Server) serve(ctx context.Context, r *request, op operation, header http.Header) (reply, error) {
	app, err := s.authenticate(r.Request)
	if err != nil {
		return reply{}, err
	}
	if err := s.checkRate(ctx, app, header); err != nil {
		return reply{}, err
	}
	if err := s.checkAdmitted(ctx, r.Request, app); err != nil {
		return reply{}, err
	}
	r.app = app
	if err := r.read(); err != nil {
		return reply{}, err
	}
	if r.Method == http.MethodPost && r.key != "" {
		done, free := s.inUse.acquire(app, r.key)
		if !free {
			return reply{}, engine.KeyInUse(r.key)
		}
		defer done()
	}
	return s.withFaults(ctx, r, op)
}

// read parses the request's parameters and headers.
func (r *request) read() error {
	r.key = r.Header.Get("Idempotency-Key")
	if !utf8.ValidString(r.key) {
		return badRequest("Idempotency-Key", "The idempotency key is not valid UTF-8.")
	}
	if len(r.key) > maxKey {
		return badRequest("Idempotency-Key", "Idempotency keys can be at most 255 characters long.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxForm))
	if err != nil {
		return badRequest("", "The body could not be read, or is larger than 64 KiB.")
	}
	if len(body) > 0 && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return badRequest("", "Send parameters form-encoded, with Content-Type: application/x-www-form-urlencoded.")
	}
	text := string(body)
	if r.Method != http.MethodPost {
		text = strings.Trim(r.URL.RawQuery+"&"+text, "&")
	}
	if r.values, err = url.ParseQuery(text); err != nil {
		return badRequest("", "The parameters are not form-encoded.")
	}
	for name, values := range r.values {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(value string) bool { return !utf8.ValidString(value) }) {
			return badRequest("", "The parameters are not valid UTF-8.")
		}
		if slices.ContainsFunc(values, func(value string) bool { return utf8.RuneCountInString(value) > maxText }) {
			return badRequest(name, "Invalid string: it can have at most 5,000 characters.")
		}
	}
	sum := sha256.Sum256([]byte(r.Method + " " + r.URL.Path + "\n" + r.values.Encode()))
	r.fingerprint = hex.EncodeToString(sum[:])
	return nil
}

func badRequest(param, message string) *engine.Refusal {
	return &engine.Refusal{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param, Message: message}
}

// execute runs the operation, once for each idempotency key.
func (s *Server) execute(ctx context.Context, r *request, op operation) (got reply, err error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		read := s.view
		if strings.HasPrefix(r.URL.Path, v1+"test_helpers/test_clocks/") {
			read = s.read // shows an advancing clock instead of firing its timers
		}
		err = read(ctx, r.app, func(account *engine.Account, env engine.Env) error {
			got, err = s.runOperation(r, account, env, op)
			return err
		}, r.keys()...)
		return got, err
	}
	err = s.update(ctx, r.app, func(account *engine.Account, env engine.Env) error {
		env.Request = engine.RequestRef{ID: r.id, IdempotencyKey: r.key}
		if r.key != "" {
			old, known, err := account.LookupAnswer(env, r.key, r.fingerprint)
			if known {
				got = reply{status: old.Status, body: old.Body, replayed: true}
				return errUnchanged
			}
			if err != nil {
				return err
			}
		}
		got, err = s.runOperation(r, account, env, op)
		if refusal, ok := errors.AsType[*engine.Refusal](err); ok && refusal.Kept {
			got, err = s.errorReply(r, refusal), nil
		}
		if err == nil && r.key != "" {
			account.StoreAnswer(env, engine.Answer{Key: r.key, Fingerprint: r.fingerprint, Status: got.status, Body: got.body})
		}
		return err
	}, r.keys()...)
	return got, err
}

// maxKeys is how many objects are prefetched for a request.
const maxKeys = 50

// keys are the keys of the objects that a request mentions, which are prefetched in one
// statement. Others are read lazily.
func (r *request) keys() (keys []string) {
	add := func(name, id string) {
		key, known := engine.KeyOf(id)
		if name == "product" || name == "products" {
			key, known = engine.ProductKey(id), true
		}
		if known && len(keys) < maxKeys {
			keys = append(keys, key)
		}
	}
	if r.key != "" {
		keys = append(keys, engine.AnswerKey(r.key))
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, v1), "/")
	for i, id := range path {
		if i > 0 {
			add(path[i-1], id)
		}
	}
	for name, values := range r.values {
		for _, id := range values {
			add(name, id)
		}
	}
	if path[0] == "products" && r.values.Get("id") != "" {
		add("product", r.values.Get("id"))
	}
	return keys
}

// runOperation parses the parameters, runs the operation and encodes its result.
func (s *Server) runOperation(r *request, account *engine.Account, env engine.Env, op operation) (reply, error) {
	in, err := form.Parse(r.values)
	if err != nil {
		return reply{}, err
	}
	expand := in.Texts("expand")
	doc, err := op(&call{Request: r.Request, account: account, env: env, params: in})
	if err != nil {
		return reply{}, unsupported(strings.TrimPrefix(r.URL.Path, v1), err)
	}
	if err := account.Expand(doc, expand); err != nil {
		return reply{}, err
	}
	body, err := json.Marshal(doc, json.Deterministic(true))
	return reply{status: http.StatusOK, body: body}, err
}

// errorReply is the response to an error, in Stripe's format.
func (s *Server) errorReply(r *request, err error) reply {
	var refusal *engine.Refusal
	var problem *form.Problem
	switch {
	case errors.As(err, &refusal):
	case errors.As(err, &problem):
		refusal = badRequest(problem.Param, problem.Message)
		refusal.Code = problem.Code
	default:
		s.options.Log.Error("sandbox request failed", "request", r.id, "cause", err)
		refusal = &engine.Refusal{Status: http.StatusInternalServerError, Type: "api_error", Message: "Something failed on the sandbox's side."}
	}
	// Messages may repeat parameters, which may be invalid UTF-8.
	body := engine.Doc{"type": refusal.Type, "message": strings.ToValidUTF8(refusal.Message, "?")}
	for name, value := range map[string]string{"code": refusal.Code, "param": refusal.Param, "decline_code": refusal.DeclineCode} {
		if value != "" {
			body[name] = strings.ToValidUTF8(value, "?")
		}
	}
	if refusal.Payment != nil {
		body["payment_intent"] = refusal.Payment
	}
	text, err := json.Marshal(engine.Doc{"error": body}, json.Deterministic(true))
	if err != nil {
		panic("sandbox: encode error: " + err.Error())
	}
	return reply{status: refusal.Status, body: text}
}

func (s *Server) randomText() string {
	var text [12]byte
	if _, err := io.ReadFull(s.options.Random, text[:]); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(text[:])
}

// keysInUse are the idempotency keys of the requests in flight on this node. Requests on
// other nodes are serialized by the account's row lock.
type keysInUse struct {
	mu  sync.Mutex
	all map[string]bool
}

func (k *keysInUse) acquire(app ids.ID, key string) (done func(), free bool) {
	name := app.String() + " " + key
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[name] {
		return nil, false
	}
	if k.all == nil {
		k.all = map[string]bool{}
	}
	k.all[name] = true
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.all, name)
	}, true
}

// unknownPath refuses a path that the API does not have.
func (s *Server) unknownPath(c *call) (engine.Doc, error) {
	path := strings.TrimPrefix(c.URL.Path, "/sandbox/stripe")
	refusal := badRequest("", "Unrecognized request URL ("+c.Method+": "+path+").")
	refusal.Status = http.StatusNotFound
	return nil, refusal
}
