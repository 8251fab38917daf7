package component

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"purser/billing"
	"purser/metering"
)

// AmountText is the amount in credits, exact, such as "1,250.5".
func AmountText(a metering.Amount) string { return separate(a.Credits()) }

// CountText is a whole number, such as "12,480".
func CountText(n uint64) string { return separate(strconv.FormatUint(n, 10)) }

// WholeNumber is a number that is never negative, such as a quantity.
func WholeNumber(n int64) string { return CountText(uint64(n)) }

// PercentText is a share in basis points, such as "12.5%".
func PercentText(basisPoints int64) string {
	return metering.FormatDecimal(uint64(max(basisPoints, 0)), 2) + "%"
}

// CurrencyOptions lists the currencies. A submitted one that is none stays in the form.
func CurrencyOptions(submitted string) (options []Option) {
	known := false
	for _, code := range billing.Currencies() {
		options = append(options, Option{Value: code, Text: strings.ToUpper(code)})
		known = known || code == submitted
	}
	if !known {
		options = append(options, Option{Value: submitted, Text: submitted})
	}
	return options
}

// MoneyText is money as people write it, such as "1,290.00 USD".
func MoneyText(amountCents int64, currency string) string {
	if amountCents < 0 {
		return "−" + separate(billing.FormatMoney(-amountCents, currency))
	}
	return separate(billing.FormatMoney(amountCents, currency))
}

// separate puts a comma before every third digit of the whole part.
func separate(number string) string {
	end := strings.IndexFunc(number, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(number)
	}
	for i := end - 3; i > 0; i -= 3 {
		number = number[:i] + "," + number[i:]
	}
	return number
}

// RoundedText is the amount to two decimals, and below one to four. A page that shows
// it has the exact amount at hand, such as in a title.
func RoundedText(a metering.Amount) string {
	places := 2
	if a < metering.PerCredit {
		places = 4
	}
	return separate(roundDecimal(a.Credits(), places))
}

// roundDecimal rounds the digits of a decimal number half up, and drops zeros at the
// end. What would be rounded to nothing is shown as less than the smallest number.
func roundDecimal(number string, places int) string {
	whole, decimals, _ := strings.Cut(number, ".")
	if len(decimals) <= places {
		return number
	}
	n, ok := new(big.Int).SetString(whole+decimals[:places], 10)
	if !ok {
		return number
	}
	if decimals[places] >= '5' {
		n.Add(n, big.NewInt(1))
	}
	if n.Sign() == 0 {
		return "<0." + strings.Repeat("0", places-1) + "1"
	}
	digits := n.String()
	digits = strings.Repeat("0", max(0, places+1-len(digits))) + digits
	cut := len(digits) - places
	return strings.TrimSuffix(strings.TrimRight(digits[:cut]+"."+digits[cut:], "0"), ".")
}

// InstantText is a moment to the minute, such as "14 Nov 2026, 09:31 UTC".
func InstantText(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format("2 Jan 2006, 15:04 UTC")
}

// secondsText is the time of day to the second, such as "09:31:05 UTC".
func secondsText(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format("15:04:05 UTC")
}

// DayText is the day of a moment in UTC, such as "14 Nov 2026".
func DayText(milliseconds int64) string { return DayTextIn(milliseconds, time.UTC) }

// DayTextIn is the day of a moment in a time zone.
func DayTextIn(milliseconds int64, zone *time.Location) string {
	return time.UnixMilli(milliseconds).In(zone).Format("2 Jan 2006")
}

// exactInstant is what machines read, and people who point at a time.
func exactInstant(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format("2006-01-02T15:04:05.000Z")
}

// How much of a long text is shown, in characters, when it is shortened in the
// middle: names that differ mostly do so at one of their ends.
const (
	shownAtFront = 20
	shownAtBack  = 11
)

// ShortText shortens a long text in the middle.
func ShortText(text string) string {
	runes := []rune(text)
	if len(runes) <= shownAtFront+1+shownAtBack {
		return text
	}
	return string(runes[:shownAtFront]) + "…" + string(runes[len(runes)-shownAtBack:])
}

// ShortIdentity is a caller's text as one line shows it: what can't be seen is written
// out, and its middle is left out.
func ShortIdentity(text string) string { return ShortText(visible(text)) }

// gist is the longest part of a provider's message that a list shows.
const gist = 140

// GistText is the first sentence of a message, and of a long one its beginning. Where
// it leads, the message stands whole.
func GistText(message string) string {
	message = strings.TrimSpace(message)
	if end := strings.IndexAny(message, "\n\r"); end >= 0 {
		message = message[:end]
	}
	if end := strings.Index(message, ". "); end >= 0 {
		message = message[:end+1]
	}
	if runes := []rune(message); len(runes) > gist {
		return strings.TrimRight(string(runes[:gist-1]), " ,;:") + "…"
	}
	return message
}

// longText is from how many characters on a text may break where a table is narrow.
const longText = 26

func isLong(text string) bool { return utf8.RuneCountInString(visible(text)) >= longText }

// visible writes out the characters that would show nothing or turn the text
// around, so that two identities that differ also look different.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}
