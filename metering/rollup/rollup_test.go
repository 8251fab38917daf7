package rollup_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/metering"
	"purser/metering/rollup"
)

// zones differ from UTC by whole hours in the years of the tests. Some change their clocks
// at midnight.
var zones = []string{"", "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut", "Pacific/Auckland", "Asia/Tokyo", "America/Havana"}

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := rollup.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

var units = []rollup.Unit{rollup.ByHour, rollup.ByDay, rollup.ByMonth}

func TestBucketsCoverTheRangeWithoutGaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		from := rapid.Int64Range(1_600_000_000_000, 1_900_000_000_000).Draw(t, "from")
		to := from + rapid.Int64Range(1, 20*24*rollup.Hour).Draw(t, "length")
		b, err := rollup.NewBuckets(from, to, unit, loc)
		if err != nil {
			t.Fatal(err)
		}
		if b.From() > from || b.End < to {
			t.Fatalf("%d to %d does not cover %d to %d", b.From(), b.End, from, to)
		}
		ends := append(append([]int64{}, b.Starts[1:]...), b.End)
		for i, start := range b.Starts {
			if ends[i] <= start || start%rollup.Hour != 0 {
				t.Fatalf("bucket %d is from %d to %d", i, start, ends[i])
			}
			if b.Find(start) != i || b.Find(ends[i]-1) != i {
				t.Fatalf("bucket %d is found as %d and %d", i, b.Find(start), b.Find(ends[i]-1))
			}
			first, last := time.UnixMilli(start).In(loc), time.UnixMilli(ends[i]-1).In(loc)
			after := time.UnixMilli(ends[i]).In(loc)
			switch {
			case unit == rollup.ByDay && (first.YearDay() != last.YearDay() || last.YearDay() == after.YearDay()),
				unit == rollup.ByMonth && (first.Month() != last.Month() || last.Month() == after.Month()),
				unit == rollup.ByHour && ends[i]-start != rollup.Hour:
				t.Fatalf("bucket %d of %s is from %s to %s", i, unit, first, last)
			}
		}
		if ends[0] <= from || b.Starts[len(b.Starts)-1] >= to {
			t.Fatal("a bucket has no part of the range")
		}
		if b.Find(b.From()-1) != -1 || b.Find(b.End) != -1 {
			t.Fatal("moments outside are found")
		}
		before, err := b.Before()
		if err != nil {
			t.Fatal(err)
		}
		if before.End != b.From() || len(before.Starts) != len(b.Starts) {
			t.Fatalf("%d buckets before end at %d, expected %d at %d", len(before.Starts), before.End, len(b.Starts), b.From())
		}
	})
}

func TestRangesAreSplitIntoDaysAndHours(t *testing.T) {
	t.Parallel()
	const day = 24 * rollup.Hour
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		from := rapid.Int64Range(1_600_000_000_000, 1_900_000_000_000).Draw(t, "from")
		to := from + rapid.Int64Range(1, 20*day).Draw(t, "length")
		b, err := rollup.NewBuckets(from, to, rapid.SampledFrom(units).Draw(t, "unit"), loc)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "whole") {
			if whole := b.Whole(); len(whole.Starts) != 1 || whole.From() != b.From() || whole.End != b.End {
				t.Fatalf("%+v is the whole of %+v", whole, b)
			}
			b = b.Whole()
		}
		final := from + rapid.Int64Range(-3*day, 23*day).Draw(t, "final")
		parts := b.Split(final)
		// counted is how often an hour is in each bucket; a day is counted where its noon is.
		type place struct {
			hour   int64
			bucket int
		}
		counted := map[place]int{}
		count := func(list []metering.Period, n int, bucket func(hour int64) int64) {
			for _, p := range list {
				for at := p.Start; at < p.End; at += rollup.Hour {
					counted[place{at, b.Find(bucket(at))}] += n
				}
			}
		}
		own := func(hour int64) int64 { return hour }
		noon := func(hour int64) int64 { return hour - hour%day + day/2 }
		count(parts.Days, 1, noon)
		count(parts.Hours, 1, own)
		count(parts.Less, -1, noon)
		for _, p := range parts.Days {
			if p.Start%day != 0 || p.End%day != 0 || p.End > final {
				t.Fatalf("the days %+v, final until %d", p, final)
			}
		}
		for _, p := range parts.Less {
			if p.End > final {
				t.Fatalf("the hours %+v are taken off, final until %d", p, final)
			}
		}
		for at := b.From(); at < b.End; at += rollup.Hour {
			counted[place{at, b.Find(at)}]--
		}
		for at, n := range counted {
			if n != 0 {
				t.Fatalf("the hour %d is counted %d times too often in the bucket %d", at.hour, n, at.bucket)
			}
		}
		if b.Unit != rollup.ByHour && final >= b.End+day {
			if n := length(parts.Hours) + length(parts.Less); n > int64(len(b.Starts)+1)*24*rollup.Hour {
				t.Fatalf("%d hours are read for %d buckets", n/rollup.Hour, len(b.Starts))
			}
		}
	})
}

