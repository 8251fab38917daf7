package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v79"

	"purser/billing"
)

// CreateCustomer creates a customer with metadata only: the identity stays private.
// When the key replays a customer that was deleted since, it returns a Problem with a
// saved answer: only another key creates another customer.
func (c *Client) CreateCustomer(ctx context.Context, key string, metadata map[string]string) (id string, err error) {
	made, err := c.api.Customers.New(&sdk.CustomerParams{Params: keyed(ctx, key), Metadata: metadata})
	if err != nil {
		return "", problem(err)
	}
	if !isReplayed(made.LastResponse) {
		return made.ID, nil
	}
	current, err := c.api.Customers.Get(made.ID, &sdk.CustomerParams{Params: params(ctx)})
	if err != nil && !IsGone(readProblem(err)) {
		return "", problem(err)
	}
	if err != nil || current.Deleted {
		return "", &Problem{Kind: NotFound, Message: "The customer " + made.ID + " was deleted.", Saved: true}
	}
	return made.ID, nil
}

// SetCustomerMetadata sets values of a customer's metadata; an empty one removes its key.
func (c *Client) SetCustomerMetadata(ctx context.Context, key, id string, metadata map[string]string) error {
	_, err := c.api.Customers.Update(id, &sdk.CustomerParams{Params: keyed(ctx, key), Metadata: metadata})
	return problem(err)
}

// creditedInvoice is the metadata key by which a balance credit names the invoice that
// it returns.
const creditedInvoice = "credited_invoice"

// BalanceReturned reports whether the customer's balance was credited for the invoice.
func (c *Client) BalanceReturned(ctx context.Context, customerID, invoiceID string) (bool, error) {
	list := c.api.CustomerBalanceTransactions.List(&sdk.CustomerBalanceTransactionListParams{
		ListParams: allPages(ctx), Customer: sdk.String(customerID),
	})
	for list.Next() {
		if list.CustomerBalanceTransaction().Metadata[creditedInvoice] == invoiceID {
			return true, nil
		}
	}
	return false, problem(list.Err())
}

// ReturnBalance credits to the customer's balance what it has paid of an invoice.
func (c *Client) ReturnBalance(ctx context.Context, key string, invoice billing.ProviderInvoice) error {
	_, err := c.api.CustomerBalanceTransactions.New(&sdk.CustomerBalanceTransactionParams{
		Params:      keyed(ctx, key),
		Customer:    sdk.String(invoice.CustomerID),
		Amount:      sdk.Int64(-invoice.FromBalance), // negative is in the customer's favour
		Currency:    sdk.String(invoice.Currency),
		Description: sdk.String("Returned from invoice " + invoice.ID),
		Metadata:    map[string]string{creditedInvoice: invoice.ID},
	})
	return problem(err)
}

// CreatePortal opens a billing portal session under the configuration.
func (c *Client) CreatePortal(ctx context.Context, key, customerID, configuration, returnURL string) (url string, err error) {
	made, err := c.api.BillingPortalSessions.New(&sdk.BillingPortalSessionParams{
		Params:        keyed(ctx, key),
		Customer:      sdk.String(customerID),
		ReturnURL:     sdk.String(returnURL),
		Configuration: sdk.String(configuration),
	})
	if err != nil {
		return "", problem(err)
	}
	return made.URL, nil
}

// CreatePortalConfiguration creates the portal's configuration: card update and
// invoice history. Plans are changed and cancelled only through this service: two
// writers would undo each other's changes.
func (c *Client) CreatePortalConfiguration(ctx context.Context, key, headline string) (id string, err error) {
	made, err := c.api.BillingPortalConfigurations.New(&sdk.BillingPortalConfigurationParams{
		Params:          keyed(ctx, key),
		BusinessProfile: &sdk.BillingPortalConfigurationBusinessProfileParams{Headline: sdk.String(headline)},
		Features: &sdk.BillingPortalConfigurationFeaturesParams{
			PaymentMethodUpdate: &sdk.BillingPortalConfigurationFeaturesPaymentMethodUpdateParams{Enabled: sdk.Bool(true)},
			InvoiceHistory:      &sdk.BillingPortalConfigurationFeaturesInvoiceHistoryParams{Enabled: sdk.Bool(true)},
			SubscriptionCancel:  &sdk.BillingPortalConfigurationFeaturesSubscriptionCancelParams{Enabled: sdk.Bool(false)},
		},
	})
	if err != nil {
		return "", problem(err)
	}
	return made.ID, nil
}
