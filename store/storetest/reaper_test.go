package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A test binary that finds this variable is not a test but one of a run's test
// processes, on the folder in it.
const runVariable = "PURSER_TEST_RUN_IN"

// shortLinger lets the reaper be about its work whenever the next process comes.
const shortLinger = 40 * time.Millisecond

func TestMain(m *testing.M) {
	dir := os.Getenv(runVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := join(ctx, dir, shortLinger)
	if err == nil {
		_, err = c.createMigrated(ctx)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready", c.server.Home())
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	runtime.KeepAlive(c)                 // with its lock, which ends when it is collected
}

func TestReaper(t *testing.T) {
	t.Parallel()
	dir := DataDir(t)

	t.Run("leaves a run alone, and the next run too, however the last one ended", func(t *testing.T) {
		first, _ := testProcess(t, dir)
		for range 3 {
			second, _ := testProcess(t, dir)
			kill(t, first)
			first = second
		}
		kill(t, first)
		// Now nobody is there, so the next one comes while the reaper works, or after.
		last, _ := testProcess(t, dir)
		kill(t, last)
	})

	t.Run("takes everything away when nobody is left", func(t *testing.T) {
		process, home := testProcess(t, dir)
		postmaster := readPID(t, home)
		kill(t, process)
		eventually(t, "the end of the folder", func() bool {
			_, err := os.Stat(dir)
			return os.IsNotExist(err)
		})
		eventually(t, "the end of Postgres", func() bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", postmaster))
			return len(line) == 0 // gone, or dead and not collected yet
		})
	})
}

func TestSharedFolder(t *testing.T) {
	t.Parallel()
	taken := DataDir(t)
	if err := os.Symlink(t.TempDir(), taken); err != nil {
		t.Fatal(err)
	}
	if _, err := join(t.Context(), taken, shortLinger); err == nil || !strings.Contains(err.Error(), "not a folder of ours") {
		t.Errorf("a link in its place was followed: %v", err)
	}
}

// testProcess starts a test process and returns when it has its database, with
// the home of its cluster.
func testProcess(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), runVariable+"="+dir)
	process.Stderr = os.Stderr
	if _, err := process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	home, ready := strings.CutPrefix(line, "ready ")
	if err != nil || !ready {
		t.Fatalf("a test process says %q, %v", line, err)
	}
	return process, strings.TrimSpace(home)
}

func kill(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
}

func readPID(t *testing.T, home string) int {
	t.Helper()
	text, err := os.ReadFile(home + "/cluster/postmaster.pid")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
