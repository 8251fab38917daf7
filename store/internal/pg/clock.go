package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"purser/store/internal/limits"
)

const (
	// The database's clock is measured this often, and after each reconnect. Between
	// two measurements the node's monotonic clock may drift.
	clockInterval = time.Minute
	// Of this many samples the one with the shortest round trip counts.
	clockSamples = 5
	// A reading that no measurement has confirmed for this long is not trusted.
	maxClockAge = 5 * time.Minute
	// Neither is one that may be wrong by more than this: half a round trip.
	MaxClockError = time.Second
	// The wall clock and the monotonic clock of a node move together. When they part by
	// more than this the machine was suspended, or its wall clock was set.
	maxClockJump = 500 * time.Millisecond
	// A monotonic clock drifts by less than one part in this many.
	clockDrift = 5000
	// The pause after a measurement that failed.
	clockPause = 200 * time.Millisecond
	// How long a request waits for a measurement before it is refused.
	clockPatience = 2 * time.Second
)

// Why a reading is not trusted.
var (
	ErrClockOld     = errors.New("store: the database's clock was not measured for 5 minutes")
	ErrClockUnclear = errors.New("store: the database's clock cannot be measured to within a second")
	ErrClockOff     = errors.New("store: the database's clock is not where this machine's clock says, and was not measured since")
	ErrClockJumped  = errors.New("store: the machine was suspended or its clock was set, and the database's clock was not measured since")
)

// Machine reads the clocks of a node: the wall clock, in nanoseconds since 1970, and
// the monotonic clock.
type Machine func() (wall int64, monotonic time.Duration)

// ProcessStart is where the monotonic clock of this process counts from.
var ProcessStart = time.Now()

func machineClocks() (wall int64, monotonic time.Duration) {
	now := time.Now()
	return now.UnixNano(), now.Sub(ProcessStart)
}

// Clock is the database's clock as one node reads it: the time of the last
// measurement plus the monotonic time since. The wall clock of the node does not
// enter it, so nodes agree whatever their own clocks say.
//
// Reading takes no lock and no round trip.
type Clock struct {
	machine Machine
	reading atomic.Pointer[reading]
	wake    chan struct{} // asks for a measurement now
	Conns   atomic.Pointer[pgxpool.Pool]

	mu       sync.Mutex
	measured chan struct{} // closed after the next measurement, also one that failed
}

// reading is one measurement, and when it was last confirmed.
type reading struct {
	database  int64         // its time in nanoseconds since 1970 …
	monotonic time.Duration // … at this moment of the node
	error     time.Duration // by which it may be wrong

	confirmed     time.Duration // the monotonic and the wall clock of the node then
	confirmedWall int64

	doubted bool // a transaction has found the database at another time
}

func newClock(machine Machine) *Clock {
	if machine == nil {
		machine = machineClocks
	}
	return &Clock{machine: machine, wake: make(chan struct{}, 1), measured: make(chan struct{})}
}

// Now is the database's time in milliseconds since 1970, trusted or not: for what is
// shown or logged. A decision about money first asks Trust, or uses Read.
func (c *Clock) Now() int64 { return c.nanos() / 1e6 }

// Time is Now as a time.
func (c *Clock) Time() time.Time { return time.Unix(0, c.nanos()) }

// Nanos is Now in nanoseconds.
func (c *Clock) Nanos() int64 { return c.nanos() }

func (c *Clock) nanos() int64 {
	_, monotonic := c.machine()
	return c.reading.Load().at(monotonic)
}

// Read is the database's time in milliseconds since 1970, or why it is not known
// well enough. Then a measurement is under way.
func (c *Clock) Read() (int64, error) {
	wall, monotonic := c.machine()
	r := c.reading.Load()
	if err := r.trusted(wall, monotonic); err != nil {
		c.measureSoon()
		return 0, err
	}
	return r.at(monotonic) / 1e6, nil
}

// Trust waits a moment for a reading that can be trusted, and else says why there is
// none.
func (c *Clock) Trust(ctx context.Context) error {
	if _, err := c.Read(); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clockPatience)
	defer cancel()
	for {
		measured := c.next()
		_, err := c.Read()
		if err == nil {
			return nil
		}
		select {
		case <-measured:
		case <-ctx.Done():
			return err
		}
	}
}

// Await waits for a measurement and gives the reason when the reading is not trusted
// after it. The first one that ends may have begun before the reading was doubted.
func (c *Clock) Await(ctx context.Context) (err error) {
	for range 2 {
		measured := c.next()
		if _, err = c.Read(); err == nil {
			return nil
		}
		select {
		case <-measured:
		case <-ctx.Done():
			return err
		}
	}
	_, err = c.Read()
	return err
}

// next is closed after the next measurement.
func (c *Clock) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.measured
}

// ended tells everyone who waits that a measurement has ended.
func (c *Clock) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.measured)
	c.measured = make(chan struct{})
}

