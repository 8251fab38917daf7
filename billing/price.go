package billing

import (
	"time"

	"purser/metering"
)

// Price is what a plan costs per interval.
type Price struct {
	AmountCents int64  // in the currency's smallest unit, as the provider counts it
	Currency    string // three lower-case letters
	Interval    Interval
}

// Free reports whether nothing is charged.
func (p Price) Free() bool { return p.AmountCents == 0 }

type Interval string

// The intervals of a plan.
const (
	Month Interval = "month"
	Year  Interval = "year"
)

func (i Interval) shorterThan(j Interval) bool { return i == Month && j == Year }

// Containing is the period that contains at, of a subscription that began at the
// anchor. It keeps the anchor's day, or the last day of a shorter month: a year from
// 29 February ends on the 28th, and the fourth on the 29th.
func (i Interval) Containing(anchor, at int64) metering.Period {
	months := metering.BillingPeriod{Interval: metering.Month, Anchor: anchor}
	if i == Month {
		return months.Containing(at)
	}
	// A year turns over where the months do, in the month of the anchor.
	_, month, _ := time.UnixMilli(anchor).UTC().Date()
	yearStart := func(year int) int64 {
		nextMonth := time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		return months.Containing(nextMonth.UnixMilli() - 1).Start
	}
	year := time.UnixMilli(at).UTC().Year()
	if at < yearStart(year) {
		return metering.Period{Start: yearStart(year - 1), End: yearStart(year)}
	}
	return metering.Period{Start: yearStart(year), End: yearStart(year + 1)}
}

func overlap(a, b metering.Period) bool { return a.Start < b.End && b.Start < a.End }
