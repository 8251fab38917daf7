package engine

import (
	"fmt"
	"math/big"
	"slices"
)

// ItemChange is an item parameter.
type ItemChange struct {
	ID       string // of the item to change in place; empty adds one
	Price    string
	Quantity *int64
	Deleted  bool
	Metadata map[string]string
}

// maxItems is Stripe's limit for a subscription.
const maxItems = 20

// changeItems returns the items after the changes, without applying them.
func (a *Account) changeItems(env Env, old []Item, changes []ItemChange) ([]Item, error) {
	items := slices.Clone(old)
	for n, change := range changes {
		at := slices.IndexFunc(items, func(i Item) bool { return i.ID == change.ID && change.ID != "" })
		switch {
		case change.ID != "" && at < 0:
			return nil, missing("subscription item", fmt.Sprintf("items[%d][id]", n), change.ID)
		case change.Deleted && at >= 0:
			items = slices.Delete(items, at, at+1)
			continue
		case at < 0:
			at = len(items)
			items = append(items, Item{ID: env.token("si_", idLength), Quantity: 1, Created: env.Now})
		}
		item := &items[at]
		if change.Price != "" {
			price, err := a.usablePrice(change.Price, fmt.Sprintf("items[%d][price]", n))
			if err != nil {
				return nil, err
			}
			item.Price = price.ID
		}
		set(&item.Quantity, change.Quantity)
		if err := mergeMetadata(&item.Metadata, change.Metadata); err != nil {
			return nil, err
		}
	}
	return items, a.checkItems(items)
}

// usablePrice finds a price that can be subscribed to: active and recurring.
func (a *Account) usablePrice(id, param string) (*Price, error) {
	price, err := find(a.Prices, "price", param, id)
	if err != nil {
		return nil, err
	}
	if err := a.checkActive(price, param); err != nil {
		return nil, err
	}
	if !price.Recurring() {
		return nil, invalid(param, "The price specified is set to `type=one_time` but this field only accepts prices with `type=recurring`.")
	}
	return price, nil
}

// checkActive refuses an archived price, and one of an archived product.
func (a *Account) checkActive(price *Price, param string) error {
	switch {
	case !price.Active:
		return invalid(param, "The price specified is inactive. This field only accepts active prices.")
	case !a.Products.Get(price.Product).Active:
		return invalid(param, "Price `%s` is not available to be purchased because its product is not active.", price.ID)
	}
	return nil
}

// checkItems validates the items together.
func (a *Account) checkItems(items []Item) error {
	if len(items) == 0 {
		return missingParam("items")
	}
	if len(items) > maxItems {
		return invalid("items", "A subscription can have at most %d items.", maxItems)
	}
	prices := map[string]bool{}
	for _, item := range items {
		price := a.Prices.Get(item.Price)
		if price == nil {
			return missingParam("items[0][price]")
		}
		if item.Quantity < 0 {
			return invalid("items", "Quantity must not be negative.")
		}
		if prices[item.Price] {
			return invalid("items", "Cannot add multiple subscription items with the same price: %s", item.Price)
		}
		prices[item.Price] = true
		first := a.Prices.Get(items[0].Price)
		if price.Currency != first.Currency || price.Interval != first.Interval {
			return invalid("items", "Currency and interval fields must match across all prices on this subscription.")
		}
	}
	return nil
}

// interval is the interval that all items share.
func (a *Account) interval(items []Item) Interval { return a.Prices.Get(items[0].Price).Interval }

// linesFor returns the invoice lines of the items for a period.
func (a *Account) linesFor(items []Item, start, end Time) []Line {
	lines := make([]Line, 0, len(items))
	for _, item := range items {
		price := a.Prices.Get(item.Price)
		lines = append(lines, Line{
			Description: fmt.Sprintf("%d × %s (per %s)", item.Quantity, a.Products.Get(price.Product).Name, price.Interval.Unit),
			Price:       price.ID, Quantity: item.Quantity, Amount: price.Amount * item.Quantity, Item: item.ID, Start: start, End: end,
		})
	}
	return lines
}

// prorationCredit credits the unused time of the current period.
func (a *Account) prorationCredit(s *Subscription, now Time) []Line {
	return a.prorate(s, s.Items, now, -1, "Unused time on")
}

// prorationCharge charges the items for the rest of the period.
func (a *Account) prorationCharge(s *Subscription, items []Item, now Time) []Line {
	return a.prorate(s, items, now, 1, "Remaining time on")
}

func (a *Account) prorate(s *Subscription, items []Item, now Time, sign int64, words string) []Line {
	lines := a.linesFor(items, now, s.PeriodEnd)
	for i := range lines {
		line := &lines[i]
		line.Proration = true
		line.Description = words + " " + line.Description
		line.Amount = sign * mulDiv(line.Amount, int64(s.PeriodEnd-now), int64(s.PeriodEnd-s.PeriodStart))
	}
	return lines
}

// mulDiv is amount × part ÷ whole, rounded to the nearest unit. The product may exceed
// 64 bits.
func mulDiv(amount, part, whole int64) int64 {
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(part))
	product.Add(product, big.NewInt(whole/2))
	return product.Div(product, big.NewInt(whole)).Int64()
}
