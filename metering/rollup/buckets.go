package rollup

import (
	"sort"
	"time"
	_ "time/tzdata" // zones on machines without the database of the system

	"purser/fault"
	"purser/metering"
)

// Unit is the length of a bucket.
type Unit string

const (
	ByHour  Unit = "hour"
	ByDay   Unit = "day"
	ByMonth Unit = "month"
)

// The longest ranges. Sums are stored by hour, so a range costs its hours whatever its
// buckets are.
const (
	MaxHours  = 31 * 24
	MaxDays   = 366
	MaxMonths = 24
)

// Most is the largest number of buckets of the unit.
func (u Unit) Most() int {
	switch u {
	case ByHour:
		return MaxHours
	case ByMonth:
		return MaxMonths
	default:
		return MaxDays
	}
}

// Buckets are consecutive hours, days or months of a time zone.
type Buckets struct {
	Starts []int64 // ascending; at least one
	End    int64   // of the last one
	Unit   Unit
	Zone   *time.Location
}

// Zone finds a time zone by its IANA name; UTC when it is empty.
func Zone(name string) (*time.Location, error) {
	if name == "Local" { // of the machine
		name = "?"
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fault.Newf(fault.InvalidRequest, "timezone must be the name of an IANA time zone such as Europe/Berlin.")
	}
	return zone, nil
}

// NewBuckets are the buckets that have a part of [from, to). It refuses a range with too
// many of them, and a zone that does not differ from UTC by whole hours.
func NewBuckets(from, to int64, unit Unit, zone *time.Location) (Buckets, error) {
	b := Buckets{Unit: unit, Zone: zone}
	if from >= to {
		return b, fault.Newf(fault.InvalidRequest, "from must be before to.")
	}
	at := b.startOf(from)
	for at < to {
		if len(b.Starts) == unit.Most() {
			return b, fault.Newf(fault.InvalidRequest, "The range has more than %d buckets. Choose a shorter range or a larger bucket.", unit.Most())
		}
		if HourOf(at) != at {
			return b, fault.Newf(fault.InvalidRequest, "timezone %s isn't a whole number of hours from UTC in this range. Usage is counted by the hour of UTC.", zone)
		}
		b.Starts = append(b.Starts, at)
		at = b.next(at)
	}
	if b.End = at; HourOf(at) != at {
		return b, fault.Newf(fault.InvalidRequest, "timezone %s isn't a whole number of hours from UTC in this range. Usage is counted by the hour of UTC.", zone)
	}
	return b, nil
}

// startOf is the start of the bucket that a moment is in.
func (b Buckets) startOf(ms int64) int64 {
	t := time.UnixMilli(ms).In(b.Zone)
	switch b.Unit {
	case ByHour:
		_, offset := t.Zone()
		local := ms + int64(offset)*1000
		return HourOf(local) - int64(offset)*1000
	case ByMonth:
		return FirstOfDay(t.Year(), t.Month(), 1, b.Zone)
	default:
		return FirstOfDay(t.Year(), t.Month(), t.Day(), b.Zone)
	}
}

// next is the start of the bucket after one.
func (b Buckets) next(start int64) int64 {
	t := time.UnixMilli(start).In(b.Zone)
	switch b.Unit {
	case ByHour:
		return start + Hour
	case ByMonth:
		return FirstOfDay(t.Year(), t.Month()+1, 1, b.Zone)
	default:
		// Noon: a day that begins at 1 o'clock, because the clock was changed at
		// midnight, is the same day.
		noon := time.Date(t.Year(), t.Month(), t.Day()+1, 12, 0, 0, 0, b.Zone)
		return FirstOfDay(noon.Year(), noon.Month(), noon.Day(), b.Zone)
	}
}

// FirstOfDay is the first moment of a day. Where midnight does not exist, time.Date may
// return a moment of the day before.
func FirstOfDay(year int, month time.Month, day int, zone *time.Location) int64 {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	noon := time.Date(year, month, day, 12, 0, 0, 0, zone)
	for t.Day() != noon.Day() {
		t = t.Add(time.Hour)
	}
	return t.UnixMilli()
}

// Find is the index of the bucket that a moment is in, or -1.
func (b Buckets) Find(ms int64) int {
	if ms >= b.End {
		return -1
	}
	return sort.Search(len(b.Starts), func(i int) bool { return b.Starts[i] > ms }) - 1
}

// EndOf is the end of the bucket that begins at a moment.
func (b Buckets) EndOf(start int64) int64 { return b.next(start) }

// Whole is one bucket of them all.
func (b Buckets) Whole() Buckets {
	return Buckets{Starts: b.Starts[:1], End: b.End, Unit: b.Unit, Zone: b.Zone}
}

// Parts are the stored sums that add up to buckets. Each list is in order, and neighbours
// are joined.
type Parts struct {
	Days  []metering.Period // of UTC, each counted in the bucket that its noon is in
	Hours []metering.Period // counted in their own bucket
	Less  []metering.Period // hours of the days that are taken off again: their day is counted in another bucket
}

// noon is the middle of a day of UTC, from its start.
const noon = 12 * Hour

// Split says which days and hours are read. Days before final have sums; where a bucket
// begins at another hour than they do, the hours between are moved.
func (b Buckets) Split(final int64) (p Parts) {
	last := metering.DayOf(final).Start
	// dayAt is the first day whose noon is not before a moment.
	dayAt := func(ms int64) int64 { return min(metering.DayOf(ms+noon-1).Start, last) }
	for i, start := range b.Starts {
		end := b.End
		if i+1 < len(b.Starts) {
			end = b.Starts[i+1]
		}
		from, to := dayAt(start), dayAt(end)
		if b.Unit == ByHour || from >= to {
			p.Hours = extend(p.Hours, start, end)
			continue
		}
		p.Days = extend(p.Days, from, to)
		p.Less = extend(p.Less, from, start)
		p.Hours = extend(p.Hours, start, from)
		p.Hours = extend(p.Hours, to, end)
		p.Less = extend(p.Less, end, to)
	}
	return p
}

// extend adds a period at the end of a list.
func extend(list []metering.Period, start, end int64) []metering.Period {
	switch last := len(list) - 1; {
	case start >= end:
	case last >= 0 && list[last].End == start:
		list[last].End = end
	default:
		list = append(list, metering.Period{Start: start, End: end})
	}
	return list
}

func (b Buckets) From() int64 { return b.Starts[0] }

// Before are as many buckets that end where these begin.
func (b Buckets) Before() (Buckets, error) {
	start := time.UnixMilli(b.From()).In(b.Zone)
	n := len(b.Starts)
	var from int64
	switch b.Unit {
	case ByHour:
		from = b.From() - int64(n)*Hour
	case ByMonth:
		from = FirstOfDay(start.Year(), start.Month()-time.Month(n), 1, b.Zone)
	default:
		from = FirstOfDay(start.Year(), start.Month(), start.Day()-n, b.Zone)
	}
	return NewBuckets(from, b.From(), b.Unit, b.Zone)
}
