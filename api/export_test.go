package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"purser/httpd"
	"purser/keys"
)

// What the tests from outside may see of the inside: the document, the route
// table, and the gates without the work behind them.

// Operation is what the document, or the route table, says of an operation.
type Operation struct {
	ID         string
	Method     string
	Path       string
	Permission string
	Fields     []string // of the body; none when there is no body
	Query      []string
	// IdempotencyKey reports that the header of that name is taken.
	IdempotencyKey bool
}

// SlowBody is from when a body is slow.
const SlowBody = slowBody

var contractDocument = sync.OnceValues(func() (*document, error) { return loadDocument("") })

// Operations lists what the document describes.
func Operations() ([]Operation, error) {
	doc, err := contractDocument()
	if err != nil {
		return nil, err
	}
	var list []Operation
	for _, op := range doc.operations {
		list = append(list, Operation{op.id, op.method, op.path, op.permission, op.body.names(), op.query.names(), op.idempotency != nil})
	}
	return list, nil
}

func (s *schema) names() (list []string) {
	if s == nil {
		return nil
	}
	for _, p := range s.properties {
		list = append(list, p.name)
	}
	return list
}

// Routes lists the keyed operations that are served.
func (s *Server) Routes() []Operation {
	var list []Operation
	for _, r := range s.routes() {
		list = append(list, Operation{Method: r.method, Path: r.path, Permission: strings.Join(r.permissions.Names(), " ")})
	}
	return list
}

// CheckResponse holds an answer against the document. The path is as it was
// sent, still encoded.
func CheckResponse(method, path string, status int, header http.Header, body []byte) error {
	doc, err := contractDocument()
	if err != nil {
		return err
	}
	unrouted, err := unroutedOperation()
	if err != nil {
		return err
	}
	op := doc.served(method, path)
	if op == nil {
		op = unrouted
	}
	err = doc.checkResponse(op, status, header, body)
	if err != nil && strings.Contains(err.Error(), "belongs to an erased wallet") {
		err = nil // only requests can't name one
	}
	if err != nil || status < http.StatusBadRequest {
		return err
	}
	refusal, err := decodeAnything(body)
	if err != nil {
		return err
	}
	if code := refusal.Text("error"); !slices.Contains(op.errors, code) {
		return fmt.Errorf("%s does not list the code %s", op.id, code)
	}
	return nil
}

// unroutedOperation stands where there is no operation. It is made once: each
// making reads the whole document.
var unroutedOperation = sync.OnceValues(func() (*operation, error) {
	doc, err := contractDocument()
	if err != nil {
		return nil, err
	}
	nothing := &operation{id: "what is not routed", responses: map[int]*response{}, errors: []string{"not_found", "method_not_allowed"}}
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		if nothing.responses[status], err = doc.unroutedResponse(status); err != nil {
			return nil, err
		}
	}
	return nothing, nil
})

// served finds the operation that answers a path, or gives nil.
func (d *document) served(method, path string) *operation {
	for _, op := range d.operations {
		if op.method == method && fits(op.path, path) {
			return op
		}
	}
	return nil
}

func fits(template, path string) bool {
	wanted, given := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(given) {
		return false
	}
	for i, segment := range wanted {
		isParameter := strings.HasPrefix(segment, "{") && given[i] != ""
		if segment != given[i] && !isParameter {
			return false
		}
	}
	return true
}

// Gates is POST /v1/events without the use: a request passes every gate and is
// answered at once.
func (s *Server) Gates() http.Handler {
	for _, r := range s.routes() {
		if r.path != "/v1/events" {
			continue
		}
		r.handle = func(*call) (reply, error) { return created(eventReply{Status: "accepted"}), nil }
		e := httpd.New(httpd.Options{}).Echo()
		e.Add(r.method, httpd.EchoPath(r.path), s.serve(r, s.document.operation(r.method, r.path)))
		return e
	}
	panic("there is no POST /v1/events")
}

// ReadUsage is what Gates does with a body: decode it and check it.
func (s *Server) ReadUsage(body []byte) error {
	op := s.document.operation(http.MethodPost, "/v1/events")
	if op == nil {
		return fmt.Errorf("there is no POST /v1/events")
	}
	_, err := op.validateBody(nil, body)
	return err
}

// WaitForFeed waits as a request with the key does that found nothing yet.
func (s *Server) WaitForFeed(ctx context.Context, key keys.APIKey, read func(context.Context) (bool, error)) error {
	return s.waitForFeed(&call{ctx: ctx, scope: key.Scope, keyID: key.ID, key: key}, maxWait, read)
}

// UsageTimeout is how long an event may take.
const UsageTimeout = usageTimeout
