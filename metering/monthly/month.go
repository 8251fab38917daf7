package monthly

import (
	"time"

	"purser/fault"
)

// Month is a month of UTC, such as 2026-10.
type Month string

const monthLayout = "2006-01"

// commitDelay is longer than an entry takes from its time until it is committed: before its
// end, an export could lack entries that a later one has.
const commitDelay = int64(time.Hour / time.Millisecond)

// ParseMonth reads a month as YYYY-MM.
func ParseMonth(text string) (Month, error) {
	t, err := time.Parse(monthLayout, text)
	if err != nil || t.Year() < 1970 {
		return "", fault.Newf(fault.InvalidRequest, "%q is not a month. Write it as 2026-10.", text)
	}
	return Month(text), nil
}

// MonthOf is the month that a moment is in, in milliseconds.
func MonthOf(ms int64) Month { return Month(time.UnixMilli(ms).UTC().Format(monthLayout)) }

// End is the first moment after the month, in milliseconds.
func (m Month) End() int64 { return m.start().AddDate(0, 1, 0).UnixMilli() }

func (m Month) Next() Month { return MonthOf(m.End()) }

func (m Month) Previous() Month { return MonthOf(m.start().UnixMilli() - 1) }

func (m Month) start() time.Time {
	t, err := time.Parse(monthLayout, string(m))
	if err != nil {
		return time.UnixMilli(0).UTC() // the zero month, which ParseMonth never returns
	}
	return t
}

// Due lists the months that can get no more entries at a moment, after the last one that
// there is. Without a last one they begin with the month of the first entry.
func Due(last Month, first, now int64, before Month) (list []Month) {
	next := MonthOf(first)
	if last != "" {
		next = last.Next()
	}
	for ; next < before && next.End()+commitDelay <= now; next = next.Next() {
		list = append(list, next)
	}
	return list
}
