package metering

import "strconv"

// Amount is a quantity of nanocredits: 1 credit is 1,000,000,000 of them. It has
// at most 19 digits, which is more than an int64 holds and fits a uint64.
type Amount uint64

// MaxAmount is the largest amount: 19 nines.
const MaxAmount Amount = 9_999_999_999_999_999_999

// PerCredit is how many nanocredits make one credit.
const PerCredit Amount = 1_000_000_000

const maxAmountDigits = 19

// ParseAmount reads a decimal amount without sign, spaces or leading zeros.
func ParseAmount(text string) (Amount, bool) {
	if text == "" || len(text) > maxAmountDigits || (text[0] == '0' && len(text) > 1) {
		return 0, false
	}
	var a Amount
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		a = a*10 + Amount(c-'0')
	}
	return a, true
}

// String writes the amount in decimal.
func (a Amount) String() string { return strconv.FormatUint(uint64(a), 10) }

// Add reports the sum, or false when it would pass 19 digits.
func (a Amount) Add(b Amount) (Amount, bool) {
	if a > MaxAmount || b > MaxAmount-a {
		return 0, false
	}
	return a + b, true
}

// Sub reports the difference, or false when b is larger than a.
func (a Amount) Sub(b Amount) (Amount, bool) {
	if b > a {
		return 0, false
	}
	return a - b, true
}
