package component

import (
	"strings"

	"purser/metering"
)

// TotalText is a sum over wallets in credits, exact, such as "1,250.5".
func TotalText(t metering.Total) string { return separate(t.Credits()) }

// RoundedTotalText is a sum over wallets in credits, rounded as RoundedText does.
func RoundedTotalText(t metering.Total) string {
	places := 2
	if strings.HasPrefix(t.Credits(), "0.") {
		places = 4
	}
	return separate(roundDecimal(t.Credits(), places))
}

// DigitsText parts the digits of a whole number of any length, such as "1,250".
func DigitsText(digits string) string { return separate(digits) }
