package flock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	t.Parallel()

	t.Run("an exclusive lock keeps everyone else out", func(t *testing.T) {
		path := lockPath(t)
		lock := mustTry(t, path, Exclusive)
		wantHeld(t, path, Shared)
		wantHeld(t, path, Exclusive)
		lock.Release()
		mustTry(t, path, Exclusive).Release()
	})

	t.Run("a shared lock is shared and keeps an exclusive one out", func(t *testing.T) {
		path := lockPath(t)
		first := mustTry(t, path, Shared)
		second := mustTry(t, path, Shared)
		wantHeld(t, path, Exclusive)
		if err := first.Upgrade(); !errors.Is(err, ErrHeld) {
			t.Fatalf("upgrading beside another holder: %v, want ErrHeld", err)
		}
		first.Release()
		if err := second.Upgrade(); err != nil {
			t.Fatalf("upgrading as the last holder: %v", err)
		}
		wantHeld(t, path, Shared)
	})

	t.Run("waiting ends with the context", func(t *testing.T) {
		path := lockPath(t)
		defer mustTry(t, path, Exclusive).Release()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Acquire(ctx, path, Shared); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the end of the context", err)
		}
	})

	t.Run("a waiter whose file was removed ends up with the new file", func(t *testing.T) {
		path := lockPath(t)
		removed := mustTry(t, path, Exclusive)
		waiting := make(chan *Lock)
		go func() {
			lock, err := Acquire(t.Context(), path, Exclusive)
			if err != nil {
				t.Error(err)
			}
			waiting <- lock
		}()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		removed.Release()
		if lock := <-waiting; lock != nil {
			defer lock.Release()
		}
		wantHeld(t, path, Exclusive)
	})

	t.Run("a child that inherits the file holds the lock until it ends", func(t *testing.T) {
		path := lockPath(t)
		lock := mustTry(t, path, Exclusive)
		child := exec.Command("cat")
		child.ExtraFiles = []*os.File{lock.File()}
		stdin, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lock.Release()
		wantHeld(t, path, Exclusive)
		_ = stdin.Close()
		if err := child.Wait(); err != nil {
			t.Fatal(err)
		}
		mustTry(t, path, Exclusive).Release()
	})
}

func lockPath(t *testing.T) string { return filepath.Join(t.TempDir(), "lock") }

func mustTry(t *testing.T, path string, mode Mode) *Lock {
	t.Helper()
	lock, err := Try(path, mode)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func wantHeld(t *testing.T, path string, mode Mode) {
	t.Helper()
	if lock, err := Try(path, mode); !errors.Is(err, ErrHeld) {
		if err == nil {
			lock.Release()
		}
		t.Fatalf("got %v, want ErrHeld", err)
	}
}
