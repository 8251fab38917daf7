package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PoolStats are the figures of one connection pool of this node.
type PoolStats struct {
	Name string // "general", "events", "checks" or "bulk"
	// InUse, Idle and Connecting are connections now; Max is the pool's limit.
	InUse, Idle, Connecting, Max int32

	Acquires  int64         // connections handed out
	Waits     int64         // of those, the ones that had to wait
	WaitTime  time.Duration // spent in these waits
	Abandoned int64         // waits that ended with the caller's deadline
	Opened    int64         // connections opened
}

// PoolStats reads the figures of the store's own pool.
func (s *Store) PoolStats() PoolStats { return poolStats("general", s.db.Pool) }

// PoolStats reads the figures of the hot path's pools.
func (u *Engine) PoolStats() []PoolStats {
	return []PoolStats{poolStats(EventBatch, u.singleWrites.Pool), poolStats(CheckBatch, u.reads.Pool), poolStats(BulkBatch, u.bulkWrites.Pool)}
}

func poolStats(name string, pool *pgxpool.Pool) PoolStats {
	s := pool.Stat()
	return PoolStats{
		Name: name, InUse: s.AcquiredConns(), Idle: s.IdleConns(), Connecting: s.ConstructingConns(), Max: s.MaxConns(),
		Acquires: s.AcquireCount(), Waits: s.EmptyAcquireCount(), WaitTime: s.EmptyAcquireWaitTime(),
		Abandoned: s.CanceledAcquireCount(), Opened: s.NewConnsCount(),
	}
}
