package metering

import "time"

const (
	dayMillis  = int64(24 * time.Hour / time.Millisecond)
	weekMillis = 7 * dayMillis
)

// Period is the half-open stretch of time from Start to just before End. The
// zero Period is none. Start is below zero for a period that began before 1970.
type Period struct {
	Start, End int64
}

func (p Period) IsZero() bool { return p == Period{} }

// Contains reports whether the moment lies in the period.
func (p Period) Contains(ms int64) bool { return p.Start <= ms && ms < p.End }

// The UTC calendar is three billing periods with these anchors.
const (
	firstMidnight = 0             // Thursday, 1 January 1970
	firstMonday   = 4 * dayMillis // 5 January 1970
)

// DayOf is the UTC day of a moment.
func DayOf(ms int64) Period { return BillingPeriod{Day, firstMidnight}.Containing(ms) }

// WeekOf is the week of a moment, from Monday, UTC.
func WeekOf(ms int64) Period { return BillingPeriod{Week, firstMonday}.Containing(ms) }

// MonthOf is the UTC calendar month of a moment.
func MonthOf(ms int64) Period { return BillingPeriod{Month, firstMidnight}.Containing(ms) }

// Containing is the one repetition of the billing period that holds the moment,
// which may lie before the anchor.
func (b BillingPeriod) Containing(ms int64) Period {
	switch b.Interval {
	case Day:
		return repetition(b.Anchor, dayMillis, ms)
	case Week:
		return repetition(b.Anchor, weekMillis, ms)
	default:
		return monthly(b.Anchor, ms)
	}
}

func repetition(anchor, length, ms int64) Period {
	start := ms - floorMod(ms-anchor, length)
	return Period{start, start + length}
}

// monthly computes the period boundary in the month of ms, which lies before or after
// it. Each boundary is computed from the anchor's day, never from the previous boundary,
// so a short month has no effect on later ones.
func monthly(anchor, ms int64) Period {
	_, _, day := time.UnixMilli(anchor).UTC().Date()
	timeOfDay := floorMod(anchor, dayMillis)
	year, month, _ := time.UnixMilli(ms).UTC().Date()
	turn := turnOf(year, month, day, timeOfDay)
	if ms < turn {
		return Period{turnOf(year, month-1, day, timeOfDay), turn}
	}
	return Period{turn, turnOf(year, month+1, day, timeOfDay)}
}

// turnOf is the boundary of a monthly period in a month: on the last day when the month
// is too short. Months 0 and 13 are those of the adjacent years.
func turnOf(year int, month time.Month, day int, timeOfDay int64) int64 {
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC)
	return last.UnixMilli() - int64(max(0, last.Day()-day))*dayMillis + timeOfDay
}

func floorMod(a, b int64) int64 {
	if m := a % b; m >= 0 {
		return m
	} else {
		return m + b
	}
}
