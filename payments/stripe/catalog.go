package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v79"

	"purser/billing"
)

// Product is a plan's product.
type Product struct {
	ID     string
	Name   string
	Active bool
}

func (c *Client) Product(ctx context.Context, id string) (Product, error) {
	p, err := c.api.Products.Get(id, &sdk.ProductParams{Params: params(ctx)})
	if err != nil {
		return Product{}, problem(err)
	}
	return Product{ID: p.ID, Name: p.Name, Active: p.Active}, nil
}

// CreateProduct creates a product under an id that we choose.
func (c *Client) CreateProduct(ctx context.Context, key string, p Product, metadata map[string]string) error {
	_, err := c.api.Products.New(&sdk.ProductParams{
		Params:   keyed(ctx, key),
		ID:       sdk.String(p.ID),
		Name:     sdk.String(p.Name),
		Active:   sdk.Bool(p.Active),
		Metadata: metadata,
	})
	return problem(err)
}

// UpdateProduct sets the product's name and active flag.
func (c *Client) UpdateProduct(ctx context.Context, key string, p Product) error {
	_, err := c.api.Products.Update(p.ID, &sdk.ProductParams{
		Params: keyed(ctx, key),
		Name:   sdk.String(p.Name),
		Active: sdk.Bool(p.Active),
	})
	return problem(err)
}

// Price is a price of a product. Only its active flag can change.
type Price struct {
	ID        string
	ProductID string
	Reference string // its lookup key
	Active    bool
	billing.Price
}

func (c *Client) Price(ctx context.Context, id string) (Price, error) {
	p, err := c.api.Prices.Get(id, &sdk.PriceParams{Params: params(ctx)})
	if err != nil {
		return Price{}, problem(err)
	}
	return priceOf(p), nil
}

// PriceByReference finds a price by its lookup key.
func (c *Client) PriceByReference(ctx context.Context, reference string) (Price, error) {
	list := c.api.Prices.List(&sdk.PriceListParams{ListParams: onePage(ctx, 1), LookupKeys: sdk.StringSlice([]string{reference})})
	for list.Next() {
		return priceOf(list.Price()), nil
	}
	if err := list.Err(); err != nil {
		return Price{}, problem(err)
	}
	return Price{}, &Problem{Kind: NotFound, Message: "There is no price " + reference + "."}
}

func priceOf(p *sdk.Price) Price {
	price := Price{ID: p.ID, Reference: p.LookupKey, Active: p.Active, Price: billing.Price{AmountCents: p.UnitAmount, Currency: string(p.Currency)}}
	if p.Product != nil {
		price.ProductID = p.Product.ID
	}
	if p.Recurring != nil && p.Recurring.IntervalCount == 1 { // no plan has another
		price.Interval = billing.Interval(p.Recurring.Interval)
	}
	return price
}

// CreatePrice creates a recurring price, which takes the lookup key from another that
// has it. Amounts are in the currency's smallest unit on both sides.
func (c *Client) CreatePrice(ctx context.Context, key string, p Price, metadata map[string]string) (Price, error) {
	made, err := c.api.Prices.New(&sdk.PriceParams{
		Params:     keyed(ctx, key),
		Product:    sdk.String(p.ProductID),
		Currency:   sdk.String(p.Currency),
		UnitAmount: sdk.Int64(p.AmountCents),
		Recurring:  &sdk.PriceRecurringParams{Interval: sdk.String(string(p.Interval))},
		LookupKey:  sdk.String(p.Reference),
		Metadata:   metadata,

		TransferLookupKey: sdk.Bool(true),
	})
	if err != nil {
		return Price{}, problem(err)
	}
	return priceOf(made), nil
}

// SetPriceActive activates or archives a price.
func (c *Client) SetPriceActive(ctx context.Context, key, id string, active bool) error {
	_, err := c.api.Prices.Update(id, &sdk.PriceParams{Params: keyed(ctx, key), Active: sdk.Bool(active)})
	return problem(err)
}
