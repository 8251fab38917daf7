package embedded

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

const (
	socketName = "socket"
	port       = "5432" // only part of the socket's name: nothing listens on TCP
	socketFile = ".s.PGSQL." + port
	// socketLimit is the shortest sun_path of all systems, without its NUL.
	socketLimit = 103
)

// socket is the folder to connect to.
func (c *cluster) socket() string {
	if target, err := os.Readlink(c.path(socketName)); err == nil {
		return target
	}
	return c.path(socketName)
}

// prepareSocket creates a folder for the account's socket that no other user can enter. It
// is in the home, or, if that path is too long, in /tmp, with a link in the home.
func (c *cluster) prepareSocket(as account) (string, error) {
	link := c.path(socketName)
	if fits(link) {
		if as.ownsClosed(link) {
			return link, nil
		}
		if err := os.RemoveAll(link); err != nil {
			return "", err
		}
		return link, as.makeDir(link)
	}
	if target, err := os.Readlink(link); err == nil {
		// The same path again, since open pools have it. Mkdir fails if another user has
		// created it meanwhile.
		if as.ownsClosed(target) || (os.Mkdir(target, 0o700) == nil && as.makeDir(target) == nil) {
			return target, nil
		}
	}
	if err := os.RemoveAll(link); err != nil {
		return "", err
	}
	target, err := os.MkdirTemp("/tmp", "purser-*")
	if err != nil {
		return "", err
	}
	if err := as.makeDir(target); err != nil {
		return "", err
	}
	return target, os.Symlink(target, link)
}

// removeSocket removes the socket's folder in /tmp.
func (c *cluster) removeSocket() error {
	target, err := os.Readlink(c.path(socketName))
	if err != nil {
		return nil // it lies in the home and may stay
	}
	return errors.Join(os.RemoveAll(target), os.Remove(c.path(socketName)))
}

// fits reports whether a socket can be in the folder, and whether clients can
// name it: they read a comma as the start of a second host.
func fits(folder string) bool {
	return len(folder+"/"+socketFile) <= socketLimit && !strings.Contains(folder, ",")
}

func (a account) ownsClosed(folder string) bool {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return false
	}
	return info.Sys().(*syscall.Stat_t).Uid == a.uid
}
