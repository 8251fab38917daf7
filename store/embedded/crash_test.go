package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// backWithin bounds the wait for a restart, which takes a second on an idle machine.
// Only a server that never comes back reaches it.
const backWithin = limit

func TestKilledUser(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	killed := newNeighbour(t, dir, nil).ready(t)
	execute(t, killed.url, "CREATE TABLE kept AS SELECT 'yes' AS kept")
	pid := clusterIn(killed.home).postmaster()
	killed.kill(t)

	if !answers(t, killed.url)() {
		t.Fatal("the server died with its user")
	}
	if err := killed.held.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := killed.held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the server holds on to a file of its user's parent: %v", err)
	}
	s := start(t, dir)
	if s.cluster.postmaster() != pid {
		t.Error("the next user started a server of its own")
	}
	if got := query(t, s.URL("postgres"), "SELECT kept FROM kept"); got != "yes" {
		t.Errorf("got %q", got)
	}
	stop(t, s)
	if runs(s) {
		t.Error("a killed user still counts as one")
	}
}

func TestKilledPostmaster(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	other := newNeighbour(t, dir, nil).ready(t)
	s := start(t, dir)
	execute(t, s.URL("postgres"), "CREATE TABLE kept AS SELECT 'yes' AS kept")

	t.Run("comes back while it has users, with all that was committed", func(t *testing.T) {
		killPostmaster(t, s.cluster)
		eventually(t, "an answer", backWithin, answers(t, s.URL("postgres")))
		if got := query(t, s.URL("postgres"), "SELECT kept FROM kept"); got != "yes" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("comes back although a session is busy", func(t *testing.T) {
		beBusy(t, s.URL("postgres"))
		killPostmaster(t, s.cluster)
		eventually(t, "an answer", backWithin, answers(t, s.URL("postgres")))
	})

	t.Run("comes back after its sessions crashed", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := conn.Ping(t.Context()); err == nil {
			t.Fatal("a killed session answers")
		}
		eventually(t, "an answer", backWithin, answers(t, s.URL("postgres")))
	})

	t.Run("comes back for the next user when all others died with it", func(t *testing.T) {
		stop(t, s)
		other.kill(t)
		killPostmaster(t, s.cluster)
		again := start(t, dir)
		if got := query(t, again.URL("postgres"), "SELECT kept FROM kept"); got != "yes" {
			t.Errorf("got %q", got)
		}
	})
}

func TestStalePID(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := start(t, dir)
	stop(t, s)
	as, err := s.cluster.account()
	if err != nil {
		t.Fatal(err)
	}
	// After a crash of the machine the number may belong to any process, here to
	// one of the same user: Postgres by itself would refuse to start.
	stranger := exec.Command("cat")
	stranger.SysProcAttr = as.attr()
	stdin, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf("%d\n%s\n1700000000\n5432\n%s\n", stranger.Process.Pid, s.cluster.path(dataName), s.cluster.socket())
	for _, file := range []string{s.cluster.path(dataName, pidName), filepath.Join(s.cluster.socket(), socketFile+".lock")} {
		if err := os.WriteFile(file, []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !answers(t, start(t, dir).URL("postgres"))() {
		t.Error("no answer")
	}
	_ = stdin.Close()
	if err := stranger.Wait(); err != nil {
		t.Errorf("the stranger was harmed: %v", err)
	}
}

func TestKilledWhileInitialising(t *testing.T) {
	t.Parallel()
	var dir string
	var c *cluster
	// On a busy machine the kill may come after initdb has finished. Then it proves
	// nothing, and the next one is killed.
	for tries := 0; c == nil || c.initialised(); tries++ {
		if tries == 20 {
			t.Fatal("killed too late to prove anything, every time")
		}
		dir = newFolder(t)
		c = clusterIn(dir + "/" + insideName)
		killed := newNeighbour(t, dir, nil)
		eventually(t, "the beginning of a cluster", limit, func() bool {
			_, err := os.Stat(c.path(draftName, "base"))
			return err == nil || c.initialised()
		})
		killed.kill(t)
	}
	if !answers(t, start(t, dir).URL("postgres"))() {
		t.Error("no answer")
	}
	if _, err := os.Stat(c.path(draftName)); !os.IsNotExist(err) {
		t.Errorf("the unfinished cluster is still there: %v", err)
	}
}

func clusterIn(home string) *cluster { return &cluster{home: home} }

func killPostmaster(t *testing.T, c *cluster) {
	t.Helper()
	pid := c.postmaster()
	if pid == 0 {
		t.Fatal("there is no postmaster to kill")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the postmaster", backWithin, func() bool { return !c.isOurs(pid) })
}

// beBusy has a session compute for longer than the test lasts, without a pause
// in which it would notice that its postmaster is gone.
func beBusy(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		_, _ = tryQuery(ctx, url, "SELECT count(*)::text FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b")
	}()
	eventually(t, "a busy session", backWithin, func() bool {
		busy := query(t, url, "SELECT count(*)::text FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series(1,%'")
		return strings.Compare(busy, "2") >= 0 // it and the one who asks
	})
}
