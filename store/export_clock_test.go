package store

import (
	"context"
	"log/slog"
	"time"

	"purser/store/internal/pg"
)

// What the tests of the clock and of readiness see of their inside.

// StopClock ends the measurements of the database's clock.
func (s *Store) StopClock() { s.db.StopClock() }

// MeasureClock measures the database's clock once.
func (s *Store) MeasureClock(ctx context.Context) error { return s.db.MeasureClock(ctx) }

// NewReadiness makes a shared probe.
func NewReadiness(probe func(context.Context) error, elapsed func() time.Duration, log *slog.Logger) func(context.Context) error {
	return (&pg.Readiness{Probe: probe, Elapsed: elapsed, Log: log}).Check
}
