package fidelity

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"
	"github.com/stripe/stripe-mock/spec"
)

// oracle knows what a request to Stripe may look like, and what an answer must.
type oracle struct {
	described *spec.Spec
	stub      *server.StubServer
}

// theOracle takes a second to read, so all tests share it. The description that
// stripe-mock carries is one step newer than the version that the client speaks;
// STRIPE_SPEC names the file of another one.
var theOracle = sync.OnceValues(func() (*oracle, error) {
	described, err := server.LoadSpec(embedded.OpenAPISpec, os.Getenv("STRIPE_SPEC"))
	if err != nil {
		return nil, err
	}
	fixtures, err := server.LoadFixtures(embedded.OpenAPIFixtures, "")
	if err != nil {
		return nil, err
	}
	stub, err := server.NewStubServer(fixtures, described, false, false)
	return &oracle{described, stub}, err
})

// accepts puts the request to stripe-mock, which refuses what does not have the
// shape of a request.
func (o *oracle) accepts(r *http.Request, path string, body []byte) (refusal string) {
	asked := httptest.NewRequest(r.Method, path, bytes.NewReader(body))
	asked.URL.RawQuery = r.URL.RawQuery
	asked.Header = r.Header.Clone()
	// It takes keys of this form only, and nothing of it leaves the process.
	asked.Header.Set("Authorization", "Bearer sk_test_tee")
	answer := httptest.NewRecorder()
	o.stub.HandleRequest(answer, asked)
	if answer.Code != http.StatusOK {
		return answer.Body.String()
	}
	return ""
}

// operation finds what the description says about a path. A path that is
// written out there comes before one with a parameter.
func (o *oracle) operation(method, path string) *spec.Operation {
	var found *spec.Operation
	best := -1
	for pattern, verbs := range o.described.Paths {
		literal, fits := matchPath(string(pattern), path)
		if operation := verbs[spec.HTTPVerb(strings.ToLower(method))]; fits && operation != nil && literal > best {
			found, best = operation, literal
		}
	}
	return found
}

// matchPath reports whether the path has the pattern's form, and how many of its
// parts are the pattern's own.
func matchPath(pattern, path string) (literal int, fits bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return 0, false
	}
	for n, part := range want {
		switch {
		case part == have[n]:
			literal++
		case !strings.HasPrefix(part, "{"):
			return 0, false
		}
	}
	return literal, true
}

// tee is the client's transport: it lets the sandbox answer, and the oracle
// judge both sides.
type tee struct {
	testing.TB
	oracle *oracle
	under  http.RoundTripper
	prefix string // of the paths at the sandbox

	mu      sync.Mutex
	checker *checker
	asked   map[string]bool // method and path of what was answered well
}

func newTee(t testing.TB, under http.RoundTripper, prefix string) *tee {
	t.Helper()
	o, err := theOracle()
	if err != nil {
		t.Fatal(err)
	}
	return &tee{TB: t, oracle: o, under: under, prefix: prefix, checker: newChecker(o.described), asked: map[string]bool{}}
}

// RoundTrip is http.RoundTripper's.
func (e *tee) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := e.under.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	e.judge(r, sent, response.StatusCode, answer)
	return response, nil
}

func (e *tee) judge(r *http.Request, sent []byte, status int, answer []byte) {
	path := strings.TrimPrefix(r.URL.Path, e.prefix)
	name := r.Method + " " + path
	if version := r.Header.Get("Stripe-Version"); version != stripe.APIVersion {
		e.Errorf("%s was sent for version %q", name, version)
	}
	operation := e.oracle.operation(r.Method, path)
	if operation == nil {
		e.Errorf("%s is not described", name)
		return
	}
	expected := operation.Responses["default"]
	if status == http.StatusOK {
		expected = operation.Responses["200"]
		if refusal := e.oracle.accepts(r, path, sent); refusal != "" {
			e.Errorf("%s %s is answered by the sandbox, but its shape is refused: %s", name, sent, refusal)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if status == http.StatusOK {
		e.asked[name] = true
	}
	value := decode(e, answer)
	e.checker.check("", value, expected.Content["application/json"].Schema)
	for _, event := range eventsIn(value) {
		e.checker.checkEvent("event", event)
	}
	for _, problem := range e.checker.take() {
		e.Errorf("%s answers %d: %s", name, status, problem)
	}
}

// judgeWebhook compares the body of a webhook.
func (e *tee) judgeWebhook(body []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	event := decode(e, body)
	e.checker.checkEvent("", event)
	for _, problem := range e.checker.take() {
		e.Errorf("the webhook %v: %s", event.(map[string]any)["type"], problem)
	}
}

// eventsIn is the answer itself, when it is an event, or the events that it lists.
func eventsIn(value any) (events []any) {
	answer, _ := value.(map[string]any)
	list, _ := answer["data"].([]any)
	for _, each := range append(list, value) {
		if object, _ := each.(map[string]any); object["object"] == "event" {
			events = append(events, object)
		}
	}
	return events
}

func TestOracle(t *testing.T) {
	t.Parallel()
	o, err := theOracle()
	must(t, err)
	for request, fits := range map[string]bool{
		"/v1/prices currency=usd&product=p&unit_amount=1":                          true,
		"/v1/prices product=p&unit_amount=1":                                       false, // no currency
		"/v1/prices/p unit_amount=1":                                               false, // prices do not change
		"/v1/subscriptions/s payment_behavior=pending_if_incomplete":               true,
		"/v1/subscriptions/s payment_behavior=perhaps":                             false,
		"/v1/webhook_endpoints url=https://a.test&enabled_events[]=refund.updated": true,
		"/v1/webhook_endpoints url=https://a.test&enabled_events[]=no.event":       false,
		"/v1/nothing a=b": false,
	} {
		path, body, _ := strings.Cut(request, " ")
		asked := httptest.NewRequest(http.MethodPost, path, nil)
		asked.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if refusal := o.accepts(asked, path, []byte(body)); (refusal == "") != fits {
			t.Errorf("%s: %q", request, refusal)
		}
	}
}
