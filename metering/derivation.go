package metering

import (
	"math/big"
	"math/bits"
)

// Derivation is the calculation of a charge's amount:
//
//	ceil(Product ÷ Divisor) = Amount
//
// The product may be far longer than any amount, so both are text.
type Derivation struct {
	Product string
	Divisor string
	Rounded bool // up, because the division leaves a rest
	Amount  Amount
	Holds   bool // it is the amount that was charged
}

// Derivation recomputes the charge from the recorded fields of the event. For an event
// that was not charged it is zero.
func (e *Event) Derivation() Derivation {
	if !e.DeduplicatedFrom.IsZero() {
		return Derivation{Product: "0", Divisor: "1", Holds: e.Charge.Amount == 0}
	}
	c := &e.Charge
	var d Derivation
	var whole bool
	if c.PricingMode == Callback {
		quoted := c.Amount
		if e.Quoted != nil {
			quoted = *e.Quoted
		}
		hi, lo := bits.Mul64(uint64(quoted), uint64(c.Billable))
		d.Product, d.Divisor = wide{lo, hi}.String(), wide{uint64(e.Quantity)}.String()
		d.Amount, whole = portion(quoted, c.Billable, e.Quantity), true
		_, rest := bits.Div64(hi%uint64(e.Quantity), lo, uint64(e.Quantity))
		d.Rounded = rest > 0
	} else {
		n := product(uint64(c.Cost), uint64(c.Billable), uint64(c.BasisPoints))
		by := product(uint64(c.QuantityPerUnit), uint64(ListPrice), 1)
		d.Product, d.Divisor = n.String(), by.String()
		d.Amount, whole = Price(c.Cost, c.QuantityPerUnit, c.Billable, c.BasisPoints)
		d.Rounded = new(big.Int).Rem(n.big(), by.big()).Sign() != 0
	}
	d.Holds = whole && d.Amount == c.Amount
	return d
}

// String writes the number in decimal.
func (w wide) String() string { return w.big().String() }

func (w wide) big() *big.Int {
	n := new(big.Int)
	for i := len(w) - 1; i >= 0; i-- {
		n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(w[i]))
	}
	return n
}
