package store_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"purser/store"
	"purser/store/storetest"
)

func TestReadinessIsProvenByAWrite(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T, n node) {
		t.Helper()
		soon(t, "the node is ready", func() bool { return n.usage.Ready(t.Context()) == nil })
	}
	becomes := func(t *testing.T, n node, reason string) {
		t.Helper()
		remote := ""
		soon(t, "the node says: "+reason, func() bool {
			err := n.usage.Ready(t.Context())
			if err != nil {
				remote = store.Reason(err)
			}
			return err != nil && strings.Contains(remote, reason)
		})
	}
	open := func(t *testing.T, url string) node { return openNode(t, url, store.EngineOptions{}) }

	t.Run("a read-only database is not ready", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		ready(t, open(t, url))
		name := texts(t, connect(t, url), `SELECT current_database()::text`)[0]
		exec(t, connect(t, url), `ALTER DATABASE `+name+` SET default_transaction_read_only = on`)
		becomes(t, open(t, url), "it is read-only")
	})
	t.Run("a role that lost its right to write is not ready", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		n, owner := open(t, url), connect(t, url)
		ready(t, n)
		exec(t, owner, `REVOKE UPDATE ON readiness_probes FROM purser_app`)
		becomes(t, n, "lacks the right")
		exec(t, owner, `GRANT UPDATE ON readiness_probes TO purser_app`)
		ready(t, n)
	})
	t.Run("a schema that lacks a migration is not ready", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		n := open(t, url)
		exec(t, connect(t, url), `DELETE FROM schema_migrations WHERE name = '20261115000018'`)
		becomes(t, n, "lacks the migrations 20261115000018")
	})
	t.Run("a commit that hangs is not ready", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		n, owner := open(t, url), connect(t, url)
		ready(t, n)
		// As a commit that waits for a standby, the write does not come back.
		tx, err := owner.Begin(t.Context())
		noError(t, err)
		exec(t, tx, `LOCK TABLE readiness_probes IN EXCLUSIVE MODE`)
		becomes(t, n, "")
		noError(t, tx.Rollback(t.Context()))
		ready(t, n)
	})
	t.Run("a silent database is not ready, and is asked in vain for 2 seconds", func(t *testing.T) {
		t.Parallel()
		proxy, err := startProxy(storetest.URL(t))
		noError(t, err)
		n := openNode(t, withParameter(proxy.URL(), "connect_timeout", "5"), store.EngineOptions{}) // as by default
		t.Cleanup(proxy.Close)
		ready(t, n)
		proxy.Silence(true)
		becomes(t, n, "did not answer within 2 seconds")
		asked := time.Now()
		_ = n.usage.Ready(t.Context())
		if took := time.Since(asked); took > 30*time.Second { // for a busy machine
			t.Errorf("it took %s", took)
		}
		proxy.Silence(false)
		ready(t, n)
	})
	t.Run("an engine that was closed is not ready", func(t *testing.T) {
		t.Parallel()
		n := open(t, storetest.URL(t))
		n.close()
		if err := n.usage.Ready(t.Context()); err == nil {
			t.Error("it is ready")
		}
	})
}

func TestReadinessIsAskedOnceHoweverManyCall(t *testing.T) {
	t.Parallel()
	// A caller waits 2 seconds for the probe, of a clock that stands still while any of them runs.
	synctest.Test(t, func(t *testing.T) {
		const callers = 200
		var asked atomic.Int64
		var result atomic.Pointer[error]
		var elapsed atomic.Int64
		let := make(chan struct{})
		var lines lockedBuffer
		check := store.NewReadiness(func(context.Context) error {
			asked.Add(1)
			<-let
			if err := result.Load(); err != nil {
				return *err
			}
			return nil
		}, func() time.Duration { return time.Duration(elapsed.Load()) }, slog.New(slog.NewTextHandler(&lines, nil)))
		call := func(ready bool) {
			t.Helper()
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					if err := check(t.Context()); (err == nil) != ready {
						t.Errorf("it says %v", err)
					}
				})
			}
			done.Wait()
		}

		close(let)
		call(true)
		call(true)
		if asked.Load() != 1 {
			t.Errorf("%d probes within a second", asked.Load())
		}
		broken := errors.New("no disk")
		result.Store(&broken)
		for range 3 {
			elapsed.Add(int64(time.Second))
			call(false)
		}
		result.Store(nil)
		elapsed.Add(int64(time.Second))
		call(true)
		if asked.Load() != 5 {
			t.Errorf("%d probes in five seconds", asked.Load())
		}
		if logged := lines.String(); strings.Count(logged, "not ready") != 1 || strings.Count(logged, "ready again") != 1 {
			t.Errorf("the log says\n%s", logged)
		}
	})
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