// Doubt withdraws the reading until the next measurement.
func (c *Clock) Doubt() {
	r := c.reading.Load()
	doubted := *r
	doubted.doubted = true
	c.reading.CompareAndSwap(r, &doubted)
	c.measureSoon()
}

// Offset is how far the node's own wall clock is ahead of the database's.
func (c *Clock) Offset() time.Duration {
	wall, monotonic := c.machine()
	return time.Duration(wall - c.reading.Load().at(monotonic))
}

func (r *reading) at(monotonic time.Duration) int64 {
	return r.database + int64(monotonic-r.monotonic)
}

func (r *reading) trusted(wall int64, monotonic time.Duration) error {
	switch elapsed := monotonic - r.confirmed; {
	case r.doubted:
		return ErrClockOff
	case parted(time.Duration(wall-r.confirmedWall), elapsed):
		return ErrClockJumped
	case elapsed > maxClockAge:
		return ErrClockOld
	case r.error > MaxClockError:
		return ErrClockUnclear
	}
	return nil
}

// parted reports that the wall clock and the monotonic clock did not move together.
func parted(wall, monotonic time.Duration) bool { return (wall - monotonic).Abs() > maxClockJump }

// measureSoon asks for a measurement and does not wait for it.
func (c *Clock) measureSoon() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Connected asks for a measurement after a reconnect: the server may be another one.
func (c *Clock) Connected() {
	_, monotonic := c.machine()
	if r := c.reading.Load(); r != nil && monotonic-r.confirmed > time.Second {
		c.measureSoon()
	}
}

// measure takes samples on a connection and keeps the best, unless the reading so far
// is better and agrees with it.
func (c *Clock) measure(ctx context.Context, conn *pgx.Conn) error {
	var best *reading
	for range clockSamples {
		sample, err := c.sample(ctx, conn)
		if err != nil {
			return fmt.Errorf("store: the database's clock: %w", err)
		}
		if sample != nil && (best == nil || sample.error < best.error) {
			best = sample
		}
	}
	if best == nil {
		return ErrClockJumped
	}
	c.adopt(best)
	return nil
}

// sample asks the database for its time. Its answer was given somewhere within the
// round trip. It is nil when the machine was suspended meanwhile.
func (c *Clock) sample(ctx context.Context, conn *pgx.Conn) (*reading, error) {
	wallBefore, before := c.machine()
	var micros int64
	if err := conn.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros); err != nil {
		return nil, err
	}
	wall, after := c.machine()
	if parted(time.Duration(wall-wallBefore), after-before) {
		return nil, nil
	}
	half := (after - before) / 2
	return &reading{database: micros * 1000, monotonic: before + half, error: half, confirmed: after, confirmedWall: wall}, nil
}

func (c *Clock) adopt(fresh *reading) {
	if old := c.reading.Load(); old != nil && old.trusted(fresh.confirmedWall, fresh.confirmed) == nil {
		drifted := old.error + (fresh.monotonic-old.monotonic)/clockDrift
		agree := time.Duration(old.at(fresh.monotonic)-fresh.database).Abs() <= drifted+fresh.error
		switch {
		case fresh.error > MaxClockError:
			return // it proves nothing
		case agree && drifted < fresh.error:
			confirmed := *old
			confirmed.confirmed, confirmed.confirmedWall = fresh.confirmed, fresh.confirmedWall
			fresh = &confirmed
		}
	}
	c.reading.Store(fresh)
}

// MeasureClock measures on a connection of the hot path, which are kept open, or else
// on any.
func (s *DB) MeasureClock(ctx context.Context) error {
	defer s.Clock.ended()
	ctx, cancel := context.WithTimeout(ctx, limits.Current().Connect)
	defer cancel()
	conn, err := s.Clock.Conns.Load().Acquire(ctx)
	if SQLState(err) == TooManyConnections {
		conn, err = s.Acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("store: no connection: %w", err)
	}
	defer Release(conn)
	return s.Clock.measure(ctx, conn.Conn())
}

// keepClock measures until the context ends.
func (s *DB) keepClock(ctx context.Context, log *slog.Logger) {
	failing := false
	for {
		pause := clockInterval
		if failing {
			pause = clockPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		case <-wakeUnless(failing, s.Clock.wake):
		}
		err := s.MeasureClock(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			log.Warn("database clock not measured, will retry", "cause", err)
		}
		if err == nil && failing {
			log.Info("database clock measured again", "offset", s.Clock.Offset().String())
		}
		failing = err != nil
	}
}

// wakeUnless is the channel, or none while measurements fail: they are repeated by
// themselves then.
func wakeUnless(failing bool, wake <-chan struct{}) <-chan struct{} {
	if failing {
		return nil
	}
	return wake
}

// Uncertainty is by how much the clock may be wrong.
func (c *Clock) Uncertainty() time.Duration { return c.reading.Load().error }
