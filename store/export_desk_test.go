package store

import (
	"context"

	"purser/ids"
	"purser/metering"
	"purser/store/internal/ledger"
)

// What the tests of the desk see of its inside.

// The limits that are tested at the limit and one past it.
const (
	RingSize      = requestRingSize
	KeptFailures  = keptFailures
	KeptSuccesses = keptSuccesses
	SketchExact   = sketchExact

	FailuresPerMinute = failuresPerMinute
)

// Sketch counts different ids.
type Sketch struct{ sketch *sketch }

// NewSketch has seen nobody.
func NewSketch() Sketch { return Sketch{newSketch()} }

// Add takes an id in.
func (s Sketch) Add(id ids.ID) { s.sketch.add(id) }

// Join takes in all that another has seen.
func (s Sketch) Join(other Sketch) { s.sketch.merge(other.sketch) }

// Count is how many there were, and whether that is exact.
func (s Sketch) Count() (int64, bool) { return s.sketch.count() }

// Encode writes it for its column.
func (s Sketch) Encode() []byte { return s.sketch.encode() }

// DecodeSketch reads it again.
func DecodeSketch(text []byte) (Sketch, error) {
	s, err := decodeSketch(text)
	return Sketch{s}, err
}

// TakeBack takes an amount back from a wallet, as a refund does.
func TakeBack(ctx context.Context, a App, identity, creditKey string, amount metering.Amount, now int64) error {
	return a.transact(ctx, func(ctx context.Context, tx appTx) error {
		credit, err := tx.Credit(ctx, creditKey)
		if err != nil {
			return err
		}
		w, err := tx.LockOrMakeWallet(ctx, ids.New(), identity, now)
		if err != nil {
			return err
		}
		_, err = tx.Post(ctx, &w, ledger.Posting{
			ID: ids.New(), Kind: metering.EntryRefund, Credit: credit, Delta: metering.Delta{Amount: amount, Out: true}, Now: now,
			Change: func(b metering.Balance) (metering.Balance, error) { return b.TakeBack(amount) },
		})
		return err
	})
}