func length(list []metering.Period) (sum int64) {
	for _, p := range list {
		sum += p.End - p.Start
	}
	return sum
}

func TestBucketsRefuse(t *testing.T) {
	t.Parallel()
	utc := zone(t, "")
	const at = 1_700_000_000_000 - 1_700_000_000_000%rollup.Hour
	for name, try := range map[string]func() error{
		"an empty range": func() error { _, err := rollup.NewBuckets(at, at, rollup.ByDay, utc); return err },
		"one hour too many": func() error {
			_, err := rollup.NewBuckets(at, at+(rollup.MaxHours+1)*rollup.Hour, rollup.ByHour, utc)
			return err
		},
		"half an hour": func() error {
			_, err := rollup.NewBuckets(at, at+1, rollup.ByDay, zone(t, "Asia/Kolkata"))
			return err
		},
		"hours that begin at half an hour": func() error {
			_, err := rollup.NewBuckets(at, at+1, rollup.ByHour, zone(t, "Asia/Kolkata"))
			return err
		},
		"no zone":                  func() error { _, err := rollup.Zone("Mars/Olympus"); return err },
		"the zone of the machine":  func() error { _, err := rollup.Zone("Local"); return err },
		"a path instead of a zone": func() error { _, err := rollup.Zone("../../etc/passwd"); return err },
	} {
		if err := try(); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := rollup.NewBuckets(at, at+rollup.MaxHours*rollup.Hour, rollup.ByHour, utc); err != nil || len(b.Starts) != rollup.MaxHours {
		t.Errorf("the longest range: %d, %v", len(b.Starts), err)
	}
}

func TestSumsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOf(rapid.Custom(func(t *rapid.T) rollup.Event {
			return rollup.Event{
				Quantity: rapid.Int64Range(1, 1_000_000).Draw(t, "quantity"), Limited: rapid.Bool().Draw(t, "limited"),
				Limit: rapid.Int64Range(0, 1000).Draw(t, "limit"), Used: rapid.Int64Range(0, 2000).Draw(t, "used"),
				Amount: metering.Amount(rapid.Uint64Range(0, uint64(metering.MaxAmount)).Draw(t, "amount")), Deduplicated: rapid.Bool().Draw(t, "deduplicated"),
			}
		})).Draw(t, "events")
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		var all, first, second rollup.Sums
		for i, e := range events {
			s := e.Sums()
			if s.Deduplicated == 1 && (!s.Charged.IsZero() || !s.Quantity.IsZero() || !s.Included.IsZero()) {
				t.Fatal("a deduplicated event adds more than itself")
			}
			if rollup.Covered(e.Quantity, e.Limit, e.Used) > e.Quantity || rollup.Covered(e.Quantity, e.Limit, e.Used) < 0 {
				t.Fatal("more is covered than used")
			}
			all = all.Add(s)
			if i < cut {
				first = first.Add(s)
			} else {
				second = second.Add(s)
			}
		}
		if second.Add(first) != all || all.Events != int64(len(events)) {
			t.Fatalf("%v and %v make %v", first, second, all)
		}
		if all.Without(first) != second || first.Without(all) != (rollup.Sums{}) {
			t.Fatalf("%v without %v is not %v", all, first, second)
		}
	})
}

