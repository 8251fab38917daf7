package engine

import "time"

// Time is in seconds since 1970 UTC, the unit of Stripe's objects. The account's
// clock offset and all times outside of this package are in milliseconds.
type Time int64

const (
	hour Time = 60 * 60
	day       = 24 * hour
)

// Interval is the billing interval of a recurring price.
type Interval struct {
	Unit  string // day, week, month or year
	Count int
}

// maxIntervalYears is Stripe's longest interval.
const maxIntervalYears = 3

// maxIntervalCount is the largest count of each unit.
var maxIntervalCount = map[string]int{"day": maxIntervalYears * 365, "week": maxIntervalYears * 52, "month": maxIntervalYears * 12, "year": maxIntervalYears}

// boundary is the start of the nth period after the anchor. It is computed from the
// anchor, not from the previous boundary, so the day of the month never drifts:
// 31 January, 28 February, 31 March.
func (i Interval) boundary(anchor Time, n int) Time {
	switch i.Unit {
	case "day":
		return anchor + Time(n*i.Count)*day
	case "week":
		return anchor + Time(n*i.Count)*7*day
	case "year":
		return addMonths(anchor, 12*n*i.Count)
	default:
		return addMonths(anchor, n*i.Count)
	}
}

// following is the first boundary after t, where t is not before the anchor.
func (i Interval) following(anchor, t Time) Time {
	n := 1
	// A lower bound for n, so that old anchors need no long loop.
	if longest := i.boundary(0, 1) + 4*day; t > anchor {
		n = max(1, int((t-anchor)/longest))
	}
	for i.boundary(anchor, n) <= t {
		n++
	}
	return i.boundary(anchor, n)
}

// addMonths keeps the day of the month, clamped to the last day of a shorter month.
func addMonths(t Time, months int) Time {
	from := time.Unix(int64(t), 0).UTC()
	first := time.Date(from.Year(), from.Month()+time.Month(months), 1, from.Hour(), from.Minute(), from.Second(), 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return Time(first.AddDate(0, 0, min(from.Day(), last)-1).Unix())
}
