package flock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// TryPrivate is Try for a file with secret content, in a folder where others may create files.
// It follows no symbolic link, refuses a file that others own or may have linked, and lets
// only its owner read it.
func TryPrivate(path string, mode Mode) (*Lock, error) {
	lock, err := try(path, mode, syscall.O_NOFOLLOW, os.Lstat)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: remove it", path)
	}
	if err != nil {
		return nil, err
	}
	if err := lock.bePrivate(); err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

func (l *Lock) bePrivate() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || stat.Nlink != 1 || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s exists, and is not a plain file of this user alone: remove it", l.file.Name())
	}
	return l.file.Chmod(0o600)
}
