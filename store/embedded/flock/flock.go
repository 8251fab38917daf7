package flock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Mode says with whom a lock may be held.
type Mode int

// The two modes of a lock.
const (
	Shared    Mode = syscall.LOCK_SH
	Exclusive Mode = syscall.LOCK_EX
)

// ErrHeld says that someone else holds the lock in a mode that excludes ours.
var ErrHeld = errors.New("the lock is held by another process")

// pollEvery is how often a waiter looks again. Waiting inside flock(2) itself
// could not be ended by a context.
const pollEvery = 20 * time.Millisecond

// Lock is a held lock.
type Lock struct{ file *os.File }

// Acquire waits for the lock until the context ends.
func Acquire(ctx context.Context, path string, mode Mode) (*Lock, error) {
	for {
		lock, err := Try(path, mode)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
}

// Try takes the lock, or returns ErrHeld at once.
func Try(path string, mode Mode) (*Lock, error) { return try(path, mode, 0, os.Stat) }

// try opens with more flags, and finds the file of a path with stat.
func try(path string, mode Mode, flags int, stat func(string) (os.FileInfo, error)) (*Lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|flags, 0o600)
		if err != nil {
			return nil, err
		}
		lock := &Lock{file}
		if err := lock.flock(mode); err != nil {
			lock.Release()
			return nil, err
		}
		current, err := lock.atPath(stat)
		if err == nil && current {
			return lock, nil
		}
		lock.Release()
		if err != nil {
			return nil, err
		}
	}
}

// Upgrade makes a shared lock exclusive, or returns ErrHeld when it has other
// holders. In both cases the shared lock may be lost on the way, so it serves
// only those who are about to release it, or who keep new holders out otherwise.
func (l *Lock) Upgrade() error { return l.flock(Exclusive) }

// File is the open file. A child process that inherits it holds the lock too,
// until it ends, even after Release here.
func (l *Lock) File() *os.File { return l.file }

// Release lets go, as far as this process is concerned.
func (l *Lock) Release() { _ = l.file.Close() }

func (l *Lock) flock(mode Mode) error {
	for {
		err := syscall.Flock(int(l.file.Fd()), int(mode)|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return fmt.Errorf("locking %s: %w", l.file.Name(), err)
		}
	}
}

// atPath reports whether the locked file is still the one that others find: it
// may have been removed, or replaced, between open and flock.
func (l *Lock) atPath(stat func(string) (os.FileInfo, error)) (bool, error) {
	held, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	found, err := stat(l.file.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(held, found), err
}
