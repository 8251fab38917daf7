package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"purser/api"
	"purser/fault"
	"purser/ids"
)

// fields is a JSON object.
type fields = map[string]any

// request is what a caller sends. Whatever is not set is as a careful caller
// would have it.
type request struct {
	method  string
	target  string // path and query, encoded
	body    any    // text is sent as it is, anything else as JSON
	header  http.Header
	key     string // of the Authorization header, unless header has one
	chunked bool
}

// client sends requests to one node with one key. Every answer is held against
// the document before anybody looks at it.
type client struct {
	t    testing.TB
	node *node
	key  string
}

func (c client) get(target string) answer {
	return c.send(request{method: http.MethodGet, target: target})
}

func (c client) post(target string, body any) answer {
	return c.send(request{method: http.MethodPost, target: target, body: body})
}

func (c client) patch(target string, body any) answer {
	return c.send(request{method: http.MethodPatch, target: target, body: body})
}

// on is the same caller at another node.
func (c client) on(n *node) client {
	c.node = n
	return c
}

// with is the same caller with another key.
func (c client) with(key string) client {
	c.key = key
	return c
}

// in is the same caller in a subtest.
func (c client) in(t testing.TB) client {
	c.t = t
	return c
}

func (c client) send(r request) answer {
	c.t.Helper()
	if r.key == "" {
		r.key = c.key
	}
	a, err := c.node.exchange(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", r.method, r.target, err)
	}
	a.t = c.t
	if err := a.check(); err != nil {
		c.t.Fatalf("%s: %v\n%s", a, err, a.body)
	}
	return a
}

// exchange may be called from any goroutine.
func (n *node) exchange(r request) (answer, error) {
	sent, err := n.compose(r)
	if err != nil {
		return answer{}, err
	}
	got, err := n.http.Do(sent)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{method: r.method, target: r.target, status: got.StatusCode, header: got.Header, body: body}, err
}

func (n *node) compose(r request) (*http.Request, error) {
	text, err := bodyText(r.body)
	if err != nil {
		return nil, err
	}
	sent, err := http.NewRequest(r.method, "http://"+n.host, nil)
	if err != nil {
		return nil, err
	}
	// An opaque address is sent as it stands: the library would encode the path
	// its own way.
	path, query, asked := strings.Cut(r.target, "?")
	sent.URL = &url.URL{Scheme: "http", Host: n.host, Opaque: path, RawQuery: query, ForceQuery: asked}
	if r.body != nil {
		sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		if r.chunked {
			sent.ContentLength = -1
		}
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		sent.Header.Set("Authorization", "Bearer "+r.key)
	}
	for name, values := range r.header {
		if values == nil {
			sent.Header.Del(name)
			continue
		}
		sent.Header[name] = values
	}
	return sent, nil
}

func bodyText(body any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(body), nil
	default:
		return json.Marshal(body)
	}
}

// answer is what came back.
type answer struct {
	t      testing.TB
	method string
	target string
	status int
	header http.Header
	body   []byte
}

// String names the exchange without its body.
func (a answer) String() string {
	return strings.Join([]string{a.method, a.target, "→", http.StatusText(a.status)}, " ")
}

var seenRequestIDs sync.Map

// check holds the answer against the document and the rules that every answer
// obeys. The document alone says what may come back; this adds what it cannot.
func (a answer) check() error {
	id := a.header.Get("X-Request-Id")
	if _, err := ids.Parse(ids.Request, id); err != nil {
		return errorf("the request id is %q", id)
	}
	if isFuzzing() {
		seenRequestIDs.Clear()
	}
	if _, seen := seenRequestIDs.LoadOrStore(id, true); seen {
		return errorf("the request id %s came before", id)
	}
	if a.method == http.MethodHead {
		return nil // has no body to check
	}
	path, _, _ := strings.Cut(a.target, "?")
	if err := api.CheckResponse(a.method, path, a.status, a.header, a.body); err != nil {
		return err
	}
	if a.status < 400 {
		return nil
	}
	return a.checkRefusal()
}

// statuses is what the contract makes of each kind of refusal.
var statuses = map[fault.Kind]int{
	fault.Invalid: 400, fault.Unauthorized: 401, fault.Forbidden: 403, fault.NotFound: 404, fault.NotAllowed: 405,
	fault.Conflict: 409, fault.TooLarge: 413, fault.WrongMedia: 415, fault.Unprocessable: 422, fault.Limited: 429, fault.Internal: 500,
}

func (a answer) checkRefusal() error {
	var said struct {
		Error   fault.Code `json:"error"`
		Message string     `json:"message"`
		Index   *int       `json:"index"`
	}
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&said); err != nil {
		return err
	}
	if statuses[fault.New(said.Error).Kind()] != a.status {
		return errorf("%s is not in the catalogue for %d", said.Error, a.status)
	}
	if !strings.HasSuffix(said.Message, ".") && !strings.HasSuffix(said.Message, "?") {
		return errorf("the message is not a sentence: %q", said.Message)
	}
	return nil
}
