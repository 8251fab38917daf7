package sandbox

import (
	"slices"

	"purser/payments/sandbox/engine"
)

func createProduct(c *call) (engine.Doc, error) {
	id, fields := c.params.Text("id"), productFields(c)
	if err := c.params.Problem(); err != nil {
		return nil, err
	}
	product, err := c.account.CreateProduct(c.env, id, fields)
	return show(c, product, err)
}

func listProducts(c *call) (engine.Doc, error) {
	active, within := c.params.Bool("active"), c.timeRange("created")
	return list(c, c.account.Products, engine.Filter[engine.Product]{Keep: func(p *engine.Product) bool {
		return (active == nil || *active == p.Active) && within.Contains(p.Created)
	}})
}

func updateProduct(c *call) (engine.Doc, error) {
	return applyTo(c, c.account.UpdateProduct, productFields(c))
}

func productFields(c *call) engine.ProductFields {
	return engine.ProductFields{
		Name: c.params.MaybeText("name"), Description: c.params.MaybeText("description"), Active: c.params.Bool("active"),
		DefaultPrice: c.params.MaybeText("default_price"), Metadata: c.params.Pairs("metadata"),
	}
}

func createPrice(c *call) (engine.Doc, error) {
	recurring := c.params.Group("recurring")
	p := engine.NewPrice{
		Product: c.params.Text("product"), Currency: c.params.Text("currency"), Amount: c.params.Int("unit_amount"), Active: c.params.Bool("active"),
		LookupKey: c.params.Text("lookup_key"), TransferLookupKey: isTrue(c.params.Bool("transfer_lookup_key")),
		Nickname: c.params.Text("nickname"), Metadata: c.params.Pairs("metadata"),
		Interval: engine.Interval{Unit: recurring.OneOf("interval", "day", "week", "month", "year")},
	}
	recurring.OneOf("usage_type", "licensed")
	c.params.OneOf("billing_scheme", "per_unit")
	count := recurring.Int("interval_count")
	if p.Interval.Unit != "" {
		p.Interval.Count = 1
		if count != nil {
			p.Interval.Count = int(*count)
		}
	}
	return apply(c, c.account.CreatePrice, p)
}

func updatePrice(c *call) (engine.Doc, error) {
	fields := engine.PriceFields{
		Active: c.params.Bool("active"), LookupKey: c.params.MaybeText("lookup_key"), TransferLookupKey: isTrue(c.params.Bool("transfer_lookup_key")),
		Nickname: c.params.MaybeText("nickname"), Metadata: c.params.Pairs("metadata"),
	}
	return applyTo(c, c.account.UpdatePrice, fields)
}

func listPrices(c *call) (engine.Doc, error) {
	product, keys, active, within := c.params.Text("product"), c.params.Texts("lookup_keys"), c.params.Bool("active"), c.timeRange("created")
	currency, kind := c.params.Text("currency"), c.params.OneOf("type", "one_time", "recurring")
	return list(c, c.account.Prices, engine.Filter[engine.Price]{Parent: product, Keep: func(p *engine.Price) bool {
		return matches(currency, p.Currency) && within.Contains(p.Created) &&
			(active == nil || *active == p.Active) && (len(keys) == 0 || slices.Contains(keys, p.LookupKey)) &&
			(kind == "" || (kind == "recurring") == p.Recurring())
	}})
}

func isTrue(b *bool) bool { return b != nil && *b }
