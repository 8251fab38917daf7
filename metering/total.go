package metering

import (
	"cmp"
	"math/bits"
	"strconv"
	"strings"
)

// Total is a sum of amounts over many wallets. It holds what 19 digits do not: a
// server's wallets together may pass what one of them can.
type Total struct {
	hi, lo uint64 // of a whole number of 128 bits, in nanocredits
}

// Plus adds an amount. It would take ten quintillion of the largest to pass the end.
func (t Total) Plus(a Amount) Total { return t.Join(Total{lo: uint64(a)}) }

// Join adds another total.
func (t Total) Join(other Total) Total {
	lo, carry := bits.Add64(t.lo, other.lo, 0)
	hi, _ := bits.Add64(t.hi, other.hi, carry)
	return Total{hi, lo}
}

// Minus is what is left without another total; nothing, if that is larger.
func (t Total) Minus(other Total) Total {
	lo, borrow := bits.Sub64(t.lo, other.lo, 0)
	hi, below := bits.Sub64(t.hi, other.hi, borrow)
	if below > 0 {
		return Total{}
	}
	return Total{hi, lo}
}

// IsZero reports whether nothing was added.
func (t Total) IsZero() bool { return t == Total{} }

// String writes the total in decimal nanocredits.
func (t Total) String() string {
	rest, parts := t, []string{}
	for rest.hi > 0 {
		var part uint64
		rest, part = rest.divide(1e18)
		text := strconv.FormatUint(part, 10)
		parts = append([]string{strings.Repeat("0", 18-len(text)) + text}, parts...)
	}
	return strconv.FormatUint(rest.lo, 10) + strings.Join(parts, "")
}

// ParseTotal reads what String writes.
func ParseTotal(text string) (t Total, ok bool) {
	if text == "" || len(text) > 38 || len(text) > 1 && text[0] == '0' {
		return t, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return t, false
		}
		over, lo := bits.Mul64(t.lo, 10)
		t = Total{t.hi*10 + over, lo}.Plus(Amount(text[i] - '0'))
	}
	return t, true
}

// TotalOf is the total whose Halves these are.
func TotalOf(hi, lo uint64) Total { return Total{hi, lo} }

// Halves are the upper and the lower 64 bits, for storage.
func (t Total) Halves() (hi, lo uint64) { return t.hi, t.lo }

// Compare is negative for less than the other, zero for the same, and positive for more.
func (t Total) Compare(other Total) int {
	return cmp.Or(cmp.Compare(t.hi, other.hi), cmp.Compare(t.lo, other.lo))
}

// Credits writes the total in credits, exactly, without zeros at the end.
func (t Total) Credits() string {
	digits := t.String()
	if missing := creditPlaces + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - creditPlaces
	if fraction := strings.TrimRight(digits[point:], "0"); fraction != "" {
		return digits[:point] + "." + fraction
	}
	return digits[:point]
}

func (t Total) divide(by uint64) (quotient Total, rest uint64) {
	hi, over := bits.Div64(0, t.hi, by)
	lo, rest := bits.Div64(over, t.lo, by)
	return Total{hi, lo}, rest
}
