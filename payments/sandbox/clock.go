package sandbox

import (
	"context"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/payments/sandbox/engine"
)

const (
	// maxAdvance is how far one request may advance a clock.
	maxAdvance = 5 * 366 * 24 * time.Hour
	// repeatTime is how long an advance may be retried after its response was lost,
	// although the clock has moved past its target.
	repeatTime = advanceTime
	// lastInstant is the end of the year 9999, in milliseconds.
	lastInstant = 253402300799999
)

// Clock returns the application's time in milliseconds.
func (s *Server) Clock(ctx context.Context, app ids.ID) (now int64, err error) {
	err = s.view(ctx, app, func(account *engine.Account, _ engine.Env) error {
		now = account.Now(s.realNow())
		return nil
	})
	return now, err
}

// Advance moves the application's clock. It stops at the time of each timer, fires it,
// and has its webhooks delivered and applied before it continues: a webhook is never
// applied in a later state. When the context ends the clock stays where it is.
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
	// Deliver what is queued before the clock moves.
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
			// Fire the rest of the timers of this time before the clock moves on.
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
