package store

import (
	"context"
	"errors"
	"math"
	"time"
)

const (
	// maxDecisionAge is how far the time that a batch was decided for may be from the
	// database's when its events are written. A slow batch takes up to batchTimeout.
	maxDecisionAge = 10 * time.Second
	// maxClockDifference is how far the database's time may be from the node's reading
	// of it around the same round trip.
	maxClockDifference = 2 * maxClockError
	// anyDecisionAge is for engines with a clock of their own.
	anyDecisionAge = math.MaxInt64
)

// isUntimed reports an error after which only a measurement of the clock helps.
func isUntimed(err error) bool {
	return errors.Is(err, errClockOld) || errors.Is(err, errClockUnclear) || errors.Is(err, errClockJumped) || errors.Is(err, errClockOff)
}

// checkClock compares the time that the database gave with the epochs to the node's
// clock before and after. Between the two lies only the time that the node noticed:
// one that was paused together with its clocks finds the database ahead.
func (u *Engine) checkClock(batches []*appBatch, before int64) error {
	if u.clockTolerance == anyDecisionAge {
		return nil
	}
	after, err := u.now()
	if err != nil {
		return err
	}
	slack := maxClockDifference.Milliseconds()
	for _, b := range batches {
		if b.databaseTime != 0 && (b.databaseTime < before-slack || b.databaseTime > after+slack) {
			u.store.clock.doubt()
			return errClockOff
		}
	}
	return nil
}

// awaitClock waits for a measurement of the clock, at most as long as the uses have
// time, and says why the time is still not known after it.
func (u *Engine) awaitClock(uses []*pending) error {
	ctx, cancel := context.WithDeadline(context.Background(), u.tryDeadline(uses))
	defer cancel()
	return u.store.clock.await(ctx)
}
