package metering

import "sort"

// A calendar of our own for the tests, by counting, so that the one under test
// is not compared with itself: it shares no code with package time.

func leap(year int64) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

func daysInMonth(year, month int64) int64 {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}

const daysIn400Years = 146_097

// daysBefore counts the days from 1 January 1970 to the first of a month, month
// by month from the nearest turn of 400 years.
func daysBefore(year, month int64) int64 {
	cycles := (year - 1970) / 400
	days, y := cycles*daysIn400Years, 1970+cycles*400
	for ; y < year; y++ {
		days += 365
		if leap(y) {
			days++
		}
	}
	for ; y > year; y-- {
		days -= 365
		if leap(y - 1) {
			days--
		}
	}
	for m := int64(1); m < month; m++ {
		days += daysInMonth(year, m)
	}
	return days
}

// monthTurn is the nth turn of a monthly period, counted from January 1970.
func monthTurn(day, timeOfDay, n int64) int64 {
	year, month := 1970+n/12, n%12+1
	if month < 1 {
		year, month = year-1, month+12
	}
	return (daysBefore(year, month)+min(day, daysInMonth(year, month))-1)*86_400_000 + timeOfDay
}

// naiveMonth searches all the turns that can be.
func naiveMonth(anchor, ms int64) Period {
	day, timeOfDay := dayOfMonth(anchor), anchor%86_400_000
	const past, future = -24, 12 * 400_000
	after := past + int64(sort.Search(future-past, func(i int) bool {
		return monthTurn(day, timeOfDay, past+int64(i)) > ms
	}))
	return Period{monthTurn(day, timeOfDay, after-1), monthTurn(day, timeOfDay, after)}
}

// dayOfMonth walks the months from 1970 to an anchor, which is not past the year 9999.
func dayOfMonth(ms int64) int64 {
	day := ms/86_400_000 + 1
	for year := int64(1970); ; year++ {
		for month := int64(1); month <= 12; month++ {
			if n := daysInMonth(year, month); day > n {
				day -= n
			} else {
				return day
			}
		}
	}
}

// naiveStretch counts lengths up or down from the anchor.
func naiveStretch(anchor, length, ms int64) Period {
	start := anchor + (ms-anchor)/length*length
	if start > ms {
		start -= length
	}
	return Period{start, start + length}
}

func naivePeriod(b BillingPeriod, ms int64) Period {
	switch b.Interval {
	case Day:
		return naiveStretch(b.Anchor, 86_400_000, ms)
	case Week:
		return naiveStretch(b.Anchor, 7*86_400_000, ms)
	default:
		return naiveMonth(b.Anchor, ms)
	}
}
