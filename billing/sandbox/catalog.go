package sandbox

import (
	"slices"

	"purser/billing/sandbox/engine"
)

func createProduct(c *call) (engine.Doc, error) {
	id, fields := c.in.Text("id"), productFields(c)
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	product, err := c.w.CreateProduct(c.m, id, fields)
	return show(c, product, err)
}

func listProducts(c *call) (engine.Doc, error) {
	active, within := c.in.Bool("active"), c.within("created")
	return list(c, c.w.Products, engine.Filter[engine.Product]{Keep: func(p *engine.Product) bool {
		return (active == nil || *active == p.Active) && within.Holds(p.Created)
	}})
}

func getProduct(c *call) (engine.Doc, error) { return get(c, c.w.Products, "product") }

func updateProduct(c *call) (engine.Doc, error) {
	fields := productFields(c)
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	product, err := c.w.UpdateProduct(c.m, c.id(), fields)
	return show(c, product, err)
}

func productFields(c *call) engine.ProductFields {
	return engine.ProductFields{
		Name: c.in.MaybeText("name"), Description: c.in.MaybeText("description"), Active: c.in.Bool("active"),
		DefaultPrice: c.in.MaybeText("default_price"), Metadata: c.in.Pairs("metadata"),
	}
}

func createPrice(c *call) (engine.Doc, error) {
	recurring := c.in.Group("recurring")
	p := engine.NewPrice{
		Product: c.in.Text("product"), Currency: c.in.Text("currency"), Amount: c.in.Int("unit_amount"), Active: c.in.Bool("active"),
		LookupKey: c.in.Text("lookup_key"), TransferLookupKey: isTrue(c.in.Bool("transfer_lookup_key")),
		Nickname: c.in.Text("nickname"), Metadata: c.in.Pairs("metadata"),
		Interval: engine.Interval{Unit: recurring.OneOf("interval", "day", "week", "month", "year")},
	}
	recurring.OneOf("usage_type", "licensed")
	c.in.OneOf("billing_scheme", "per_unit")
	count := recurring.Int("interval_count")
	if p.Interval.Unit != "" {
		p.Interval.Count = 1
		if count != nil {
			p.Interval.Count = int(*count)
		}
	}
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	price, err := c.w.CreatePrice(c.m, p)
	return show(c, price, err)
}

func getPrice(c *call) (engine.Doc, error) { return get(c, c.w.Prices, "price") }

func updatePrice(c *call) (engine.Doc, error) {
	fields := engine.PriceFields{
		Active: c.in.Bool("active"), LookupKey: c.in.MaybeText("lookup_key"), TransferLookupKey: isTrue(c.in.Bool("transfer_lookup_key")),
		Nickname: c.in.MaybeText("nickname"), Metadata: c.in.Pairs("metadata"),
	}
	if err := c.in.Problem(); err != nil {
		return nil, err
	}
	price, err := c.w.UpdatePrice(c.m, c.id(), fields)
	return show(c, price, err)
}

func listPrices(c *call) (engine.Doc, error) {
	product, keys, active, within := c.in.Text("product"), c.in.Texts("lookup_keys"), c.in.Bool("active"), c.within("created")
	currency, kind := c.in.Text("currency"), c.in.OneOf("type", "one_time", "recurring")
	return list(c, c.w.Prices, engine.Filter[engine.Price]{Parent: product, Keep: func(p *engine.Price) bool {
		return matches(currency, p.Currency) && within.Holds(p.Created) &&
			(active == nil || *active == p.Active) && (len(keys) == 0 || slices.Contains(keys, p.LookupKey)) &&
			(kind == "" || (kind == "recurring") == p.Recurring())
	}})
}

func isTrue(b *bool) bool { return b != nil && *b }
