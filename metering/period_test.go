package metering

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The widest times that the interface lets in.
const (
	maxMoment = 9_007_199_254_740_991 // 12 October of the year 287396
	maxAnchor = 253_402_300_799_999   // the last millisecond of the year 9999
)

func moment(t testing.TB, text string) int64 {
	t.Helper()
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05.999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixMilli()
		}
	}
	t.Fatalf("%q is not a moment", text)
	return 0
}

func span(t testing.TB, start, end string) Period {
	return Period{moment(t, start), moment(t, end)}
}

func TestCalendarPeriods(t *testing.T) {
	for _, c := range []struct {
		claim string
		of    func(int64) Period
		at    string
		want  Period
	}{
		{"a day from its first millisecond", DayOf, "2024-02-29", span(t, "2024-02-29", "2024-03-01")},
		{"a day to its last millisecond", DayOf, "2024-02-29T23:59:59.999", span(t, "2024-02-29", "2024-03-01")},
		{"a week from Monday", WeekOf, "2024-02-26", span(t, "2024-02-26", "2024-03-04")},
		{"a week to Sunday", WeekOf, "2024-03-03T23:59:59.999", span(t, "2024-02-26", "2024-03-04")},
		{"the week of 1970 began before it", WeekOf, "1970-01-01", span(t, "1969-12-29", "1970-01-05")},
		{"a short month in a leap year", MonthOf, "2024-02-29T23:59:59.999", span(t, "2024-02-01", "2024-03-01")},
		{"a century without a leap day", MonthOf, "2100-02-28", span(t, "2100-02-01", "2100-03-01")},
		{"December ends with the year", MonthOf, "2023-12-31T23:59:59.999", span(t, "2023-12-01", "2024-01-01")},
		{"the first month of all", MonthOf, "1970-01-01", span(t, "1970-01-01", "1970-02-01")},
	} {
		if got := c.of(moment(t, c.at)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.claim, got, c.want)
		}
	}
	t.Run("a period does not contain its end", func(t *testing.T) {
		day := DayOf(0)
		if !day.Contains(day.Start) || !day.Contains(day.End-1) || day.Contains(day.End) || day.Contains(day.Start-1) {
			t.Error("the day is not half-open")
		}
	})
}

func TestBillingPeriods(t *testing.T) {
	t.Run("months keep the anchor's day without drift", func(t *testing.T) {
		b := BillingPeriod{Month, moment(t, "2024-01-31T10:30:00")}
		turns := []string{
			"2023-11-30T10:30:00", "2023-12-31T10:30:00", "2024-01-31T10:30:00", "2024-02-29T10:30:00",
			"2024-03-31T10:30:00", "2024-04-30T10:30:00", "2024-05-31T10:30:00",
		}
		for i := range len(turns) - 1 {
			want := span(t, turns[i], turns[i+1])
			for _, ms := range []int64{want.Start, want.Start + 1, want.End - 1} {
				if got := b.Containing(ms); got != want {
					t.Errorf("at %d: got %v, want %v", ms, got, want)
				}
			}
		}
	})
	t.Run("an anchor on 30 January turns on the last of February and returns to the 30th", func(t *testing.T) {
		b := BillingPeriod{Month, moment(t, "2023-01-30")}
		if got, want := b.Containing(moment(t, "2023-03-01")), span(t, "2023-02-28", "2023-03-30"); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("an anchor on a leap day turns on 28 February in common years", func(t *testing.T) {
		b := BillingPeriod{Month, moment(t, "2024-02-29")}
		if got, want := b.Containing(moment(t, "2025-02-28")), span(t, "2025-02-28", "2025-03-29"); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("days and weeks count from the anchor in both directions", func(t *testing.T) {
		week := BillingPeriod{Week, moment(t, "2024-01-03T12:00:00")}
		if got, want := week.Containing(moment(t, "2024-01-03T11:59:59.999")), span(t, "2023-12-27T12:00:00", "2024-01-03T12:00:00"); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		day := BillingPeriod{Day, moment(t, "2024-01-03T12:00:00")}
		if got, want := day.Containing(moment(t, "2024-01-05T11:00:00")), span(t, "2024-01-04T12:00:00", "2024-01-05T12:00:00"); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestPeriodsTileTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comparePeriods(t, BillingPeriod{
			Interval: rapid.SampledFrom([]Interval{Day, Week, Month}).Draw(t, "interval"),
			Anchor:   rapid.OneOf(rapid.Int64Range(0, maxAnchor), rapid.Int64Range(0, 100*365*dayMillis)).Draw(t, "anchor"),
		}, rapid.OneOf(rapid.Int64Range(0, maxMoment), rapid.Int64Range(0, 100*365*dayMillis)).Draw(t, "moment"))
	})
}

func FuzzBillingPeriod(f *testing.F) {
	f.Add(uint8(2), uint64(1_706_659_200_000), uint64(1_709_164_800_000))
	f.Add(uint8(2), uint64(maxAnchor), uint64(maxMoment))
	f.Add(uint8(1), uint64(0), uint64(0))
	intervals := []Interval{Day, Week, Month}
	f.Fuzz(func(t *testing.T, interval uint8, anchor, at uint64) {
		comparePeriods(t, BillingPeriod{
			Interval: intervals[int(interval)%len(intervals)],
			Anchor:   int64(anchor % (maxAnchor + 1)),
		}, int64(at%(maxMoment+1)))
	})
}

// comparePeriods asks at the moment and at both edges of its period, where a
// period that is wrong by a millisecond shows.
func comparePeriods(t rapid.TB, b BillingPeriod, ms int64) {
	t.Helper()
	p := b.Containing(ms)
	if want := naivePeriod(b, ms); p != want {
		t.Fatalf("%v at %d: got %v, want %v", b, ms, p, want)
	}
	if !p.Contains(ms) {
		t.Fatalf("%v does not contain %d", p, ms)
	}
	if b.Containing(p.Start) != p || b.Containing(p.End-1) != p {
		t.Fatalf("%v: the ends of %v lie in another period", b, p)
	}
	if next := b.Containing(p.End); next.Start != p.End {
		t.Fatalf("%v: a gap between %v and %v", b, p, next)
	}
	if last := b.Containing(p.Start - 1); last.End != p.Start {
		t.Fatalf("%v: a gap between %v and %v", b, last, p)
	}
}

func TestCalendarMatchesCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, maxMoment).Draw(t, "moment")
		const monday = 4 * 86_400_000
		if got, want := DayOf(ms), naiveStretch(0, 86_400_000, ms); got != want {
			t.Errorf("day: got %v, want %v", got, want)
		}
		if got, want := WeekOf(ms), naiveStretch(monday, 7*86_400_000, ms); got != want {
			t.Errorf("week: got %v, want %v", got, want)
		}
		if got, want := MonthOf(ms), naiveMonth(0, ms); got != want {
			t.Errorf("month: got %v, want %v", got, want)
		}
	})
}
