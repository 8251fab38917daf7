package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"purser/httpd/outgoing"
	"purser/ids"
	"purser/keys"
)

// backend calls the API like a customer's server, and submits the hosted pages that its
// customers are sent to.
type backend struct {
	story  *story
	client *http.Client
	base   string
	key    keys.Secret
}

func (s *story) newBackend(key keys.Secret) backend {
	return backend{story: s, key: key, base: s.BaseURL, client: outgoing.NewClient(s.Transport)} // checkouts redirect to pages that do not exist here
}

// object is a JSON object to send.
type object map[string]any

// maxResponse is far larger than any response of the API.
const maxResponse = 1 << 20

// call sends a request and decodes the response, which must have one of the
// statuses.
func (b backend) call(ctx context.Context, method, path string, body object, into any, want ...int) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+b.key.Reveal())
	request.Header.Set("Content-Type", "application/json")
	answer, text, err := b.roundTrip(request)
	if err != nil {
		return err
	}
	if !slices.Contains(want, answer.StatusCode) {
		return fmt.Errorf("%s %s answers %d, not %v: %s", method, path, answer.StatusCode, want, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

func (b backend) roundTrip(r *http.Request) (*http.Response, []byte, error) {
	answer, err := b.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
	return answer, text, err
}

// send is a step that calls.
func (b backend) send(ctx context.Context, method, path string, body object, into any, want ...int) {
	b.story.do(func() error { return b.call(ctx, method, path, body, into, want...) })
}

// post is a step that must succeed.
func (b backend) post(ctx context.Context, path string, body object, into any) {
	b.send(ctx, http.MethodPost, path, body, into, http.StatusOK, http.StatusCreated)
}

// usage is one usage event of a customer.
type usage struct {
	id, identity, feature string
	quantity              int64
	entity                string // the document or the seat; may be empty
	amount                string // of a callback-priced feature
	occurredAt            int64
	properties            object // may be nil
}

func (u usage) checkBody() object {
	asked := object{"identity": u.identity, "feature": u.feature}
	if u.quantity != 0 {
		asked["quantity"] = u.quantity
	}
	if u.entity != "" {
		asked["entityId"] = u.entity
	}
	if u.amount != "" {
		asked["amountNanocredits"] = u.amount
	}
	if u.occurredAt != 0 {
		asked["occurredAt"] = u.occurredAt
	}
	return asked
}

func (u usage) eventBody() object {
	tracked := u.checkBody()
	tracked["id"] = u.id
	if u.properties != nil {
		tracked["properties"] = u.properties
	}
	return tracked
}

// track sends usage that must have the outcome.
func (b backend) track(ctx context.Context, u usage, outcome string) {
	var got struct{ Status, Error string }
	b.send(ctx, http.MethodPost, "/v1/events", u.eventBody(), &got, http.StatusCreated, http.StatusOK, http.StatusConflict)
	b.expect("the use "+u.id, got.Status+got.Error, outcome)
}

// trackDenied checks and then tracks usage, which must be denied both times.
func (b backend) trackDenied(ctx context.Context, u usage, reason string) {
	var got struct{ Reason string }
	b.post(ctx, "/v1/check", u.checkBody(), &got)
	b.expect("a check of "+u.id, got.Reason, reason)
	b.track(ctx, u, reason)
}

func (b backend) expect(what, got, want string) {
	b.story.do(func() error {
		if got != want {
			return fmt.Errorf("%s is %q, not %q", what, got, want)
		}
		return nil
	})
}

// page is a hosted page.
type page struct{ ID, URL string }

// submitForm submits the form of a page and returns the redirect target.
func (b backend) submitForm(ctx context.Context, address string, form url.Values) (next string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, _, err := b.roundTrip(request)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("a page of the sandbox answers %s", answer.Status)
	}
	return answer.Header.Get("Location"), nil
}

// pay is a step that pays at a hosted page and completes the authentication if one is
// required.
func (b backend) pay(ctx context.Context, p page, card string) {
	b.story.do(func() error {
		next, err := b.submitForm(ctx, p.URL, url.Values{"card": {card}})
		if err == nil && strings.HasPrefix(next, b.base+"/sandbox/") && strings.Contains(next, "/authenticate/") {
			_, err = b.submitForm(ctx, next, url.Values{"result": {"complete"}})
		}
		return err
	})
}

// sandboxPath is a path of the sandbox's control API.
func (s *story) sandboxPath(name string) string {
	return "/sandbox/apps/" + s.app.ID.Format(ids.Application) + "/" + name
}

type clockAnswer struct{ Now int64 }

// readClock reads the application's time.
func (s *story) readClock(ctx context.Context) {
	var shown clockAnswer
	s.backend.send(ctx, http.MethodGet, s.sandboxPath("clock"), nil, &shown, http.StatusOK)
	s.now = shown.Now
}

// advance moves the application's clock. When it returns, all timers on the way have
// fired and their webhooks are applied.
func (s *story) advance(ctx context.Context, to int64) {
	var shown clockAnswer
	s.backend.post(ctx, s.sandboxPath("clock"), object{"advanceTo": to}, &shown)
	s.now = shown.Now
	s.do(func() (err error) {
		s.clockOffset, err = s.Store.App(s.app.Scope()).ClockOffset(ctx)
		return err
	})
}
