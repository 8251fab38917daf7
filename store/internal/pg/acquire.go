package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"purser/fault"
)

const (
	// After Postgres has refused a connection, none is opened for this long: its limit is
	// reached, and every attempt costs it a process.
	refusedPause = time.Second
	// While it lasts, those who need a connection look for a free one this often.
	idleInterval = 2 * time.Millisecond
)

// refusal is Postgres' answer to one connection too many.
type refusal struct {
	at    time.Time
	cause error
}

// Acquire takes a connection of the pool. While Postgres refuses new ones, it waits for one
// that is in use, as at the limit of the pool.
func (db *DB) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		refused := db.refused.Load()
		if refused == nil || time.Since(refused.at) >= refusedPause {
			conn, err := db.Pool.Acquire(ctx)
			if SQLState(err) != TooManyConnections {
				return conn, err
			}
			refused = &refusal{time.Now(), err}
			db.refused.Store(refused)
		}
		if idle := db.Pool.AcquireAllIdle(ctx); len(idle) > 0 {
			for _, other := range idle[1:] {
				Release(other)
			}
			return idle[0], nil
		}
		if stat := db.Pool.Stat(); stat.AcquiredConns()+stat.IdleConns() == 0 {
			return nil, refused.cause // none will become free
		}
		select {
		case <-ctx.Done():
			return nil, refused.cause
		case <-time.After(idleInterval):
		}
	}
}

// acquire takes a connection of the pool, within the organization's share.
func (a App) acquire(ctx context.Context) (conn *pgxpool.Conn, release func(), err error) {
	done, err := a.DB.shares.Take(ctx, a.Scope.OrgID)
	if err != nil {
		return nil, nil, fault.New(fault.Overloaded)
	}
	if conn, err = a.DB.Acquire(ctx); err != nil {
		done()
		return nil, nil, fmt.Errorf("store: no connection: %w", err)
	}
	return conn, func() { Release(conn); done() }, nil
}
