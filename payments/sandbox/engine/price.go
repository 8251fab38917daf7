package engine

import "purser/payments/sandbox/persist"

// Price is a price of a product. Its amount, currency and interval never change: the
// API has no parameter for it.
type Price struct {
	Head
	Product   string
	Currency  string
	Amount    int64
	Interval  Interval // without a unit for a one-time price
	Active    bool
	LookupKey string
	Nickname  string
	Metadata  map[string]string
}

type NewPrice struct {
	Product           string
	Currency          string
	Amount            *int64
	Interval          Interval
	Active            *bool
	LookupKey         string
	TransferLookupKey bool
	Nickname          string
	Metadata          map[string]string
}

// maxAmount is the largest amount that Stripe accepts: eight digits.
const maxAmount = 99_999_999

func (a *Account) CreatePrice(env Env, p NewPrice) (*Price, error) {
	product, err := find(a.Products, "product", "product", p.Product)
	if err != nil {
		return nil, err
	}
	if err := checkAmount(p.Amount, p.Currency); err != nil {
		return nil, err
	}
	if p.Interval.Unit != "" {
		if limit := maxIntervalCount[p.Interval.Unit]; limit == 0 || p.Interval.Count < 1 || p.Interval.Count > limit {
			return nil, invalid("recurring", "An interval must be a number of days, weeks, months or years, and at most %d years long.", maxIntervalYears)
		}
	}
	head := a.newHead(env, "price_")
	price := &Price{
		Head: head, Product: product.ID, Currency: p.Currency, Amount: *p.Amount, Interval: p.Interval,
		Active: true, Nickname: p.Nickname,
	}
	if err := mergeMetadata(&price.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	set(&price.Active, p.Active)
	if err := a.claimLookupKey(price, p.LookupKey, p.TransferLookupKey); err != nil {
		return nil, err
	}
	a.Prices.Put(price)
	a.emit(env, "price.created", price)
	return price, nil
}

func checkAmount(amount *int64, currency string) error {
	if err := checkCurrency(currency); err != nil {
		return err
	}
	if amount == nil {
		return missingParam("unit_amount")
	}
	if *amount < 0 || *amount > maxAmount {
		return invalid("unit_amount", "Amount must be between 0 and %d.", maxAmount).withCode("parameter_invalid_integer")
	}
	return nil
}

// PriceFields holds the parameters of UpdatePrice; nil leaves a field unchanged.
type PriceFields struct {
	Active            *bool
	LookupKey         *string
	TransferLookupKey bool
	Nickname          *string
	Metadata          map[string]string
}

// UpdatePrice changes the given fields. A product's default price cannot be
// archived.
func (a *Account) UpdatePrice(env Env, id string, p PriceFields) (*Price, error) {
	price, err := Get(a.Prices, "price", id)
	if err != nil {
		return nil, err
	}
	if p.Active != nil && !*p.Active && a.Products.Get(price.Product).DefaultPrice == price.ID {
		return nil, invalid("active", "This price cannot be archived because it is the default price of its product.")
	}
	was := a.Render(price)
	set(&price.Active, p.Active)
	set(&price.Nickname, p.Nickname)
	if err := mergeMetadata(&price.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	if p.LookupKey != nil {
		if err := a.claimLookupKey(price, *p.LookupKey, p.TransferLookupKey); err != nil {
			return nil, err
		}
	}
	a.emitChange(env, "price.updated", was, price)
	return price, nil
}

// claimLookupKey sets the price's lookup key, which is unique. With transfer it is taken
// from the price that has it.
func (a *Account) claimLookupKey(price *Price, key string, transfer bool) error {
	if err := checkReference("lookup_key", key); err != nil {
		return err
	}
	for _, other := range a.Prices.By(persist.ByAlias, key) {
		if other == price {
			continue
		}
		if !transfer {
			return invalid("lookup_key", "A price (`%s`) already uses that lookup key.", other.ID)
		}
		other.LookupKey = ""
	}
	price.LookupKey = key
	return nil
}

// Recurring reports whether the price has a billing interval.
func (p *Price) Recurring() bool { return p.Interval.Unit != "" }

// minimums are Stripe's published minimum charge amounts; other currencies have that
// of the dollar.
var minimums = map[string]int64{
	"aed": 200, "bgn": 100, "czk": 1500, "dkk": 250, "gbp": 30, "hkd": 400, "huf": 17500,
	"mxn": 1000, "myr": 200, "nok": 300, "pln": 200, "ron": 200, "sek": 300, "thb": 1000,
}

func minimum(currency string) int64 {
	if least, listed := minimums[currency]; listed {
		return least
	}
	return 50
}
