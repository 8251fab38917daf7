package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"purser/store/internal/pg"
)

func TestLockedTablesAreTriedAgainForSomeMinutes(t *testing.T) {
	t.Parallel()
	locked := &pgconn.PgError{Code: "55P03", Message: "canceling statement due to lock timeout"}
	attempts := func(ctx context.Context, results func(attempt int) error) (n int, took time.Duration, err error) {
		began := time.Now()
		err = pg.RetryLocked(ctx, pg.SchemaPatience, func() error {
			n++
			time.Sleep(pg.LockWait)
			return results(n)
		})
		return n, time.Since(began), err
	}
	synctest.Test(t, func(t *testing.T) {
		if n, _, err := attempts(t.Context(), func(n int) error {
			if n < 50 {
				return locked
			}
			return nil
		}); n != 50 || err != nil {
			t.Errorf("after %d attempts: %v", n, err)
		}
		n, took, err := attempts(t.Context(), func(int) error { return locked })
		if n < 50 || took < pg.SchemaPatience || took > pg.SchemaPatience+time.Minute {
			t.Errorf("%d attempts in %s", n, took)
		}
		if !errors.Is(err, locked) || !strings.Contains(err.Error(), "try again when it has ended") || strings.Contains(err.Error(), "\n") {
			t.Errorf("it says %v", err)
		}
		other := errors.New("syntax error")
		if n, _, err := attempts(t.Context(), func(int) error { return other }); n != 1 || !errors.Is(err, other) {
			t.Errorf("another error after %d attempts: %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if n, _, err := attempts(ctx, func(int) error { cancel(); return locked }); n != 1 || !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that stopped, after %d attempts: %v", n, err)
		}
	})
}

func TestWasRolledBack(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"40001": true, "40P01": true, "55P03": true, "25P03": true, pg.UniqueViolation: false, pg.QueryCanceled: false, "": false,
	} {
		err := fmt.Errorf("store: charge: %w", &pgconn.PgError{Code: code})
		if got := pg.WasRolledBack(err); got != want {
			t.Errorf("%s: %t", code, got)
		}
		if pg.WasRolledBack(errors.Join(pg.ErrCommitUnknown, err)) {
			t.Errorf("%s in the reply to COMMIT says that nothing was committed", code)
		}
	}
}
