package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/client"
)

const (
	// callTimeout is for one try of a call. The library's own limit is 80 seconds,
	// which is longer than anybody waits.
	callTimeout = 20 * time.Second
	// maxRetries is how often the library repeats a call that got no answer, or one
	// that says "again", under the same idempotency key.
	maxRetries = 2
	// pageSize is the longest page that Stripe gives.
	pageSize = 100
)

// Access is what it takes to be a client of an account.
type Access struct {
	Key string // the account's secret key
	// SandboxURL is the address of the sandbox, with its path; empty for Stripe.
	SandboxURL string
	// Transport is how the address is reached: in the same process, or through a
	// proxy. Nil for the usual way.
	Transport http.RoundTripper
}

// Client calls the API of one account.
type Client struct {
	api *client.API
}

// New makes a client. It makes no call.
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
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull}, // it would show parameters; callers log the problem
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
	return &http.Client{
		Timeout:       callTimeout,
		Transport:     oneHost{host: host, next: transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// oneHost lets requests leave for one address only: the key must not go anywhere
// else, whatever an answer says.
type oneHost struct {
	host string
	next http.RoundTripper
}

var errOtherHost = errors.New("stripe: a request for another address")

func (t oneHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.host {
		return nil, fmt.Errorf("%w: %s", errOtherHost, r.URL.Host)
	}
	return t.next.RoundTrip(r)
}

// params are those of every call that reads.
func params(ctx context.Context, expand ...string) sdk.Params {
	p := sdk.Params{Context: ctx}
	for _, path := range expand {
		p.AddExpand(path)
	}
	return p
}

// keyed are those of every call that changes something.
func keyed(ctx context.Context, key string, expand ...string) sdk.Params {
	p := params(ctx, expand...)
	p.SetIdempotencyKey(key)
	return p
}

// onePage asks for the first page of a list and no more.
func onePage(ctx context.Context, size int64) sdk.ListParams {
	return sdk.ListParams{Context: ctx, Limit: sdk.Int64(size), Single: true}
}

// allPages asks for a whole list.
func allPages(ctx context.Context) sdk.ListParams {
	return sdk.ListParams{Context: ctx, Limit: sdk.Int64(pageSize)}
}

// pageAfter asks for a list from behind the object with the id on; from its beginning
// when that is empty. A list that is too long to be read at once is gone on with
// so.
func pageAfter(ctx context.Context, after string) sdk.ListParams {
	p := allPages(ctx)
	if after != "" {
		p.StartingAfter = sdk.String(after)
	}
	return p
}

// Listed is a line of a list: its own id, by which the list can be gone on with,
// and the object that it is about; empty where there is none.
type Listed struct{ ID, ObjectID string }

// milliseconds is a time of Stripe, which counts in seconds; zero stays zero.
func milliseconds(seconds int64) int64 { return seconds * 1000 }

func seconds(ms int64) int64 { return ms / 1000 }
