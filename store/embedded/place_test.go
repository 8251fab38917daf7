package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOddFolders(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{
		"a very long path": filepath.Join(strings.Repeat("long/", 30), strings.Repeat("x", 200)),
		"odd characters":   `it's "100%" a+b?x=1&y#z\`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, filepath.Join(newFolder(t), folder))
			if !answers(t, s.URL("postgres"))() {
				t.Fatal("no answer")
			}
			socket := s.cluster.socket()
			as, err := s.cluster.account()
			if err != nil {
				t.Fatal(err)
			}
			if !as.ownsClosed(socket) {
				t.Errorf("others may enter %s", socket)
			}
			outside := !strings.HasPrefix(socket, s.Home())
			if outside == fits(s.cluster.path(socketName)) {
				t.Errorf("the socket is in %s", socket)
			}
			killPostmaster(t, s.cluster)
			eventually(t, "an answer at the same address", backWithin, answers(t, s.URL("postgres")))
			stop(t, s)
			if _, err := os.Stat(socket); outside && !os.IsNotExist(err) {
				t.Errorf("%s stays behind: %v", socket, err)
			}
		})
	}
}

func TestSocketFits(t *testing.T) {
	t.Parallel()
	longest := "/" + strings.Repeat("x", socketLimit-len("//"+socketFile))
	if !fits(longest) {
		t.Errorf("%d bytes do not fit", len(longest))
	}
	if fits(longest + "x") {
		t.Errorf("%d bytes fit", len(longest)+1)
	}
	if fits("/this,that") {
		t.Error("a comma fits, though clients read it as two hosts")
	}
}

func TestSocketFolderTakenByAnother(t *testing.T) {
	t.Parallel()
	home := filepath.Join(newFolder(t), strings.Repeat("x", 120))
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	c := clusterIn(home)
	taken := t.TempDir()
	if err := os.Chmod(taken, 0o755); err != nil { // not as we leave it
		t.Fatal(err)
	}
	if err := os.Symlink(taken, c.path(socketName)); err != nil {
		t.Fatal(err)
	}
	as := account{uid: uint32(os.Geteuid())}
	socket, err := c.prepareSocket(as)
	if err != nil {
		t.Fatal(err)
	}
	if socket == taken || socket != c.socket() || !as.ownsClosed(socket) {
		t.Errorf("the socket would lie in %s", socket)
	}
	if err := c.removeSocket(); err != nil {
		t.Error(err)
	}
}

// Root and an ordinary user differ in who runs Postgres and where it may live.
// A test run by root sees both, any other its own.
func TestWhoRunsPostgres(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Run("an ordinary user runs it as itself", func(t *testing.T) {
			s := start(t, newFolder(t))
			if got := owner(t, s.cluster.path(dataName)); got != uint32(os.Geteuid()) {
				t.Errorf("the cluster belongs to user %d", got)
			}
		})
		return
	}
	nobody, err := lookUp([]string{"nobody"})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("an ordinary user runs it as itself, and root joins it as that user's", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		if err := nobody.makeDir(dir); err != nil {
			t.Fatal(err)
		}
		ordinary := newNeighbour(t, dir, nobody.attr()).ready(t)
		c := clusterIn(ordinary.home)
		for _, path := range []string{c.path(dataName), c.path(startLock), filepath.Join("/proc", pidText(c))} {
			if got := owner(t, path); got != nobody.uid {
				t.Errorf("%s belongs to user %d", path, got)
			}
		}
		root := start(t, dir)
		ordinary.stop(t)
		killPostmaster(t, c)
		eventually(t, "an answer", backWithin, answers(t, root.URL("postgres")))
		if got := owner(t, filepath.Join("/proc", pidText(c))); got != nobody.uid {
			t.Errorf("root restarted it as user %d", got)
		}
	})

	t.Run("root's cluster refuses an ordinary user with a sentence", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		start(t, dir)
		line, err := newNeighbour(t, dir, nobody.attr()).answer.ReadString('\n')
		if err != nil || !strings.Contains(line, "run Purser as that user or as root") {
			t.Errorf("the ordinary user reads %q, %v", line, err)
		}
	})

	t.Run("root puts it elsewhere when the user cannot enter the data folder", func(t *testing.T) {
		t.Parallel()
		parent := filepath.Dir(newFolder(t))
		if err := os.Chmod(parent, 0o700); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(parent, "data")
		users := []*neighbour{newNeighbour(t, dir, nil), newNeighbour(t, dir, nil)}
		for _, u := range users {
			u.ready(t)
		}
		home := users[0].home
		t.Cleanup(func() {
			_ = os.RemoveAll(home)
			_ = os.Remove(systemFolder) // unless others live there
		})
		if filepath.Dir(home) != systemFolder || users[1].home != home {
			t.Fatalf("they settled in %s and %s", home, users[1].home)
		}
		execute(t, users[0].url, "CREATE TABLE kept AS SELECT 'yes' AS kept")
		for _, u := range users {
			u.stop(t)
		}
		s := start(t, dir)
		if got := query(t, s.URL("postgres"), "SELECT kept FROM kept"); s.Home() != home || got != "yes" {
			t.Errorf("found %q in %s", got, s.Home())
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
			t.Errorf("the data folder holds %s, %v", left, err)
		}
		if info, err := os.Stat(parent); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the closed folder was opened: %v, %v", info.Mode(), err)
		}
	})
}

// The state folder of a systemd unit with a dynamic user is closed to all others.
func TestAPlaceThatPostgresCannotEnterIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root runs Postgres as another user")
		return
	}
	dir, closed := newFolder(t), filepath.Join(filepath.Dir(newFolder(t)), "closed")
	for _, path := range []string{dir, closed} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, err := clusterIn(filepath.Join(dir, insideName)).settleElsewhere(t.Context(), dir, closed)
	if err == nil || !strings.Contains(err.Error(), closed) || !strings.Contains(err.Error(), "PURSER_DATA") {
		t.Errorf("it says %v", err)
	}
	for _, path := range []string{dir, closed} {
		if left, err := os.ReadDir(path); err != nil || len(left) > 0 {
			t.Errorf("%s holds %v, %v", path, left, err)
		}
	}
}

func pidText(c *cluster) string {
	text, _ := os.ReadFile(c.path(dataName, pidName))
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
