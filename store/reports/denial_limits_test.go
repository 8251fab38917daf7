package reports

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"purser/ids"
	"purser/metering"
)

// TestDenialLimits holds every history of denials to the bounds that the documentation
// states: the burst, the rate in the long run, and the repeats per minute.
func TestDenialLimits(t *testing.T) {
	t.Parallel()
	app, other := ids.New(), ids.New()
	denial := func(identity string) *Denial {
		return &Denial{Identity: identity, Decision: metering.Decision{Code: "insufficient_balance"}}
	}
	deniedAt := func(identity string, at int64) *Denial {
		d := denial(identity)
		d.Decision.Event.CreatedAt = at
		return d
	}

	t.Run("a flood of an application is admitted up to the burst and then at the rate", func(t *testing.T) {
		l, now, admitted := newDenialLimits(), int64(1_800_000_000_000), 0
		for i := range 2 * DenialBurst {
			if l.admits(app, denial(fmt.Sprint(i)), now) {
				admitted++
			}
		}
		if admitted != DenialBurst {
			t.Errorf("%d are admitted at once", admitted)
		}
		if !l.admits(other, denial("ann"), now) {
			t.Error("another application's is dropped")
		}
		admitted = 0
		for i := range 10 * 600 { // ten a second for ten minutes
			if l.admits(app, denial(fmt.Sprint("later ", i)), now+int64(i)*100) {
				admitted++
			}
		}
		if want := 10 * DenialsPerMinute; admitted < want-1 || admitted > want {
			t.Errorf("%d are admitted in ten minutes", admitted)
		}
	})

	t.Run("the limits forget what no longer counts", func(t *testing.T) {
		l, now := newDenialLimits(), int64(1_800_000_000_000)
		for i := range 500 {
			l.admits(ids.New(), denial(fmt.Sprint(i)), now)
		}
		l.admits(app, denial("ann"), now+2*minuteMillis)
		if len(l.full) != 1 || len(l.repeats) != 1 {
			t.Errorf("%d applications and %d repeats are held", len(l.full), len(l.repeats))
		}
	})

	t.Run("any history stays within the bounds", rapid.MakeCheck(func(r *rapid.T) {
		l, now, start, admitted := newDenialLimits(), int64(1_800_000_000_000), int64(1_800_000_000_000), 0
		type key struct {
			identity string
			minute   int64
		}
		same := map[key]int{}
		for range rapid.IntRange(1, 300).Draw(r, "denials") {
			now += rapid.Int64Range(0, 20_000).Draw(r, "pause")
			identity := fmt.Sprint(rapid.IntRange(0, 30).Draw(r, "identity"))
			if !l.admits(app, deniedAt(identity, now), now) {
				continue
			}
			admitted++
			if same[key{identity, now / minuteMillis}]++; same[key{identity, now / minuteMillis}] > DenialRepeats {
				r.Fatalf("%d of one identity are admitted in a minute", same[key{identity, now / minuteMillis}])
			}
			if most := DenialBurst + int((now-start)/denialInterval); admitted > most {
				r.Fatalf("%d are admitted, not %d", admitted, most)
			}
		}
	}))
}