func TestHoursAreFloored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(-1e15, 1e15).Draw(t, "at")
		if hour := rollup.HourOf(at); hour%rollup.Hour != 0 || hour > at || at-hour >= rollup.Hour {
			t.Fatalf("%d is in the hour %d", at, hour)
		}
	})
}

// simulated is a transaction that inserts an event: its id is made first, then the
// transaction gets its number, and it commits last.
type simulated struct {
	id, created, number int64
	inserted, committed bool
}

// A database with transactions that begin, insert and commit in any order, within the
// margin between an id and its insertion. Whatever was added is final.
func TestNothingAppearsBelowTheWatermark(t *testing.T) {
	t.Parallel()
	const margin = 100 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		now, next, offset := int64(1000), int64(1), int64(0)
		var running []*simulated
		var p rollup.Progress
		horizon := func() rollup.Horizon {
			h := rollup.Horizon{Now: now, Oldest: next, Next: next, ClockOffset: offset}
			for _, r := range running {
				if r.inserted {
					h.Oldest = min(h.Oldest, r.number)
				}
			}
			return h
		}
		steps := rapid.IntRange(100, 300).Draw(t, "steps")
		for range steps {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0: // time passes; what was not inserted within the margin is given up
				now += rapid.Int64Range(1, 90).Draw(t, "pause")
				var kept []*simulated
				for _, r := range running {
					if r.inserted || now < r.id+margin.Milliseconds()/2 {
						kept = append(kept, r)
					}
				}
				running = kept
			case 1:
				running = append(running, &simulated{id: now, created: now + offset})
			case 2:
				for _, r := range running {
					if !r.inserted {
						r.inserted, r.number = true, next
						next++
						break
					}
				}
			case 3:
				if len(running) > 0 {
					i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
					if r := running[i]; r.inserted {
						if r.id < p.Added {
							t.Fatalf("an event with the id %d commits below %d", r.id, p.Added)
						}
						if r.created < p.Until {
							t.Fatalf("an event of %d commits before %d", r.created, p.Until)
						}
						r.committed = true
						running = append(running[:i:i], running[i+1:]...)
					}
				}
			case 4: // the clock is advanced: what is not inserted yet is decided again
				offset += rapid.Int64Range(0, 10_000).Draw(t, "advance")
				for _, r := range running {
					if !r.inserted && rapid.Bool().Draw(t, "decided again") {
						r.created = now + offset
					}
				}
			default:
				before := p
				if p.Confirmed(horizon()) {
					p = p.Advance(p.Proposed)
				}
				if p = p.Propose(horizon(), margin); p.Added < before.Added || p.Until < before.Until {
					t.Fatal("the watermark moved back")
				}
			}
		}
	})
}

func TestARestoredDatabaseStartsANewProposal(t *testing.T) {
	t.Parallel()
	p := rollup.Progress{Added: 10, Proposed: 50, Transaction: 1000, ProposedAt: 60}
	after := p.Propose(rollup.Horizon{Now: 200, Oldest: 5, Next: 5}, 10*time.Millisecond)
	if after.Transaction != 5 || after.Proposed != 190 {
		t.Errorf("%+v", after)
	}
	if kept := p.Propose(rollup.Horizon{Now: 200, Oldest: 900, Next: 1001}, 10*time.Millisecond); kept != p {
		t.Errorf("a proposal that waits was replaced: %+v", kept)
	}
}
