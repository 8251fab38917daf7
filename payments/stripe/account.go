package stripe

import (
	"context"
	"encoding/json"
	"net/http"

	sdk "github.com/stripe/stripe-go/v79"
)

// APIVersion is the version of Stripe's API that this package is written for.
const APIVersion = sdk.APIVersion

// Account returns the id of the account that the key belongs to.
func (c *Client) Account(ctx context.Context) (id string, err error) {
	// The SDK's own method takes no context.
	account := &sdk.Account{}
	accounts := c.api.Accounts
	err = accounts.B.Call(http.MethodGet, "/v1/account", accounts.Key, &sdk.AccountParams{Params: params(ctx)}, account)
	if err != nil {
		return "", problem(err)
	}
	return account.ID, nil
}

// CreateEndpoint creates a webhook endpoint for the event types and returns its
// signing secret, which Stripe shows only once.
func (c *Client) CreateEndpoint(ctx context.Context, key, url string, types []string) (id, secret string, err error) {
	made, err := c.api.WebhookEndpoints.New(&sdk.WebhookEndpointParams{
		Params:        keyed(ctx, key),
		URL:           sdk.String(url),
		EnabledEvents: sdk.StringSlice(types),
		APIVersion:    sdk.String(APIVersion),
	})
	if err != nil {
		return "", "", problem(err)
	}
	return made.ID, made.Secret, nil
}

// Events lists the events of all types since a time, newest first, starting after the
// given event id. Stripe lists at most 20 types by name.
func (c *Client) Events(ctx context.Context, since int64, after string, each func(Event) error) error {
	list := c.api.Events.List(&sdk.EventListParams{
		ListParams:   pageAfter(ctx, after),
		CreatedRange: &sdk.RangeQueryParams{GreaterThanOrEqual: seconds(since)},
	})
	for list.Next() {
		e := list.Event()
		out := Event{ID: e.ID, Type: string(e.Type), APIVersion: e.APIVersion, Live: e.Livemode, CreatedAt: milliseconds(e.Created)}
		if e.Data != nil {
			// An object that cannot be decoded has no id, and enqueues no job.
			_ = json.Unmarshal(e.Data.Raw, &out.Object)
		}
		if err := each(out); err != nil {
			return err
		}
	}
	return problem(list.Err())
}
