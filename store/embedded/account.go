package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// unprivileged are the users that root runs Postgres as, the preferred first.
var unprivileged = []string{"postgres", "nobody"}

// account is the user that the processes of Postgres run as.
type account struct {
	uid, gid uint32
	drop     bool // we are root and must become it
}

// account is the owner of the cluster. A new cluster belongs to the current user, or to
// an unprivileged one instead of root: Postgres refuses to run as root.
func (c *cluster) account() (account, error) {
	self := account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	info, err := os.Stat(c.path(dataName))
	if errors.Is(err, os.ErrNotExist) {
		if self.uid != 0 {
			return self, nil
		}
		return lookUp(unprivileged)
	}
	if err != nil {
		return account{}, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	owner := account{uid: stat.Uid, gid: stat.Gid, drop: self.uid == 0}
	switch {
	case owner.uid == 0:
		return account{}, fmt.Errorf("%s belongs to root, whom Postgres refuses to serve: chown it to another user", c.path(dataName))
	case !owner.drop && owner.uid != self.uid:
		return account{}, fmt.Errorf("%s belongs to %s: run Purser as that user or as root", c.path(dataName), owner)
	}
	return owner, nil
}

func lookUp(names []string) (account, error) {
	for _, name := range names {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			continue
		}
		return account{uid: uint32(uid), gid: uint32(gid), drop: true}, nil
	}
	return account{}, fmt.Errorf("there is no user %s to run Postgres as, which refuses root: run Purser as an ordinary user", strings.Join(names, " or "))
}

func (a account) String() string {
	id := strconv.FormatUint(uint64(a.uid), 10)
	if found, err := user.LookupId(id); err == nil {
		return "user " + found.Username
	}
	return "user " + id
}

// attr starts a process as the account, in its own session: a Ctrl-C in the terminal must
// not reach Postgres before the server has finished its requests.
func (a account) attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// makeDir creates a folder that only the account can enter.
func (a account) makeDir(path string) error {
	if err := makeDir(path, 0o700); err != nil || !a.drop {
		return err
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// accountEnters reports whether the account of a new cluster can pass through
// the folder. It tries it, since modes alone do not decide it.
func (c *cluster) accountEnters(ctx context.Context, dir string) (bool, error) {
	a, err := c.account()
	if err != nil {
		return false, err
	}
	bin, err := c.binaries(ctx)
	if err != nil {
		return false, err
	}
	try := func(in string) error {
		cmd := exec.CommandContext(ctx, bin.postgres(), "--version")
		cmd.SysProcAttr, cmd.Dir, cmd.Env = a.attr(), in, environment()
		return cmd.Run()
	}
	if err := try("/"); err != nil {
		return false, fmt.Errorf("running %s as %s: %w", bin.postgres(), a, err)
	}
	err = try(dir)
	if errors.Is(err, os.ErrPermission) {
		return false, nil
	}
	return err == nil, err
}
