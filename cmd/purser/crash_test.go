package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"purser/store/storetest"
	"purser/web/browsertest"
)

const (
	// Each kind of crash comes as often as any other, or once more.
	crashes = 30
	// So much is acknowledged between two crashes, so that each hits a busy server.
	acksBetween = 60
	// Past this a server that crashed is not coming back, however busy the machine is.
	backWithin = 3 * time.Minute
)

// TestCrashesLoseAndDoubleNothing kills the server, its Postgres and single
// sessions of it while clients use wallets and pay into them. Each client writes
// down what it is about to send and what it was answered, and sends again what was
// not answered. In the end the books hold exactly what the clients were told.
func TestCrashesLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
	p := install(t)
	p.start(t)
	c := newClients(t, p)
	defer c.end() // a test that fails waits for them, too
	c.begin()
	recoveries := make(map[string][]time.Duration)
	for i := range crashes {
		c.awaitAcks(t, acksBetween)
		kind := crashKinds[i%len(crashKinds)]
		kind.crash(t, p, random)
		crashed := time.Now()
		if !p.runs() {
			p.start(t)
		}
		c.awaitAcks(t, users+payers+1) // one at least was sent after the crash
		recoveries[kind.name] = append(recoveries[kind.name], time.Since(crashed))
	}
	c.end()
	for _, kind := range crashKinds {
		t.Logf("%s: answers again after %s", kind.name, recoveries[kind.name])
	}
	if c.compare(t) == 0 {
		t.Error("no answer was lost, so no crash hit anything")
	}
	t.Logf("verify says: %s", p.command(t, "verify"))
	p.stop(t)
}

var crashKinds = []struct {
	name  string
	crash func(*testing.T, *program, *rand.Rand)
}{
	{"the server killed", func(t *testing.T, p *program, _ *rand.Rand) { p.kill(t) }},
	{"the postmaster killed", func(t *testing.T, p *program, _ *rand.Rand) { signal(t, p.postmaster(t), syscall.SIGKILL) }},
	{"a session killed", func(t *testing.T, p *program, r *rand.Rand) { signal(t, p.session(t, r), syscall.SIGKILL) }},
	// What pg_ctl stop --mode immediate sends: no checkpoint, no goodbye.
	{"Postgres stopped at once", func(t *testing.T, p *program, _ *rand.Rand) { signal(t, p.postmaster(t), syscall.SIGQUIT) }},
}

// program is the built binary on a data folder of its own.
type program struct {
	path string
	data string

	mu      sync.Mutex
	process *exec.Cmd
	ended   chan struct{}
	baseURL string
}

func TestMain(m *testing.M) {
	code := browsertest.Main(m)
	if built.folder != "" {
		_ = os.RemoveAll(built.folder)
	}
	os.Exit(code)
}

// built is the program that tests of this process share: linking it takes as long as
// some of them.
var built struct {
	mu     sync.Mutex
	folder string // removed by TestMain; empty until it is built
}

func buildProgram(t *testing.T) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.folder == "" {
		folder, err := os.MkdirTemp("", "purser-built-*")
		if err != nil {
			t.Fatal(err)
		}
		outputOf(t, "go", "build", "-o", filepath.Join(folder, "purser"), "./cmd/purser")
		built.folder = folder
	}
	return filepath.Join(built.folder, "purser")
}

// install gives the program a data folder. What the test leaves running ends with it.
func install(t *testing.T) *program {
	t.Helper()
	p := &program{path: buildProgram(t), data: storetest.DataDir(t)}
	t.Cleanup(func() {
		if p.runs() {
			p.kill(t)
		}
		if pid, err := p.readPostmaster(); err == nil {
			_ = syscall.Kill(pid, syscall.SIGQUIT) // a killed server leaves it to the next one
			await(t, "the end of Postgres", func() bool { return syscall.Kill(pid, 0) != nil })
		}
	})
	return p
}

// start runs the server and returns when it serves.
func (p *program) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(p.path, "serve", "--addr", "127.0.0.1:0", "--data", p.data)
	cmd.Env = append(os.Environ(), "PURSER_RATE_LIMIT=0", "PURSER_DRAIN=0s")
	storetest.EndWithTests(cmd)
	complaint, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = complaint
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = complaint.Close()
	out := bufio.NewReader(stdout)
	line, err := out.ReadString('\n')
	_, rest, found := strings.Cut(line, "Open ")
	if err != nil || !found {
		text, _ := os.ReadFile(complaint.Name())
		t.Fatalf("the server says %q, %v\n%s", line, err, text)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		close(ended)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process, p.ended = cmd, ended
	p.baseURL, _, _ = strings.Cut(rest, " ")
}

// address is where the server listens, or listened last.
func (p *program) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.baseURL
}

func (p *program) runs() bool {
	if p.ended == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *program) kill(t *testing.T) {
	t.Helper()
	signal(t, p.process.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// stop is how a server ends when nothing goes wrong.
func (p *program) stop(t *testing.T) {
	t.Helper()
	signal(t, p.process.Process.Pid, syscall.SIGTERM)
	<-p.ended
	if !p.process.ProcessState.Success() {
		t.Errorf("the server ended with %s", p.process.ProcessState)
	}
	if pid, err := p.readPostmaster(); err == nil {
		t.Errorf("Postgres %d outlives the server", pid)
	}
}

// command runs another command of the program beside the server.
func (p *program) command(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(outputOf(t, p.path, append(args, "--data", p.data)...))
}

// createKey gives the secret of a key that may do everything.
func (p *program) createKey(t *testing.T) string {
	t.Helper()
	var made struct{ Secret string }
	text := p.command(t, "keys", "create", "--org", "Crash", "--app", "Crash", "--preset", "setup", "--json")
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatalf("keys create says %q: %v", text, err)
	}
	return made.Secret
}

// postmaster is Postgres's first process, once it is there.
func (p *program) postmaster(t *testing.T) (pid int) {
	t.Helper()
	await(t, "a postmaster", func() bool {
		var err error
		pid, err = p.readPostmaster()
		return err == nil
	})
	return pid
}

func (p *program) readPostmaster() (int, error) {
	text, err := os.ReadFile(filepath.Join(p.data, "postgres", "cluster", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(line)
}

// session is a process of Postgres that serves a connection.
func (p *program) session(t *testing.T, random *rand.Rand) int {
	t.Helper()
	var sessions []int
	await(t, "a session", func() bool {
		sessions = sessionsOf(p.postmaster(t))
		return len(sessions) > 0
	})
	return sessions[random.IntN(len(sessions))]
}

// sessionsOf finds them by how Postgres names its children: those that serve a
// connection say where it comes from.
func sessionsOf(postmaster int) (pids []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		title, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || !strings.Contains(string(title), "[local]") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue
		}
		// After the name, which stands in brackets and may hold anything: state, parent.
		_, rest, _ := strings.Cut(string(stat), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil || parent != postmaster {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
}

// await waits for something that another process brings about.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(backWithin)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not within %s: %s", backWithin, what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
