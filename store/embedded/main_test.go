package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A test binary that finds this variable is not a test but a user of the data
// folder in it, like another Purser process.
const userVariable = "PURSER_EMBEDDED_USER_OF"

// limit is far more than any start or stop takes, also on a busy machine: past it
// something hangs.
const limit = 3 * time.Minute

func TestMain(m *testing.M) {
	if dir := os.Getenv(userVariable); dir != "" {
		if err := beUser(dir); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beUser starts the server, says where it is, and stops it when stdin ends.
func beUser(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s, err := Start(ctx, Options{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println(s.Home(), s.URL("postgres"))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Stop(context.Background())
}

// neighbour is another process that uses a data folder.
type neighbour struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	answer *bufio.Reader
	held   *os.File // ends when every process is gone that has inherited its other end
	home   string
	url    string
}

// newNeighbour begins to start one. Its attr says as whom it runs; nil: as we do.
func newNeighbour(t *testing.T, dir string, attr *syscall.SysProcAttr) *neighbour {
	t.Helper()
	// The link, not the path behind it, which only we may be able to reach.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), userVariable+"="+dir)
	cmd.SysProcAttr, cmd.Dir, cmd.Stderr = attr, "/", os.Stderr
	held, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	cmd.ExtraFiles = []*os.File{write, write} // as 3, which Postgres uses otherwise, and 4
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &neighbour{cmd: cmd, stdin: stdin, answer: bufio.NewReader(stdout), held: held}
}

// ready waits until the process has joined.
func (u *neighbour) ready(t *testing.T) *neighbour {
	t.Helper()
	line, err := u.answer.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &u.home, &u.url); err != nil || !strings.HasPrefix(u.home, "/") {
		t.Fatalf("the other process says: %s", line)
	}
	return u
}

func (u *neighbour) stop(t *testing.T) {
	t.Helper()
	_ = u.stdin.Close()
	if err := u.cmd.Wait(); err != nil {
		t.Fatalf("the other process: %v", err)
	}
}

func (u *neighbour) kill(t *testing.T) {
	t.Helper()
	if err := u.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = u.cmd.Wait()
}

// newFolder is a data folder that any user can reach, unlike t.TempDir, and that
// takes the whole cluster away at the end.
func newFolder(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "purser-embedded-*")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(parent, "data")
}

// start joins in this process. Whatever the test leaves running ends with it.
func start(t *testing.T, dir string) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := Start(ctx, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// query returns the one text that a statement gives, as a new client sees it.
func query(t *testing.T, url, statement string) string {
	t.Helper()
	text, err := tryQuery(t.Context(), url, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return text
}

func tryQuery(ctx context.Context, url, statement string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var text string
	err = conn.QueryRow(ctx, statement).Scan(&text)
	return text, err
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// eventually waits for something that another process brings about.
func eventually(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for !holds() {
		if !pause(ctx, 10*time.Millisecond) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func answers(t *testing.T, url string) func() bool {
	return func() bool {
		_, err := tryQuery(t.Context(), url, "SELECT 'yes'")
		return err == nil
	}
}

func runs(s *Server) bool { return s.cluster.postmaster() != 0 }
