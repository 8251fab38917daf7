package pg

import (
	"context"
	"fmt"
)

// Connections is how many connections a node may open, and how many the database
// has.
type Connections struct {
	Need     int // of this node
	Max      int // max_connections
	Reserved int // for superusers and other reserved roles
	Used     int // by other programs and nodes now
}

// Capacity compares a node's need with the connections that the database has.
func (db *DB) Capacity(ctx context.Context, need int) (Connections, error) {
	c := Connections{Need: need}
	err := db.Pool.QueryRow(ctx, `
		SELECT current_setting('max_connections')::int,
			current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true), '0')::int,
			coalesce(sum(numbackends), 0)::int
		FROM pg_stat_database`).Scan(&c.Max, &c.Reserved, &c.Used)
	if err != nil {
		return c, fmt.Errorf("store: counting the database's connections: %w", err)
	}
	c.Used = max(0, c.Used-int(db.Pool.Stat().TotalConns()))
	return c, nil
}

// Shortage says in one sentence that the database has fewer connections than this
// node may open, or nothing.
func (c Connections) Shortage() string {
	free := c.Max - c.Reserved - c.Used
	if free >= c.Need {
		return ""
	}
	return fmt.Sprintf("this node opens up to %d database connections, and the database has %d left (max_connections %d, %d reserved, %d in use): raise max_connections or lower PURSER_DB_CONNS",
		c.Need, max(0, free), c.Max, c.Reserved, c.Used)
}

// CheckDurable refuses a server that may lose what it has acknowledged.
func (db *DB) CheckDurable(ctx context.Context) error {
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		var value string
		if err := db.Pool.QueryRow(ctx, `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
			return fmt.Errorf("store: reading %s: %w", setting, err)
		}
		if value == "off" {
			return fmt.Errorf("store: the database has %s = off, so it may lose what it has acknowledged: turn it on", setting)
		}
	}
	return nil
}
