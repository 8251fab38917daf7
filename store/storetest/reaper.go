package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"purser/store/embedded"
	"purser/store/embedded/flock"
)

const (
	// linger is how long the cluster outlives its last test process: longer than
	// the pause between two packages of one run, which compile meanwhile.
	linger = 20 * time.Second

	// reaperLock is held by the reaper, from before it exists until it ends.
	reaperLock = "reaper.lock"

	// A test binary that finds this variable is not a test but the reaper of the
	// folder that follows the time to linger in it.
	reaperVariable = "PURSER_TEST_REAPER"
)

func init() {
	task, ok := os.LookupEnv(reaperVariable)
	if !ok {
		return
	}
	if err := reap(task); err != nil {
		fmt.Fprintln(os.Stderr, "storetest: the reaper:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startReaper starts the process that ends the cluster, unless there is one. It
// has its own session and none of our files but its lock, so no process waits for
// it and no Ctrl-C reaches it.
func startReaper(dir string, linger time.Duration) error {
	lock, err := flock.Try(filepath.Join(dir, reaperLock), flock.Exclusive)
	if errors.Is(err, flock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	reaper := exec.Command(program)
	reaper.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", reaperVariable, linger, dir))
	reaper.Dir = "/"
	reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	reaper.ExtraFiles = []*os.File{lock.File()}
	if err := reaper.Start(); err != nil {
		return err
	}
	return reaper.Process.Release()
}

// reap waits until no test process has been there for the time to linger. Then
// it keeps new ones out while it takes everything away; they start afresh.
func reap(task string) error {
	duration, dir, _ := strings.Cut(task, " ")
	linger, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	presence := filepath.Join(dir, presenceLock)
	lastSeen := time.Now()
	for {
		time.Sleep(linger / 20)
		alone, err := flock.Try(presence, flock.Exclusive)
		if errors.Is(err, flock.ErrHeld) {
			lastSeen = time.Now()
			continue
		}
		if err != nil {
			return err
		}
		// One that came and went between two looks has left its time.
		touched, err := alone.File().Stat()
		if err != nil {
			return err
		}
		if touched.ModTime().After(lastSeen) {
			lastSeen = touched.ModTime()
		}
		if time.Since(lastSeen) >= linger {
			err := remove(dir)
			// The garbage collector would close the file, and with it end the lock, while
			// the folder is removed.
			runtime.KeepAlive(alone)
			return err
		}
		alone.Release()
	}
}

// remove is for the holder of the presence lock. The cluster may have lost its users
// without being stopped, so it is joined to be stopped as by its last user.
func remove(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Options{Dir: dir})
	if err != nil {
		// Nothing that could run: no Postgres here, or a broken cluster.
		return errors.Join(err, removeFolder(dir))
	}
	return errors.Join(server.Stop(ctx), os.RemoveAll(server.Home()), removeFolder(dir))
}

// removeFolder removes the presence lock after everything else: from then on a new
// test process may be at work in the folder, and nothing of it may be removed.
func removeFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != presenceLock {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, presenceLock)); err != nil {
		return err
	}
	_ = os.Remove(dir) // unless a new process is there
	return nil
}
