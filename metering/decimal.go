package metering

import (
	"strconv"
	"strings"
)

// ParseDecimal parses form input such as "12.5" as an integer in units of the last
// place: with two places, 1250. Input with more places is refused, never silently
// rounded. So is a comma: it separates thousands in some locales and decimals in others.
func ParseDecimal(text string, places int) (uint64, bool) {
	whole, fraction, pointed := strings.Cut(text, ".")
	if whole == "" || pointed && fraction == "" || len(fraction) > places {
		return 0, false
	}
	digits := strings.TrimLeft(whole+fraction+strings.Repeat("0", places-len(fraction)), "0")
	if digits == "" {
		digits = "0"
	}
	if len(digits) > maxAmountDigits {
		return 0, false
	}
	value, ok := ParseAmount(digits)
	return uint64(value), ok
}

// FormatDecimal writes what ParseDecimal reads, without zeros at the end.
func FormatDecimal(value uint64, places int) string {
	digits := strconv.FormatUint(value, 10)
	if missing := places + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - places
	fraction := strings.TrimRight(digits[point:], "0")
	if fraction == "" {
		return digits[:point]
	}
	return digits[:point] + "." + fraction
}

const creditPlaces = 9

// ParseCredits reads an amount that a person wrote in credits.
func ParseCredits(text string) (Amount, bool) {
	value, ok := ParseDecimal(text, creditPlaces)
	return Amount(value), ok
}

// Credits writes the amount in credits, exactly, as ParseCredits reads it.
func (a Amount) Credits() string { return FormatDecimal(uint64(a), creditPlaces) }
