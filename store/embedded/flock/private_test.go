package flock

import (
	"os"
	"strings"
	"testing"
)

func TestAPrivateFileIsOfItsOwnerAlone(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T) string {
		t.Helper()
		path := lockPath(t)
		if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	isKept := func(t *testing.T, path string) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || string(text) != "kept" {
			t.Errorf("the file has %q, %v", text, err)
		}
	}
	for name, make := range map[string]func(old, path string) error{"symbolic": os.Symlink, "hard": os.Link} {
		t.Run("a "+name+" link is refused", func(t *testing.T) {
			old, path := write(t), lockPath(t)
			if err := make(old, path); err != nil {
				t.Fatal(err)
			}
			if _, err := TryPrivate(path, Exclusive); err == nil || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("got %v", err)
			}
			isKept(t, old)
		})
	}
	t.Run("a file that others can read is closed to them", func(t *testing.T) {
		path := write(t)
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		lock, err := TryPrivate(path, Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Release()
		if info, err := lock.File().Stat(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if _, err := TryPrivate(path, Exclusive); err != ErrHeld {
			t.Errorf("beside the holder: %v", err)
		}
		isKept(t, path)
	})
}
