package embedded

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/store/embedded/flock"
)

const (
	// The pauses between attempts to restart a dead cluster double from the first to the
	// last: it is back at most five seconds after the cause is gone.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	logLook = time.Minute // between two looks at the size of the log
)

// supervise keeps a connection open and restarts the cluster when the connection breaks:
// that is noticed at once, and waiting for it costs nothing.
func (s *Server) supervise(ctx context.Context, conn *pgx.Conn) {
	look := time.NewTicker(logLook)
	defer look.Stop()
	broken := s.watch(ctx, conn)
	for {
		select {
		case err := <-broken:
			if ctx.Err() != nil {
				return
			}
			s.cluster.log.Warn("embedded Postgres exited", "cause", err)
			conn = s.restartUntilConnected(ctx)
			if conn == nil {
				return
			}
			s.cluster.log.Info("embedded Postgres restarted")
			broken = s.watch(ctx, conn)
		case <-look.C:
			if err := s.cluster.trimLog(logLimit); err != nil {
				s.cluster.log.Warn("Postgres log not rotated", "cause", err)
			}
		}
	}
}

// watch returns when the connection ends, by itself or by the context.
func (s *Server) watch(ctx context.Context, conn *pgx.Conn) <-chan error {
	broken := make(chan error, 1)
	s.supervised.Go(func() {
		var err error
		for err == nil {
			_, err = conn.WaitForNotification(ctx)
		}
		_ = conn.Close(ctx) // broken already
		broken <- err
	})
	return broken
}

// restartUntilConnected retries until the cluster accepts a connection. It returns nil when the
// context ends.
func (s *Server) restartUntilConnected(ctx context.Context) *pgx.Conn {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		conn, err := s.cluster.restart(ctx)
		if err == nil {
			return conn
		}
		if ctx.Err() != nil {
			return nil
		}
		s.cluster.log.Error("embedded Postgres not started, will retry", "cause", err, "wait", wait)
		if !pause(ctx, wait) {
			return nil
		}
	}
}

// restart makes sure that the cluster runs: this process or another one starts it.
func (c *cluster) restart(ctx context.Context) (*pgx.Conn, error) {
	ctx, end := c.whileItProgresses(ctx)
	defer end()
	starting, err := flock.Acquire(ctx, c.path(startLock), flock.Exclusive)
	if err != nil {
		return nil, err
	}
	defer starting.Release()
	return c.ensure(ctx)
}
