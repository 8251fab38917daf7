package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestAnUpgradeAndItsReversalLoseNothing serves one database with the released binary and
// this one, alone and side by side, in both directions, while clients use wallets and pay
// into them.
func TestAnUpgradeAndItsReversalLoseNothing(t *testing.T) {
	t.Parallel()
	next := install(t)
	all := releases(t)
	before := &program{path: releasedBinary(t, all[len(all)-1]), data: next.data}
	t.Cleanup(func() {
		if before.runs() {
			before.kill(t)
		}
	})
	before.start(t)
	c := newClients(t, before)
	defer c.end() // a test that fails waits for them, too
	var serving atomic.Pointer[[]*program]
	var turn atomic.Int64
	c.address = func() string {
		servers := *serving.Load()
		return servers[int(turn.Add(1))%len(servers)].address()
	}
	// Each server has to acknowledge this much in each step.
	const enough = 2 * (users + payers)
	serve := func(servers ...*program) {
		serving.Store(&servers)
		for _, each := range servers {
			c.awaitAcksBy(t, each.address(), enough)
		}
	}
	serving.Store(&[]*program{before})
	c.begin()
	serve(before)
	next.start(t) // migrates under load
	serve(before, next)
	serve(next)
	before.leave(t)
	before.start(t) // on the newer schema
	serve(before, next)
	serve(before)
	next.leave(t)
	serve(before)
	next.start(t)
	serve(next)
	c.end()
	c.compare(t)
	for _, each := range []*program{before, next} {
		if said := each.command(t, "verify"); !strings.Contains(said, "0 differences") {
			t.Errorf("verify of %s says %s", each.path, said)
		}
	}
	before.leave(t)
	next.stop(t)
}

// leave stops a server that is not the last on its database.
func (p *program) leave(t *testing.T) {
	t.Helper()
	signal(t, p.process.Process.Pid, syscall.SIGTERM)
	<-p.ended
	if !p.process.ProcessState.Success() {
		t.Errorf("the server ended with %s", p.process.ProcessState)
	}
}

// releasedBinary builds a release from its commit. It is kept in bin for the next run.
func releasedBinary(t *testing.T, r release) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(moduleRoot, "bin", "released"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, strings.Join([]string{"purser", r.version, r.commit[:12], runtime.GOOS, runtime.GOARCH, runtime.Version()}, "-"))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	archive := filepath.Join(source, "source.tar")
	needsCommit(t, r)
	outputOf(t, "git", "archive", "--output", archive, r.commit)
	outputOf(t, "tar", "-x", "-f", archive, "-C", source)
	// Without inlining its own packages are compiled in half of the time.
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=purser/...=-dwarf=false -l", "-o", filepath.Join(source, "built"), "./cmd/purser")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", r.version, err, out)
	}
	text, err := os.ReadFile(filepath.Join(source, "built"))
	if err != nil {
		t.Fatal(err)
	}
	draft, err := os.CreateTemp(folder, "draft-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(draft.Name())
	if _, err := draft.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := draft.Chmod(0o755); err != nil {
		t.Fatal(err)
	}
	if err := draft.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// needsCommit fails in a clone without the history back to the release.
func needsCommit(t *testing.T, r release) {
	t.Helper()
	check := exec.CommandContext(t.Context(), "git", "cat-file", "-e", r.commit+"^{commit}")
	check.Dir = moduleRoot
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("this clone has not the commit of release %s, which the test needs: run 'git fetch --unshallow' or 'git fetch origin %s' (%v: %s)",
			r.version, r.commit, err, strings.TrimSpace(string(out)))
	}
}
