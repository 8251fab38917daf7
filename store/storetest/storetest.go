package storetest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/store"
	"purser/store/internal/limits"
)

// limit is for getting one thing ready: a cluster, a database, a store. Past it
// something hangs, however busy the machine is.
const limit = 5 * time.Minute

// The limits of a server's sessions are for servers: no test may fail because
// Postgres was slow to get a share of the processor.
func init() { limits.Relax() }

// URL is the address of this process's migrated database. The tests of a process
// share it, so each works in an application of its own.
func URL(tb testing.TB) string {
	tb.Helper()
	address, err := processURL()
	if err != nil {
		tb.Fatal(err)
	}
	return address
}

// FreshURL is the address of a migrated database for this test alone. It goes
// with the test.
func FreshURL(tb testing.TB) string {
	tb.Helper()
	return own(tb, (*cluster).createMigrated)
}

// Distributed reports that tests have databases of a Citus cluster.
func Distributed(tb testing.TB) bool {
	tb.Helper()
	c, err := processCluster()
	if err != nil {
		tb.Fatal(err)
	}
	return len(c.nodes) > 1
}

// Nodes are the addresses of a test's database on every server that has it: on Citus the
// coordinator first, then the workers, where statements wait for locks.
func Nodes(tb testing.TB, address string) []string {
	tb.Helper()
	c, err := processCluster()
	if err != nil {
		tb.Fatal(err)
	}
	if len(c.nodes) == 1 {
		return []string{address}
	}
	at, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	var list []string
	for _, n := range c.nodes {
		list = append(list, n(strings.TrimPrefix(at.Path, "/")))
	}
	return list
}

// EmptyURL is the address of a database without any schema for this test alone.
// It goes with the test.
func EmptyURL(tb testing.TB) string {
	tb.Helper()
	return own(tb, (*cluster).createEmpty)
}

// Open is the store on URL, one for the whole process. It stays open.
func Open(tb testing.TB) *store.Store {
	tb.Helper()
	s, err := processStore()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// DataDir is a data folder for a test that runs a whole Purser. Unlike one below
// tb.TempDir it can be entered by the user that root's Postgres runs as, so the
// cluster lies in it and goes with it.
func DataDir(tb testing.TB) string {
	tb.Helper()
	parent, err := os.MkdirTemp(clusterParent(), "purser-test-data-*")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			tb.Error(err)
		}
	})
	if err := os.Chmod(parent, 0o711); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(parent, "data")
}

var processCluster = sync.OnceValues(func() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return joinCluster(ctx)
})

var processURL = sync.OnceValues(func() (string, error) {
	c, err := processCluster()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	name, err := c.createMigrated(ctx)
	sharedURL.Store(c.url(name))
	return c.url(name), err
})

var processStore = sync.OnceValues(func() (*store.Store, error) {
	address, err := processURL()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return store.Open(ctx, address, store.Options{})
})

// own makes a database that goes with the test.
func own(tb testing.TB, create func(*cluster, context.Context) (string, error)) string {
	tb.Helper()
	c, err := processCluster()
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	name, err := create(c, ctx)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := c.drop(ctx, name); err != nil {
			tb.Error(err)
		}
	})
	return c.url(name)
}
