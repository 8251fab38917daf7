package storetest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// sessions are open connections to this process's database that no test uses at the
// moment. Starting one costs Postgres more than most statements that tests run on it.
var sessions struct {
	mu   sync.Mutex
	idle []*pgx.Conn
}

// sharedURL is the address of this process's database, once it has one.
var sharedURL atomic.Value

// maxIdleSessions bounds the connections that are kept.
const maxIdleSessions = 4

// onSession runs work on a connection of the superuser. Work leaves it as it was: it
// changes no setting and leaves no transaction open.
func onSession(ctx context.Context, url string, work func(*pgx.Conn) error) error {
	shared := url == sharedURL.Load()
	conn := idleSession(shared)
	if conn == nil || conn.Ping(ctx) != nil { // none is idle, or a test has ended it
		var err error
		if conn, err = pgx.Connect(ctx, url); err != nil {
			return err
		}
	}
	if err := work(conn); err != nil || !shared || !putSession(conn) {
		_ = conn.Close(ctx)
		return err
	}
	return nil
}

func idleSession(shared bool) (conn *pgx.Conn) {
	sessions.mu.Lock()
	defer sessions.mu.Unlock()
	if last := len(sessions.idle) - 1; shared && last >= 0 {
		conn, sessions.idle = sessions.idle[last], sessions.idle[:last]
	}
	return conn
}

func putSession(conn *pgx.Conn) bool {
	sessions.mu.Lock()
	defer sessions.mu.Unlock()
	if conn.IsClosed() || len(sessions.idle) == maxIdleSessions {
		return false
	}
	sessions.idle = append(sessions.idle, conn)
	return true
}
