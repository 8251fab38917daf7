package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"purser/store/embedded"
	"purser/store/embedded/flock"
)

// presenceLock is held, shared, by every test process for as long as it lives,
// and touched when one comes. The reaper goes by both.
const presenceLock = "tests.lock"

// cluster is the Postgres that test processes share.
type cluster struct {
	dir      string
	server   *embedded.Server // nil on Citus
	presence *flock.Lock      // never given back: it ends with the process
	nodes    []node           // the servers that have each database: on Citus several
	// enlist and distribute prepare the template on Citus, before and after its migration.
	enlist, distribute func(ctx context.Context, name string) error
}

// node is a server: the address of each of its databases.
type node func(database string) (url string)

// url is the address of a database for tests.
func (c *cluster) url(name string) string { return c.nodes[0](name) }

// joinCluster is replaced with the build tag citus.
var joinCluster = func(ctx context.Context) (*cluster, error) { return join(ctx, sharedFolder(), linger) }

func unprepared(context.Context, string) error { return nil }

// sharedFolder is where all test processes of this user meet.
func sharedFolder() string {
	return filepath.Join(clusterParent(), fmt.Sprintf("purser-test-%d", os.Geteuid()))
}

// join makes this process one of those that keep the cluster alive, and sees to
// it that there is someone to end it afterwards.
func join(ctx context.Context, dir string, linger time.Duration) (*cluster, error) {
	presence, err := bePresent(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	if err := startReaper(dir, linger); err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	server, err := embedded.Start(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	c := &cluster{dir: dir, server: server, presence: presence, nodes: []node{server.URL}, enlist: unprepared, distribute: unprepared}
	if err := c.dropAbandoned(ctx); err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	return c, nil
}

func bePresent(ctx context.Context, dir string) (*flock.Lock, error) {
	for {
		if err := makeFolder(dir); err != nil {
			return nil, err
		}
		presence, err := flock.Acquire(ctx, filepath.Join(dir, presenceLock), flock.Shared)
		if errors.Is(err, os.ErrNotExist) {
			continue // the reaper has just removed the folder
		}
		if err != nil {
			return nil, err
		}
		now := time.Now()
		return presence, os.Chtimes(presence.File().Name(), now, now)
	}
}

// makeFolder refuses a folder that another user has put in our place: the
// temporary folder is open to all.
func makeFolder(dir string) error {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // root's Postgres runs as another user, who must get through
	}
	if err := os.Mkdir(dir, mode); err == nil {
		return os.Chmod(dir, mode)
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // removed again: opening a file in it will fail
	}
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%s is not a folder of ours: remove it", dir)
	}
	return nil
}
