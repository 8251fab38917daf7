package component

import "purser/metering"

// TotalText is a sum over wallets in credits, exact, such as "1,250.5".
func TotalText(t metering.Total) string { return separate(t.Credits()) }

// DigitsText parts the digits of a whole number of any length, such as "1,250".
func DigitsText(digits string) string { return separate(digits) }
