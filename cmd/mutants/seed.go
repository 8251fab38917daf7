package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "SURVIVED"
	stale    verdict = "STALE"     // it does not fit the source, or does not compile in it
	timedOut verdict = "TIMED OUT" // a slow machine looks the same, so this proves nothing
	// Something else than the bug's tests failed, as on a full disk.
	otherwise verdict = "FAILED OTHERWISE"
)

// judge seeds one bug, runs the tests that should see it, and takes it out again.
func judge(ctx context.Context, root string, m mutant) (verdict, string) {
	before, err := seed(root, m)
	defer restore(root, before)
	if err != nil {
		return stale, err.Error()
	}
	output, err := test(ctx, root, m.pkg, m.tests)
	return verdictOn(m, output, err), output
}

// verdictOn judges a run by what it printed. A crash of the package counts as a failure of
// its tests, since it may come before their names.
func verdictOn(m mutant, output string, err error) verdict {
	failed := regexp.MustCompile(`(?m)^(\s*--- FAIL: (` + m.tests + `)[ /]|panic: |fatal error: )`)
	switch {
	case err == nil:
		return survived
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		return stale
	case strings.Contains(output, "panic: test timed out"):
		return timedOut
	case failed.MatchString(output):
		return caught
	default:
		return otherwise
	}
}

// seed makes the changes and gives the files as they were.
func seed(root string, m mutant) (before map[string]string, err error) {
	before = make(map[string]string)
	for _, c := range m.changes {
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			return before, err
		}
		if _, known := before[c.file]; !known {
			before[c.file] = string(text)
		}
		changed, err := c.apply(string(text))
		if err != nil {
			return before, err
		}
		if err := os.WriteFile(filepath.Join(root, c.file), []byte(changed), 0o644); err != nil {
			return before, err
		}
	}
	return before, nil
}

func (c change) apply(text string) (string, error) {
	if n := strings.Count(text, c.old); n != c.times {
		return "", fmt.Errorf("%s has this %d times, not %d:\n%s", c.file, n, c.times, c.old)
	}
	return strings.ReplaceAll(text, c.old, c.new), nil
}

func restore(root string, before map[string]string) {
	for file, text := range before {
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			panic(err) // every bug after this one would be judged with it
		}
	}
}

// withoutInlining builds our own packages in three quarters of the CPU time. Each bug
// compiles its package, the packages that import it and their tests once more, which takes
// longer than the tests run.
const withoutInlining = "-gcflags=purser/...=-dwarf=false -l"

// test runs tests once, from no cache. The first failure is enough.
func test(ctx context.Context, root, pkg, names string) (output string, err error) {
	return goCommand(ctx, root, "test", withoutInlining, "-count=1", "-vet=off", "-failfast", "-timeout=10m", "-run", "^("+names+")$", pkg)
}

// list names the tests of a package.
func list(ctx context.Context, root, pkg string) (output string, err error) {
	return goCommand(ctx, root, "test", "-list", ".", pkg)
}

// goCommand runs go. With ctx, also the tests that go started end.
func goCommand(ctx context.Context, root string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.WaitDelay = root, 10*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// left are the folders that no test needs.
var left = map[string]bool{".git": true, "data": true, "bin": true}

// copyModule copies the source to a folder of its own.
func copyModule(root string) (string, error) {
	target, err := os.MkdirTemp("", "purser-mutants-*")
	if err != nil {
		return "", err
	}
	source := os.DirFS(root)
	err = fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if left[path] {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(target, path), 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := fs.ReadFile(source, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(target, path), text, 0o644)
	})
	return target, err
}
