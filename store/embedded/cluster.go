package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/store/embedded/flock"
)

// Files in the home of a cluster.
const (
	dataName    = "cluster"
	draftName   = "cluster.new" // a cluster that initdb has not finished
	confName    = "purser.conf"
	logName     = "postgres.log"
	startLock   = "start.lock"
	usersLock   = "users.lock"
	runningLock = "running.lock"
)

const (
	dialLimit = 5 * time.Second // for one attempt to connect

	// The pauses between two checks of a cluster that starts or stops double from the
	// first to the last: a start is noticed at once, and a long recovery does not fill
	// the log with our attempts.
	firstLook = 10 * time.Millisecond
	lastLook  = 200 * time.Millisecond
)

// cluster is a Postgres and its folder. Methods that start or stop it require start.lock.
type cluster struct {
	home   string
	binDir string
	log    *slog.Logger
}

func (c *cluster) path(names ...string) string {
	return filepath.Join(append([]string{c.home}, names...)...)
}

// initialised reports whether the cluster exists. It gets its name when it is complete,
// so there is no partial one.
func (c *cluster) initialised() bool {
	_, err := os.Stat(c.path(dataName))
	return err == nil
}

// ensure returns a connection to the cluster, and creates and starts it when needed. Any
// server on the socket is ours. If none accepts the connection, running.lock says whether
// there is one to wait for.
func (c *cluster) ensure(ctx context.Context) (*pgx.Conn, error) {
	launched := false
	logged := c.logSize()
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		conn, failure := c.dial(ctx)
		if failure == nil {
			return conn, nil
		}
		running, err := flock.Try(c.path(runningLock), flock.Exclusive)
		switch {
		case errors.Is(err, flock.ErrHeld):
			c.endOrphans()
		case err != nil:
			return nil, err
		case launched:
			running.Release()
			return nil, fmt.Errorf("the server ended while it started%s", c.logSince(logged))
		default:
			err := c.launch(ctx, running)
			running.Release()
			if err != nil {
				return nil, err
			}
			launched = true
		}
		if !pause(ctx, wait) {
			return nil, fmt.Errorf("the server did not get ready (%w): %w%s", context.Cause(ctx), failure, c.logSince(logged))
		}
	}
}

// dial connects as the superuser to a database that always exists.
func (c *cluster) dial(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(c.url("postgres"))
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = dialLimit
	config.RuntimeParams["application_name"] = "purser supervisor"
	return pgx.ConnectConfig(ctx, config)
}

// launch starts the postmaster, which inherits running.lock: it and all its children have
// the file open, so the lock is free once the last of them has ended.
func (c *cluster) launch(ctx context.Context, running *flock.Lock) error {
	as, err := c.account()
	if err != nil {
		return err
	}
	bin, err := c.binaries(ctx)
	if err != nil {
		return err
	}
	if !c.initialised() {
		if err := c.initialise(ctx, bin, as, running); err != nil {
			return err
		}
	}
	if err := c.writeSettings(ctx, bin, as); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	socket, err := c.prepareSocket(as)
	if err != nil {
		return fmt.Errorf("preparing the socket's folder: %w", err)
	}
	if err := c.removeStalePIDFiles(socket); err != nil {
		return err
	}
	log, err := c.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	keepInheritedFiles()
	cmd := exec.Command(bin.postgres(), "-D", c.path(dataName), "-k", socket, "-c", c.nameSetting())
	cmd.SysProcAttr, cmd.Dir, cmd.Env = as.attr(), c.path(dataName), environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{running.File()}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting Postgres as %s in %s: %w", as, c.path(dataName), err)
	}
	go cmd.Wait() // only so that no zombie stays; the log and the lock tell the rest
	return nil
}

// initialise creates the cluster under a temporary name and renames it when it is
// complete and on disk. initdb inherits running.lock: if this process dies, the next one
// waits for initdb to end before it starts over.
func (c *cluster) initialise(ctx context.Context, bin binaries, as account, running *flock.Lock) error {
	c.log.Info("making a new Postgres cluster", "folder", c.path(dataName), "version", bin.major)
	draft := c.path(draftName)
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	if err := as.makeDir(draft); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bin.initdb(), "--pgdata", draft, "--username", superuser,
		"--auth-local", "trust", "--auth-host", "reject",
		"--encoding", "UTF8", "--locale", "C", "--data-checksums", "--no-instructions")
	cmd.SysProcAttr, cmd.Dir, cmd.Env = as.attr(), draft, environment()
	cmd.ExtraFiles = []*os.File{running.File()}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the cluster in %s as %s: %w: %s", draft, as, err, complaints(out))
	}
	if err := includeSettings(draft); err != nil {
		return err
	}
	if err := os.Rename(draft, c.path(dataName)); err != nil {
		return err
	}
	return SyncFolder(c.home)
}

// stop shuts the cluster down and returns when its last process has ended.
func (c *cluster) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	stopping := 0
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		running, err := flock.Try(c.path(runningLock), flock.Exclusive)
		if err == nil {
			running.Release()
			return c.removeSocket()
		}
		if !errors.Is(err, flock.ErrHeld) {
			return err
		}
		c.endOrphans()
		if pid := c.postmaster(); pid != 0 && pid != stopping {
			// SIGINT is Postgres's fast shutdown: it ends the sessions and writes a checkpoint.
			if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("telling Postgres to stop: %w", err)
			}
			stopping = pid
		}
		if !pause(ctx, wait) {
			return fmt.Errorf("the server is still shutting down: %w", ctx.Err())
		}
	}
}

// explain adds a remedy to an error that only says that permission is denied.
func (c *cluster) explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %s was made by another user; run Purser as that user or as root", err, c.home)
	}
	return err
}

// pause waits, and reports whether the context is still active.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
