package store

import (
	"context"
	"errors"
	"math"
	"time"

	"purser/ids"
	"purser/store/internal/pg"
)

const (
	// maxDecisionAge is the maximum difference between the decision time of a batch and
	// the database's clock when its events are written. A slow batch takes up to
	// batchTimeout.
	maxDecisionAge = 10 * time.Second
	// maxClockDifference is the maximum difference between the database's clock and the
	// node's reading of it around the same round trip.
	maxClockDifference = 2 * pg.MaxClockError
	// maxIDAge leaves a batch its time before rollup.Margin, from which on usage is added up.
	maxIDAge = 20 * time.Second
	// anyDecisionAge is for engines with an injected clock.
	anyDecisionAge = math.MaxInt64
)

// oldestID is the oldest id that usage may have: a node that was suspended has older ones.
func (e *Engine) oldestID() (oldest ids.ID) {
	if now, err := e.now(); err == nil && e.clockTolerance != anyDecisionAge {
		oldest = pg.IDAt(now - maxIDAge.Milliseconds())
	}
	return oldest
}

// isClockError reports an error that only a new clock measurement resolves.
func isClockError(err error) bool {
	return errors.Is(err, pg.ErrClockOld) || errors.Is(err, pg.ErrClockUnclear) || errors.Is(err, pg.ErrClockJumped) || errors.Is(err, pg.ErrClockOff)
}

// checkClock compares the database time that came with the epochs to the node's clock
// before and after. A node that was suspended finds the database ahead.
func (e *Engine) checkClock(batches []*appBatch, before int64) error {
	if e.clockTolerance == anyDecisionAge {
		return nil
	}
	after, err := e.now()
	if err != nil {
		return err
	}
	slack := maxClockDifference.Milliseconds()
	for _, b := range batches {
		if b.databaseTime != 0 && (b.databaseTime < before-slack || b.databaseTime > after+slack) {
			e.store.db.Clock.Doubt()
			return pg.ErrClockOff
		}
	}
	return nil
}

// awaitClock waits for a clock measurement until the requests expire, and returns why
// the clock is still unknown after it.
func (e *Engine) awaitClock(requests []*request) error {
	ctx, cancel := context.WithDeadline(context.Background(), e.attemptDeadline(requests))
	defer cancel()
	return e.store.db.Clock.Await(ctx)
}
