package engine

import "purser/billing/sandbox/persist"

// Price is what a product costs. Its amount, currency and interval never
// change: the API has no parameter for it.
type Price struct {
	Head
	Product   string
	Currency  string
	Amount    int64
	Interval  Interval // without a unit for a price that is paid once
	Active    bool
	LookupKey string
	Nickname  string
	Metadata  map[string]string
}

// NewPrice is what a price is made from.
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

// maxAmount is the largest that Stripe takes: eight digits.
const maxAmount = 99_999_999

// CreatePrice makes a price for a product.
func (w *Account) CreatePrice(m Clock, p NewPrice) (*Price, error) {
	product, err := find(w.Products, "product", "product", p.Product)
	if err != nil {
		return nil, err
	}
	if err := checkAmount(p.Amount, p.Currency); err != nil {
		return nil, err
	}
	if p.Interval.Unit != "" {
		if most := mostOf[p.Interval.Unit]; most == 0 || p.Interval.Count < 1 || p.Interval.Count > most {
			return nil, invalid("recurring", "An interval must be a number of days, weeks, months or years, and at most %d years long.", maxIntervalYears)
		}
	}
	head := w.newHead(m, "price_")
	price := &Price{
		Head: head, Product: product.ID, Currency: p.Currency, Amount: *p.Amount, Interval: p.Interval,
		Active: true, Nickname: p.Nickname,
	}
	if err := merge(&price.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	set(&price.Active, p.Active)
	if err := w.claimLookupKey(price, p.LookupKey, p.TransferLookupKey); err != nil {
		return nil, err
	}
	w.Prices.Put(price)
	w.emit(m, "price.created", price)
	return price, nil
}

func checkAmount(amount *int64, currency string) error {
	if err := checkCurrency(currency); err != nil {
		return err
	}
	if amount == nil {
		return absent("unit_amount")
	}
	if *amount < 0 || *amount > maxAmount {
		return invalid("unit_amount", "Amount must be between 0 and %d.", maxAmount).withCode("parameter_invalid_integer")
	}
	return nil
}

// PriceFields is what may change about a price.
type PriceFields struct {
	Active            *bool
	LookupKey         *string
	TransferLookupKey bool
	Nickname          *string
	Metadata          map[string]string
}

// UpdatePrice changes what is given. A price that is its product's default
// cannot be archived.
func (w *Account) UpdatePrice(m Clock, id string, p PriceFields) (*Price, error) {
	price, err := Get(w.Prices, "price", id)
	if err != nil {
		return nil, err
	}
	if p.Active != nil && !*p.Active && w.Products.Get(price.Product).DefaultPrice == price.ID {
		return nil, invalid("active", "This price cannot be archived because it is the default price of its product.")
	}
	was := w.Render(price)
	set(&price.Active, p.Active)
	set(&price.Nickname, p.Nickname)
	if err := merge(&price.Metadata, p.Metadata); err != nil {
		return nil, err
	}
	if p.LookupKey != nil {
		if err := w.claimLookupKey(price, *p.LookupKey, p.TransferLookupKey); err != nil {
			return nil, err
		}
	}
	w.emitChange(m, "price.updated", was, price)
	return price, nil
}

// claimLookupKey gives the price a key that no other one has.
func (w *Account) claimLookupKey(price *Price, key string, transfer bool) error {
	if err := checkReference("lookup_key", key); err != nil {
		return err
	}
	for _, other := range w.Prices.By(persist.ByAlias, key) {
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

// Recurring reports whether the price is paid again and again.
func (p *Price) Recurring() bool { return p.Interval.Unit != "" }

// minimums are the smallest charges, as published for Stripe's currencies; what
// is not listed is treated like a dollar.
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
