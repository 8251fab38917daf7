package pg

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// LockWait is how long a change of the schema waits for a table. Every reader of the
	// table that comes after it waits, too: behind a backup, for as long as the backup takes.
	LockWait = 2 * time.Second
	// lockPause is how long those readers run before the next attempt.
	lockPause = time.Second
	// SchemaPatience is how long a change of the schema is attempted.
	SchemaPatience = 5 * time.Minute
)

// errTableBusy says what to do after the last attempt.
var errTableBusy = errors.New("another session holds a lock on a table, such as a backup: try again when it has ended (pg_stat_activity lists sessions)")

// RetryLocked repeats a transaction that Postgres rolled back, such as by lock_timeout, until
// it succeeds, fails otherwise, or the limit has passed.
func RetryLocked(ctx context.Context, limit time.Duration, transact func() error) error {
	end := time.Now().Add(limit)
	for {
		err := transact()
		if !WasRolledBack(err) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %w", errTableBusy, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
