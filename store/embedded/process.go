package embedded

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// pidName is the postmaster's pid file.
const pidName = "postmaster.pid"

// postmaster returns the process ID of the running postmaster, or 0.
func (c *cluster) postmaster() int {
	if pid := c.notedPID(); pid != 0 && c.isOurs(pid) {
		return pid
	}
	return 0
}

// endOrphans kills the backends that a killed postmaster left behind. They end by
// themselves, but only after their current statement, and until then no new postmaster
// may start. What they have not committed is lost either way.
func (c *cluster) endOrphans() {
	// No pid file: a postmaster that is just starting or ending. Leave it alone.
	if noted := c.notedPID(); noted == 0 || c.isOurs(noted) {
		return
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // not Linux: wait for them instead
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && c.isOurs(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
		}
	}
}

// removeStalePIDFiles requires running.lock, which says that no postmaster runs. Postgres
// itself trusts the process IDs in these files, and would refuse to start if another
// process of the same user has such an ID by now, or its process is a zombie.
func (c *cluster) removeStalePIDFiles(socket string) error {
	for _, note := range []string{c.path(dataName, pidName), filepath.Join(socket, socketFile+".lock")} {
		if err := os.Remove(note); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// keepInheritedFiles keeps files that our parent left open from being inherited: the
// parent may wait for the end of a pipe, which a Postgres that outlives us would keep
// open.
func keepInheritedFiles() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

func (c *cluster) notedPID() int {
	text, err := os.ReadFile(c.path(dataName, pidName))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

// isOurs reports whether a process is a Postgres of this cluster: another process may have
// its ID by now. A command line is readable by everyone, while root in a container may not
// see the files of another user's process. A zombie has no command line.
func (c *cluster) isOurs(pid int) bool {
	if runtime.GOOS != "linux" {
		return syscall.Kill(pid, 0) == nil
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	session := strings.HasPrefix(string(line), "postgres: "+c.name()+": ")
	return session || strings.Contains(string(line), "\x00"+c.nameSetting()+"\x00")
}

// name is in the command lines of all processes of the cluster.
func (c *cluster) name() string {
	sum := sha256.Sum256([]byte(c.home))
	return fmt.Sprintf("purser-%x", sum[:6])
}

func (c *cluster) nameSetting() string { return "cluster_name=" + c.name() }
