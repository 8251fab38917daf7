package api

import "math"

// number is a JSON number outside int64, with what the error message needs.
type number struct {
	whole    bool // an integer, but past the ends of int64
	negative bool
}

// maxExponent caps the exponent while it is read. A body has fewer digits than
// this, so no mantissa brings an exponent past the cap back into range.
const maxExponent = 1 << 20

// parseNumber reads a JSON number exactly: 1, 1.0, 10e-1 and -0 are integers.
// It works on the digits, in time linear in their count, so 1e999999999 costs
// no more than its twelve characters.
func parseNumber(text []byte) any {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	digits, exponent := mantissa(text)
	if len(digits) == 0 {
		return int64(0)
	}
	if exponent < 0 {
		return number{negative: negative}
	}
	return scale(digits, exponent, negative)
}

// mantissa splits a number without sign into significant digits, with no zero at
// either end, and the power of ten that they are multiplied by.
func mantissa(text []byte) (digits []byte, exponent int) {
	i := 0
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	digits = text[:i:i]
	if i < len(text) && text[i] == '.' {
		fraction := text[i+1:]
		i = 0
		for i < len(fraction) && isDigit(fraction[i]) {
			i++
		}
		digits = append(digits, fraction[:i]...)
		exponent = -i
		text = fraction
	}
	if i < len(text) {
		exponent += readExponent(text[i+1:])
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exponent++
	}
	return digits, exponent
}

func readExponent(text []byte) int {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	exponent := 0
	for _, digit := range text {
		exponent = min(exponent*10+int(digit-'0'), maxExponent)
	}
	if negative {
		return -exponent
	}
	return exponent
}

// maxDigits is how many digits the ends of int64 have.
const maxDigits = 19

func scale(digits []byte, exponent int, negative bool) any {
	if len(digits)+exponent > maxDigits {
		return number{whole: true, negative: negative}
	}
	value := uint64(0) // nineteen nines fit
	for _, digit := range digits {
		value = value*10 + uint64(digit-'0')
	}
	for range exponent {
		value *= 10
	}
	switch {
	case value <= math.MaxInt64 && negative:
		return -int64(value)
	case value <= math.MaxInt64:
		return int64(value)
	case value == 1<<63 && negative:
		return int64(math.MinInt64)
	default:
		return number{whole: true, negative: negative}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
