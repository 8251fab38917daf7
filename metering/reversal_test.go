package metering

import (
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
)

func TestReversalsNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		e := Event{Charge: Charge{Amount: Amount(rapid.Uint64Range(0, uint64(MaxAmount)).Draw(r, "charge"))}}
		var earlier Reversed
		fulls := 0
		for range rapid.IntRange(1, 20).Draw(r, "reversals") {
			var requested *Amount
			if rapid.Bool().Draw(r, "partial") {
				amount := Amount(rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, uint64(MaxAmount)),
					rapid.Just(uint64(e.Charge.Amount-earlier.Amount))).Draw(r, "amount"))
				requested = &amount
			}
			d, err := e.Reverse(earlier, requested)
			left := e.Charge.Amount - earlier.Amount
			switch {
			case requested != nil && *requested == 0:
				if !fault.Is(err, fault.InvalidRequest) {
					r.Fatalf("an amount of zero: %v", err)
				}
			case requested != nil && *requested > left:
				if !fault.Is(err, fault.ReversalTooLarge) {
					r.Fatalf("%d of %d: %v", *requested, left, err)
				}
			case requested == nil && earlier.Full:
				if !fault.Is(err, fault.EventNotReversible) {
					r.Fatalf("reversed twice: %v", err)
				}
			case err != nil:
				r.Fatalf("%d left: %v", left, err)
			}
			if err != nil {
				continue
			}
			if requested != nil && d.Amount != *requested || requested == nil && d.Amount != left {
				r.Fatalf("returned %d of %d", d.Amount, left)
			}
			earlier.Amount += d.Amount
			if earlier.Amount > e.Charge.Amount {
				r.Fatalf("returned %d of a charge of %d", earlier.Amount, e.Charge.Amount)
			}
			if d.Full != (earlier.Amount == e.Charge.Amount) {
				r.Fatalf("full %t with %d of %d returned", d.Full, earlier.Amount, e.Charge.Amount)
			}
			if d.Full {
				earlier.Full = true
				fulls++
			}
		}
		if fulls > 1 {
			r.Fatalf("fully reversed %d times", fulls)
		}
	})
}

func TestDeduplicatedEventIsNotReversible(t *testing.T) {
	t.Parallel()
	e := Event{DeduplicatedFrom: ids.New()}
	if _, err := e.Reverse(Reversed{}, nil); !fault.Is(err, fault.EventNotReversible) {
		t.Errorf("got %v", err)
	}
}
