package verify

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/metering/rollup"
)

// allUsage is what a full pass keeps until its end of the usage of all customers: sums by
// day, and a number for each hour. Sums by hour would be 24 times as many.
type allUsage struct {
	days  map[int64]usageSums // by window of days
	hours map[int64]uint64    // digests of the sums of an hour
	seed  maphash.Seed
}

func newAllUsage() allUsage {
	return allUsage{days: map[int64]usageSums{}, hours: map[int64]uint64{}, seed: maphash.MakeSeed()}
}

// windowOf is the start of the window of days that an hour is in.
func windowOf(hour int64) int64 { return max(0, hour-hour%dimensionWindow) }

func ofDay(k usageKey) usageKey { k.hour -= k.hour % (24 * rollup.Hour); return k }

// add adds sums of an hour that are not by wallet.
func (u *allUsage) add(k usageKey, s rollup.Sums) {
	window := windowOf(k.hour)
	if u.days[window] == nil {
		u.days[window] = usageSums{}
	}
	u.days[window].add(ofDay(k), s)
	u.hours[k.hour] += u.digest(k, s)
}

// digest is linear: the digests of parts add up to that of their sum, in any order. It finds
// what was moved between the hours of a day, whose sums agree.
func (u *allUsage) digest(k usageKey, s rollup.Sums) (digest uint64) {
	_, quantity := s.Quantity.Halves()
	_, included := s.Included.Halves()
	_, charged := s.Charged.Halves()
	for column, sum := range []uint64{uint64(s.Events), uint64(s.Deduplicated), quantity, included, charged} {
		// An odd factor: no sum but zero becomes zero.
		digest += sum * (maphash.Comparable(u.seed, [4]ids.ID{k.feature, k.credit, k.key, {byte(column)}}) | 1)
	}
	return digest
}

// collectUsage keeps the sums of wallets that were read to their end, for the sums over
// all of them.
func (p *verifyPass) collectUsage(walked []verifyRange) {
	for _, r := range walked {
		if r.proof.done && r.proof.usage != nil {
			for k, s := range r.proof.usage.by(withoutWallet) {
				p.usage.all.add(k, s)
			}
			r.proof.usage = nil
		}
	}
}

// checkAllUsage compares the hours of all customers with what a full pass has read, window
// by window.
func (p *verifyPass) checkAllUsage(ctx context.Context) error {
	for from := int64(0); ; from += dimensionWindow {
		found, err := list(ctx, p, verifyNextUsage, pgx.RowTo[int64], from)
		if err != nil {
			return err
		}
		windows := slices.Collect(maps.Keys(p.usage.all.days))
		if len(found) > 0 {
			windows = append(windows, windowOf(found[0]))
		}
		if len(windows) == 0 {
			return nil
		}
		if from = slices.Min(windows); from >= p.usage.upto {
			return nil
		}
		upto := min(p.usage.upto, from+dimensionWindow)
		if err := p.checkWindow(ctx, from, upto); err != nil {
			return err
		}
		delete(p.usage.all.days, from)
	}
}

// checkWindow compares the days of a window, and each of its hours.
func (p *verifyPass) checkWindow(ctx context.Context, from, upto int64) error {
	var found []Difference
	report := func(d Difference) { found = append(found, d) }
	var stored allUsage
	err := p.read(ctx, func(ctx context.Context, tx appTx) error { // which may be tried again
		found, stored = nil, newAllUsage()
		stored.seed = p.usage.all.seed
		return p.eachUsage(ctx, tx, verifyUsageTotals, report, stored.add, from, upto)
	})
	if err != nil {
		return err
	}
	want, days := p.usage.all.days[from], stored.days[from]
	maps.DeleteFunc(days, func(k usageKey, s rollup.Sums) bool {
		wanted, known := want[k]
		if known = known && wanted == s; known {
			delete(want, k)
		}
		return known
	})
	p.compareUsage(ruleUsageTotal, "day", want, days, report)
	for hour := from; hour < upto; hour += rollup.Hour {
		if stored.hours[hour] != p.usage.all.hours[hour] {
			report(Difference{Check: ruleUsageTotal, Detail: fmt.Sprintf("in the hour %d: the stored sums are not those of its events", hour)})
		}
	}
	for _, d := range found {
		p.report(d)
	}
	return nil
}
