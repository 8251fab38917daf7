package engine

import (
	"fmt"
	"math/big"
	"slices"
)

// ItemChange is what a caller wants of one item.
type ItemChange struct {
	ID       string // of the item to change in place; empty adds one
	Price    string
	Quantity *int64
	Deleted  bool
	Metadata map[string]string
}

// maxItems is Stripe's limit for a subscription.
const maxItems = 20

// changeItems gives the items as they would be. Nothing is applied.
func (w *Account) changeItems(m Clock, old []Item, changes []ItemChange) ([]Item, error) {
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
			items = append(items, Item{ID: m.token("si_", idLength), Quantity: 1, Created: m.Now})
		}
		item := &items[at]
		if change.Price != "" {
			price, err := w.usablePrice(change.Price, fmt.Sprintf("items[%d][price]", n))
			if err != nil {
				return nil, err
			}
			item.Price = price.ID
		}
		set(&item.Quantity, change.Quantity)
		if err := merge(&item.Metadata, change.Metadata); err != nil {
			return nil, err
		}
	}
	return items, w.checkItems(items)
}

// usablePrice finds a price that may be subscribed to now.
func (w *Account) usablePrice(id, param string) (*Price, error) {
	price, err := find(w.Prices, "price", param, id)
	if err != nil {
		return nil, err
	}
	if !price.Active {
		return nil, invalid(param, "The price specified is inactive. This field only accepts active prices.")
	}
	if !price.Recurring() {
		return nil, invalid(param, "The price specified is set to `type=one_time` but this field only accepts prices with `type=recurring`.")
	}
	return price, nil
}

// checkItems holds what must be true of the items together.
func (w *Account) checkItems(items []Item) error {
	if len(items) == 0 {
		return absent("items")
	}
	if len(items) > maxItems {
		return invalid("items", "A subscription can have at most %d items.", maxItems)
	}
	prices := map[string]bool{}
	for _, item := range items {
		price := w.Prices.Get(item.Price)
		if price == nil {
			return absent("items[0][price]")
		}
		if item.Quantity < 0 {
			return invalid("items", "Quantity must not be negative.")
		}
		if prices[item.Price] {
			return invalid("items", "Cannot add multiple subscription items with the same price: %s", item.Price)
		}
		prices[item.Price] = true
		first := w.Prices.Get(items[0].Price)
		if price.Currency != first.Currency || price.Interval != first.Interval {
			return invalid("items", "Currency and interval fields must match across all prices on this subscription.")
		}
	}
	return nil
}

// interval is that of the items, which all have the same.
func (w *Account) interval(items []Item) Interval { return w.Prices.Get(items[0].Price).Interval }

// linesFor charges the items for a period.
func (w *Account) linesFor(items []Item, start, end Time) []Line {
	lines := make([]Line, 0, len(items))
	for _, item := range items {
		price := w.Prices.Get(item.Price)
		lines = append(lines, Line{
			Description: fmt.Sprintf("%d × %s (per %s)", item.Quantity, w.Products.Get(price.Product).Name, price.Interval.Unit),
			Price:       price.ID, Quantity: item.Quantity, Amount: price.Amount * item.Quantity, Item: item.ID, Start: start, End: end,
		})
	}
	return lines
}

// unused gives back what is left of the period that was paid for the items.
func (w *Account) unused(s *Subscription, now Time) []Line {
	return w.share(s, s.Items, now, -1, "Unused time on")
}

// remaining charges the items for what is left of the period.
func (w *Account) remaining(s *Subscription, items []Item, now Time) []Line {
	return w.share(s, items, now, 1, "Remaining time on")
}

func (w *Account) share(s *Subscription, items []Item, now Time, sign int64, words string) []Line {
	lines := w.linesFor(items, now, s.PeriodEnd)
	for i := range lines {
		line := &lines[i]
		line.Proration = true
		line.Description = words + " " + line.Description
		line.Amount = sign * portion(line.Amount, int64(s.PeriodEnd-now), int64(s.PeriodEnd-s.PeriodStart))
	}
	return lines
}

// portion is amount × part ÷ whole, to the nearest unit. The product can pass
// 64 bits.
func portion(amount, part, whole int64) int64 {
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(part))
	product.Add(product, big.NewInt(whole/2))
	return product.Div(product, big.NewInt(whole)).Int64()
}
