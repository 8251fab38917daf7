package rollup

import "purser/metering"

// Hour is the length of the stored sums, in milliseconds.
const Hour int64 = 3_600_000

// HourOf is the first millisecond of the hour.
func HourOf(ms int64) int64 {
	hour := ms - ms%Hour
	if hour > ms { // before 1970
		hour -= Hour
	}
	return hour
}

// MonthOf is the first millisecond of the month, in UTC.
func MonthOf(ms int64) int64 { return metering.MonthOf(ms).Start }

// Covered is the part of a quantity that an allowance included, by its limit and what
// was used before.
func Covered(quantity, limit, used int64) int64 {
	return min(quantity, max(0, limit-used))
}

// Sums are events added up. A deduplicated event counts as an event, and neither its
// quantity nor a charge is added: it was free.
//
// A reversal changes no sum: it returns credits later, as an entry of the journal, and
// sums that are final stay as they are.
type Sums struct {
	Events       int64
	Deduplicated int64          // of the events
	Quantity     metering.Total // of the others
	Included     metering.Total // the part of the quantity that allowances covered
	Charged      metering.Total // in nanocredits
}

// Add returns both together.
func (s Sums) Add(other Sums) Sums {
	return Sums{
		Events: s.Events + other.Events, Deduplicated: s.Deduplicated + other.Deduplicated,
		Quantity: s.Quantity.Join(other.Quantity), Included: s.Included.Join(other.Included), Charged: s.Charged.Join(other.Charged),
	}
}

// Include adds other sums to these.
func (s *Sums) Include(other *Sums) {
	s.Events += other.Events
	s.Deduplicated += other.Deduplicated
	s.Quantity, s.Included, s.Charged = s.Quantity.Join(other.Quantity), s.Included.Join(other.Included), s.Charged.Join(other.Charged)
}

// Without is what is left of the sums without a part of them.
func (s Sums) Without(part Sums) Sums {
	return Sums{
		Events: max(0, s.Events-part.Events), Deduplicated: max(0, s.Deduplicated-part.Deduplicated),
		Quantity: s.Quantity.Minus(part.Quantity), Included: s.Included.Minus(part.Included), Charged: s.Charged.Minus(part.Charged),
	}
}

// Event is what one event adds.
type Event struct {
	Quantity     int64
	Limited      bool // an allowance counted it
	Limit, Used  int64
	Amount       metering.Amount
	Deduplicated bool
}

// Sums are those of one event.
func (e Event) Sums() Sums {
	if e.Deduplicated {
		return Sums{Events: 1, Deduplicated: 1}
	}
	s := Sums{Events: 1, Quantity: metering.Total{}.Plus(metering.Amount(e.Quantity)), Charged: metering.Total{}.Plus(e.Amount)}
	if e.Limited {
		s.Included = metering.Total{}.Plus(metering.Amount(Covered(e.Quantity, e.Limit, e.Used)))
	}
	return s
}
