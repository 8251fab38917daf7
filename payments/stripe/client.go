package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"

	"purser/httpd/outgoing"
)

const (
	// callTimeout bounds one attempt of a call. The SDK's default is 80 seconds,
	// longer than any caller waits.
	callTimeout = 20 * time.Second
	// maxRetries is how often the SDK retries a call without a response, or with one
	// that allows a retry, under the same idempotency key.
	maxRetries = 2
	// pageSize is Stripe's maximum page size.
	pageSize = 100
)

// Access is the credentials and address of an account.
type Access struct {
	Key string // the account's secret key
	// SandboxURL is the address of the sandbox, with its path; empty for Stripe.
	SandboxURL string
	// Transport replaces the default HTTP transport: an in-process handler or a proxy.
	Transport http.RoundTripper
}

// Client calls the API of one account.
type Client struct {
	api *client.API
}

// New creates a client. It makes no call.
func New(access Access) *Client {
	address := sdk.APIURL
	if access.SandboxURL != "" {
		address = strings.TrimRight(access.SandboxURL, "/")
	}
	config := &sdk.BackendConfig{
		URL:               sdk.String(address),
		HTTPClient:        httpClient(address, access.Transport),
		MaxNetworkRetries: sdk.Int64(maxRetries),
		EnableTelemetry:   sdk.Bool(false),
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull}, // it would log parameters; callers log the Problem
	}
	backend := sdk.GetBackendWithConfig(sdk.APIBackend, config)
	return &Client{api: client.New(access.Key, &sdk.Backends{API: backend, Connect: backend, Uploads: backend})}
}

func httpClient(address string, transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = http.DefaultTransport
	}
	host := ""
	if parsed, err := url.Parse(address); err == nil {
		host = parsed.Host
	}
	client := outgoing.NewClient(oneHost{host: host, next: transport})
	client.Timeout = callTimeout
	return client
}

// oneHost refuses requests to any other host, redirects included: the key must not be
// sent elsewhere.
type oneHost struct {
	host string
	next http.RoundTripper
}

var errOtherHost = errors.New("stripe: request to another host refused")

func (t oneHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.host {
		return nil, fmt.Errorf("%w: %s", errOtherHost, r.URL.Host)
	}
	watched, ok := r.Context().Value(triesKey{}).(*tries)
	if !ok {
		return t.next.RoundTrip(r)
	}
	// Go's transport repeats a request that has an idempotency key when a reused connection
	// breaks before the response, and returns the last response only.
	var sent atomic.Int32
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Add(1) }}
	response, err := t.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil || !isRefusal(response.StatusCode) || sent.Load() > 1 {
		watched.unknown = true
	}
	return response, err
}

// tries is what is known of all tries of a call, of which the SDK returns the last.
type tries struct {
	unknown bool // one of them was not refused, and may take effect
}

type triesKey struct{}

func watchTries(ctx context.Context) (context.Context, *tries) {
	t := &tries{}
	return context.WithValue(ctx, triesKey{}, t), t
}

// params are the common parameters of calls that read.
func params(ctx context.Context, expand ...string) sdk.Params {
	p := sdk.Params{Context: ctx}
	for _, path := range expand {
		p.AddExpand(path)
	}
	return p
}

// keyed are the common parameters of calls that change something.
func keyed(ctx context.Context, key string, expand ...string) sdk.Params {
	p := params(ctx, expand...)
	p.SetIdempotencyKey(key)
	return p
}

// onePage requests the first page of a list only.
func onePage(ctx context.Context, size int64) sdk.ListParams {
	return sdk.ListParams{Context: ctx, Limit: sdk.Int64(size), Single: true}
}

// allPages requests a whole list.
func allPages(ctx context.Context) sdk.ListParams {
	return sdk.ListParams{Context: ctx, Limit: sdk.Int64(pageSize)}
}

// pageAfter requests a list starting after an object id; from its beginning when that
// is empty.
func pageAfter(ctx context.Context, after string) sdk.ListParams {
	p := allPages(ctx)
	if after != "" {
		p.StartingAfter = sdk.String(after)
	}
	return p
}

// Listed is an item of a list: its own id, the cursor for continuing the list, and the
// object to refresh; empty for none.
type Listed struct{ ID, ObjectID string }

// milliseconds converts a Stripe timestamp, which is in seconds.
func milliseconds(seconds int64) int64 { return seconds * 1000 }

func seconds(ms int64) int64 { return ms / 1000 }
