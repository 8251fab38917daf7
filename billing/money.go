package billing

import (
	"strings"

	"purser/metering"
)

// MaxAmountCents is the largest price of a plan.
const MaxAmountCents = 99_999_999

// ParseMoney parses an amount such as "29" or "29.00" into the currency's smallest
// unit. The currency limits the number of decimals.
func ParseMoney(text, currency string) (amountCents int64, ok bool) {
	value, ok := metering.ParseDecimal(text, Decimals(currency))
	if !ok || value > MaxAmountCents {
		return 0, false
	}
	return int64(value), true
}

// Decimal formats the amount as ParseMoney parses it, such as "29.00".
func (p Price) Decimal() string {
	amount, _, _ := strings.Cut(FormatMoney(p.AmountCents, p.Currency), " ")
	return amount
}
