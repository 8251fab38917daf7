package embedded

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestFirstStart(t *testing.T) {
	t.Parallel()
	s := start(t, newFolder(t))

	t.Run("answers", func(t *testing.T) {
		if got := query(t, s.URL("postgres"), "SELECT 'hello'"); got != "hello" {
			t.Errorf("got %q", got)
		}
	})

	t.Run("is durable, checks its pages and speaks UTF-8, bytewise, in UTC", func(t *testing.T) {
		for name, want := range map[string]string{
			"fsync":                          "on",
			"full_page_writes":               "on",
			"synchronous_commit":             "on",
			"data_checksums":                 "on",
			"server_encoding":                "UTF8",
			"lc_collate":                     "C",
			"timezone":                       "UTC",
			"listen_addresses":               "",
			"unix_socket_permissions":        "0700",
			"max_wal_size":                   "4GB",
			"jit":                            "off",
			"autovacuum_vacuum_scale_factor": "0.05",
		} {
			if got := query(t, s.URL("postgres"), "SHOW "+name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
	})

	t.Run("hides its socket from every other user", func(t *testing.T) {
		info, err := os.Stat(s.cluster.socket())
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("the mode of the socket's folder is %v", info.Mode())
		}
	})

	t.Run("runs in a session of its own, so Ctrl-C does not reach it, and not as root", func(t *testing.T) {
		pid := s.cluster.postmaster()
		if session := sessionOf(t, pid); session != pid {
			t.Errorf("the postmaster %d is in session %d", pid, session)
		}
		if owner(t, s.cluster.path(dataName)) == 0 {
			t.Error("the cluster belongs to root")
		}
	})

	t.Run("keeps what Postgres has to say in its log", func(t *testing.T) {
		text, err := os.ReadFile(s.cluster.path(logName))
		if err != nil || !strings.Contains(string(text), "ready to accept connections") {
			t.Errorf("the log says %q, %v", text, err)
		}
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	first := start(t, dir)
	pid := first.cluster.postmaster()
	other := newNeighbour(t, dir, nil).ready(t)

	if other.url != first.URL("postgres") || first.cluster.postmaster() != pid {
		t.Fatal("the second user did not join the first one's server")
	}
	stop(t, first)
	if !answers(t, other.url)() || first.cluster.postmaster() != pid {
		t.Fatal("the first user's Stop ended the server under the second")
	}
	second := start(t, dir)
	other.stop(t)
	if !answers(t, other.url)() {
		t.Fatal("a user's Stop ended the server under one who joined later")
	}
	stop(t, second)
	if runs(second) || answers(t, other.url)() {
		t.Fatal("the server survived its last user")
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Fatalf("a second Stop: %v", err)
	}
}

func TestFirstStartOfTwo(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	users := []*neighbour{newNeighbour(t, dir, nil), newNeighbour(t, dir, nil), newNeighbour(t, dir, nil)}
	identity := ""
	for _, u := range users {
		u.ready(t)
		got := query(t, u.url, "SELECT system_identifier::text FROM pg_control_system()")
		if identity != "" && identity != got {
			t.Fatal("two users made two clusters")
		}
		identity = got
	}
	for _, u := range users {
		u.stop(t)
	}
}

// Every start meets the stop of another user here. A server that is ended under
// someone who has just joined shows as a failed query.
func TestStartsMeetStops(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			for range 6 {
				s, err := Start(t.Context(), Options{Dir: dir})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := tryQuery(t.Context(), s.URL("postgres"), "SELECT 'yes'"); err != nil {
					t.Error(err)
				}
				stop(t, s)
			}
		})
	}
	users.Wait()
	if c := (&cluster{home: dir + "/" + insideName}); c.postmaster() != 0 {
		t.Error("the server survived its last user")
	}
}

func sessionOf(t *testing.T, pid int) int {
	t.Helper()
	session, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return int(session)
}

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}
