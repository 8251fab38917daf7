package metering

import "math/bits"

// ListPrice is the multiplier, in basis points, that changes nothing.
const ListPrice int64 = 10_000

// MaxQuantity is the largest quantity of an event, and of one QuantityPerUnit:
// the largest integer that every JSON reader keeps exact.
const MaxQuantity int64 = 9_007_199_254_740_991

// Price is the price of a quantity when quantityPerUnit of it costs cost:
//
//	ceil(cost × billable × basisPoints ÷ (quantityPerUnit × 10000))
//
// It reports false when that passes 19 digits. quantityPerUnit is at least 1.
func Price(cost Amount, quantityPerUnit, billable, basisPoints int64) (Amount, bool) {
	// Two divisions round as one would: ceil(ceil(n ÷ a) ÷ b) = ceil(n ÷ (a × b)),
	// for whole numbers. So no divisor is wider than a word, although
	// quantityPerUnit × 10000 can need 67 bits.
	return product(uint64(cost), uint64(billable), uint64(basisPoints)).
		ceilDiv(uint64(quantityPerUnit)).
		ceilDiv(uint64(ListPrice)).
		amount()
}

// portion is ceil(amount × part ÷ whole), for a part that is at most the whole:
// it never passes the amount.
func portion(amount Amount, part, whole int64) Amount {
	hi, lo := bits.Mul64(uint64(amount), uint64(part))
	quotient, rest := bits.Div64(hi, lo, uint64(whole))
	if rest > 0 {
		quotient++
	}
	return Amount(quotient)
}

// wide is a whole number of 192 bits, lowest word first. A price needs 137 of
// them: 64 for the cost, 53 for the quantity, 20 for the basis points.
type wide [3]uint64

func product(a, b, c uint64) wide {
	hi, lo := bits.Mul64(a, b)
	carry, low := bits.Mul64(lo, c)
	top, middle := bits.Mul64(hi, c)
	middle, over := bits.Add64(middle, carry, 0)
	return wide{low, middle, top + over}
}

func (w wide) ceilDiv(divisor uint64) wide {
	var q wide
	var rest uint64
	for i := len(w) - 1; i >= 0; i-- {
		q[i], rest = bits.Div64(rest, w[i], divisor)
	}
	if rest > 0 {
		var carry uint64 = 1
		for i := range q {
			q[i], carry = bits.Add64(q[i], 0, carry)
		}
	}
	return q
}

func (w wide) amount() (Amount, bool) {
	if w[2] != 0 || w[1] != 0 || Amount(w[0]) > MaxAmount {
		return 0, false
	}
	return Amount(w[0]), true
}
