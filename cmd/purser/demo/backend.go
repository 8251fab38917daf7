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

	"purser/ids"
	"purser/keys"
)

// backend makes requests as a caller's server would, and visits the pages that its
// customers are sent to.
type backend struct {
	client *http.Client
	base   string
	key    keys.Secret
}

func (t *tale) newBackend(key keys.Secret) backend {
	return backend{key: key, base: t.BaseURL, client: &http.Client{
		Transport: t.Transport,
		// A payer is sent on to pages of the caller's, which are nowhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// object is a JSON object to send.
type object map[string]any

// maxAnswer is far more than the API ever answers with.
const maxAnswer = 1 << 20

// call sends a request, which must be answered with one of the statuses, and reads
// the answer into what is given.
func (b backend) call(ctx context.Context, method, path string, body object, into any, want ...int) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+b.key.Reveal())
	request.Header.Set("Content-Type", "application/json")
	answer, text, err := b.send(request)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(want, answer.StatusCode) {
		return answer.StatusCode, fmt.Errorf("%s %s answers %d, not %v: %s", method, path, answer.StatusCode, want, text)
	}
	if into != nil {
		err = json.Unmarshal(text, into)
	}
	return answer.StatusCode, err
}

func (b backend) send(r *http.Request) (*http.Response, []byte, error) {
	answer, err := b.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer, text, err
}

// post sends a request that must succeed.
func (b backend) post(ctx context.Context, path string, body object, into any) error {
	_, err := b.call(ctx, http.MethodPost, path, body, into, http.StatusOK, http.StatusCreated)
	return err
}

// use is what a customer does.
type use struct {
	id, identity, feature string
	quantity              int64
	entity                string // the document or the seat, where there is one
	amount                string // what it costs, where the caller says so
	occurredAt            int64
}

func (u use) asked() object {
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

func (u use) tracked() object {
	tracked := u.asked()
	tracked["id"] = u.id
	return tracked
}

// track sends a use that must have the outcome.
func (b backend) track(ctx context.Context, u use, outcome string) error {
	var got struct{ Status, Error string }
	_, err := b.call(ctx, http.MethodPost, "/v1/events", u.tracked(), &got, http.StatusCreated, http.StatusOK, http.StatusConflict)
	if err == nil && got.Status+got.Error != outcome {
		err = fmt.Errorf("the use %s is %s%s, not %s", u.id, got.Status, got.Error, outcome)
	}
	return err
}

// refused asks before it uses, as a backend does, and is refused both times.
func (b backend) refused(ctx context.Context, u use, reason string) error {
	var got struct{ Reason string }
	if err := b.post(ctx, "/v1/check", u.asked(), &got); err != nil {
		return err
	}
	if got.Reason != reason {
		return fmt.Errorf("a check of %s gives the reason %q, not %s", u.id, got.Reason, reason)
	}
	return b.track(ctx, u, reason)
}

// page is where a payer is sent.
type page struct{ ID, URL string }

// visit fills in the form of a page, and gives the address that it leads to.
func (b backend) visit(ctx context.Context, address string, form url.Values) (next string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, _, err := b.send(request)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("a page of the sandbox answers %s", answer.Status)
	}
	return answer.Header.Get("Location"), nil
}

// pay pays at a hosted page, and authenticates where the card's bank asks for it.
func (b backend) pay(ctx context.Context, address, card string) error {
	next, err := b.visit(ctx, address, url.Values{"card": {card}})
	if err == nil && strings.HasPrefix(next, b.base+"/sandbox/") && strings.Contains(next, "/authenticate/") {
		_, err = b.visit(ctx, next, url.Values{"result": {"complete"}})
	}
	return err
}

// sandboxPath is where the application's sandbox is steered.
func (t *tale) sandboxPath(name string) string {
	return "/sandbox/apps/" + t.app.ID.Format(ids.Application) + "/" + name
}

type clockAnswer struct{ Now int64 }

// clock is the application's time.
func (t *tale) clock(ctx context.Context) (int64, error) {
	var shown clockAnswer
	_, err := t.backend.call(ctx, http.MethodGet, t.sandboxPath("clock"), nil, &shown, http.StatusOK)
	return shown.Now, err
}

// advance moves the application's clock. Whatever happens on the way has happened,
// and is known to everybody, when it returns.
func (t *tale) advance(ctx context.Context, to int64) error {
	var shown clockAnswer
	err := t.backend.post(ctx, t.sandboxPath("clock"), object{"advanceTo": to}, &shown)
	t.now = shown.Now
	return err
}
