package sandbox

import (
	"context"
	"time"

	"purser/billing/sandbox/engine"
	"purser/fault"
	"purser/ids"
)

const (
	// maxAdvance is the furthest that one request moves a clock.
	maxAdvance = 5 * 366 * 24 * time.Hour
	// repeatTime is for how long the same request may be repeated because its
	// answer was lost, while the clock goes on.
	repeatTime = advanceTime
	// lastInstant is the end of the year 9999, in milliseconds.
	lastInstant = 253402300799999
)

// Clock is the application's time, in milliseconds.
func (s *Server) Clock(ctx context.Context, app ids.ID) (now int64, err error) {
	err = s.view(ctx, app, func(account *engine.Account, _ engine.Env) error {
		now = account.Now(s.realNow())
		return nil
	})
	return now, err
}

// Advance moves the application's clock. On the way it stops at every instant at
// which something happens, lets it happen, and has the webhooks of it delivered
// and applied before it goes on: nothing ever sees a later state than its own.
// When the context ends the clock stays where it is.
func (s *Server) Advance(ctx context.Context, app ids.ID, to int64) (now int64, err error) {
	now, err = s.Clock(ctx, app)
	switch {
	case err != nil:
		return 0, err
	case to < now-repeatTime.Milliseconds():
		return 0, fault.Newf(fault.InvalidRequest, "The clock is at %d and can't go back to %d.", now, to)
	case to > now+maxAdvance.Milliseconds() || to > lastInstant:
		return 0, fault.Newf(fault.InvalidRequest, "One request can advance the clock by at most five years, and not past the year 9999.")
	}
	// What is waiting belongs to the time before.
	if err := s.drainWebhooks(ctx, app); err != nil {
		return 0, err
	}
	for arrived, more := false, false; !arrived; {
		err := s.update(ctx, app, func(account *engine.Account, env engine.Env) error {
			real := s.realNow()
			next, timed := account.Next()
			if timed && int64(next)*1000 <= to {
				account.MoveClock(real, int64(next)*1000)
				env.Now = next
				more = !account.Fire(env)
				return nil
			}
			account.MoveClock(real, to)
			now, arrived = account.Now(real), true
			return nil
		})
		if err != nil {
			return 0, err
		}
		if err := s.drainWebhooks(ctx, app); err != nil {
			return 0, err
		}
		if more {
			// The rest of this instant, before the clock goes on.
			more = false
			if err := s.Wake(ctx, app); err != nil {
				return 0, err
			}
			if err := s.drainWebhooks(ctx, app); err != nil {
				return 0, err
			}
		}
	}
	return now, nil
}
