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

// pidName is the file in which a postmaster notes its number, first line.
const pidName = "postmaster.pid"

// postmaster returns the number of the living postmaster, or 0.
func (c *cluster) postmaster() int {
	if pid := c.notedPID(); pid != 0 && c.isOurs(pid) {
		return pid
	}
	return 0
}

// endOrphans kills the sessions that a killed postmaster left behind. They end
// by themselves, but only after the statement they are at, and until then no new
// postmaster may start. What they had not committed is lost either way.
func (c *cluster) endOrphans() {
	// No note: a postmaster that is very young or all but gone. Leave it alone.
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

// removeStaleNotes is for holders of running.lock, who know that no postmaster
// lives. Postgres itself goes by the numbers in these files, and would refuse to
// start where a number has passed to another process of the same user, or where
// its dead process is not collected yet.
func (c *cluster) removeStaleNotes(socket string) error {
	for _, note := range []string{c.path(dataName, pidName), filepath.Join(socket, socketFile+".lock")} {
		if err := os.Remove(note); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// keepInheritedFiles keeps to ourselves the files that our own parent left open
// for us: it may wait for the end of a pipe, and a server that outlives us would
// hold the other end.
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

// isOurs reports whether a process is a Postgres of this cluster: the number
// alone may have passed to a stranger. Everyone may read a command line, while
// root in a container may not see the files of another user's process. A zombie
// has no command line.
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

// name is what all processes of the cluster carry in their command lines.
func (c *cluster) name() string {
	sum := sha256.Sum256([]byte(c.home))
	return fmt.Sprintf("purser-%x", sum[:6])
}

func (c *cluster) nameSetting() string { return "cluster_name=" + c.name() }
