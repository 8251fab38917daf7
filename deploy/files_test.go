package deploy

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// variables are settings of the server, wherever a file names them.
var variables = regexp.MustCompile(`\bPURSER_[A-Z_]+\b`)

func TestFilesNameSettingsThatTheServerKnows(t *testing.T) {
	t.Parallel()
	guide := read(t, "../docs/operating.md")
	ours := map[string]bool{"PURSER_IMAGE": true} // of compose.yaml itself
	named := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") {
			return err
		}
		for _, name := range variables.FindAllString(read(t, path), -1) {
			named[name] = true
			if !ours[name] && !strings.Contains(guide, "| `"+name+"` |") {
				t.Errorf("%s names %s, which is no setting", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(named) < 8 {
		t.Errorf("the files name %d settings", len(named))
	}
}

// What is in .env reaches the container only by a line of its own, and would be ignored
// silently without it.
func TestComposePassesEverySetting(t *testing.T) {
	t.Parallel()
	compose := read(t, "compose.yaml")
	fixed := map[string]bool{"PURSER_ADDR": true, "PURSER_DATA": true, "PURSER_METRICS_ADDR": true} // by the image and the network
	settings := regexp.MustCompile("(?m)^\\| `(PURSER_[A-Z_]+)` \\|").FindAllStringSubmatch(read(t, "../docs/operating.md"), -1)
	if len(settings) < 20 {
		t.Fatalf("the guide has %d settings", len(settings))
	}
	for _, setting := range settings {
		if name := setting[1]; !fixed[name] && !strings.Contains(compose, "\n      "+name+": ${"+name+":") {
			t.Errorf("compose.yaml does not pass %s", name)
		}
	}
}

func TestTheUnitConfinesTheServer(t *testing.T) {
	t.Parallel()
	unit := read(t, "purser.service")
	for _, line := range []string{"NoNewPrivileges=yes", "ProtectSystem=strict", "DynamicUser=yes", "CapabilityBoundingSet=\n", "MemoryDenyWriteExecute=yes"} {
		if !strings.Contains(unit, line) {
			t.Errorf("the unit does not say %s", line)
		}
	}
}

// A restore into the unit's closed folder works as the unit's user only.
func TestTheGuideRestoresAsTheUnitsUser(t *testing.T) {
	t.Parallel()
	unit, guide := read(t, "purser.service"), read(t, "../docs/backup.md")
	for _, setting := range []string{"DynamicUser=yes", "User=purser", "StateDirectory=purser", "StateDirectoryMode=0700"} {
		if !strings.Contains(unit, "\n"+setting+"\n") || !strings.Contains(guide, "--property="+setting+" ") {
			t.Errorf("%s is not in the unit and in the guide's restore", setting)
		}
	}
}

// What the guides write next to the files of the repository must not be committed.
func TestSecretsAndBackupsAreNotCommitted(t *testing.T) {
	t.Parallel()
	ignored := strings.Split(read(t, "../.gitignore"), "\n")
	for _, file := range []string{".env", "purser.key", "secret.key", "purser-20261224-120000.dump", "purser.dump", "purser.dump.partial"} {
		if !slices.ContainsFunc(ignored, func(pattern string) bool {
			matches, err := filepath.Match(pattern, file)
			return err == nil && matches
		}) {
			t.Errorf("%s may be committed", file)
		}
	}
}

// systemd checks its own files. The binary's path does not exist on the machine of the
// test, so that it is replaced by one that does. Without systemd, make leaves this out.
func TestTheUnitIsOneThatSystemdAccepts(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "purser.service")
	if err := os.WriteFile(copied, []byte(strings.ReplaceAll(read(t, "purser.service"), "/usr/local/bin/purser", binary)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", copied).CombinedOutput(); err != nil || strings.Contains(string(out), "purser.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// The guide's commands write secrets and backups under the umask and the shell of most
// machines. Run again, they must not overwrite a secret key that stored secrets need.
func TestTheGuideKeepsSecretsPrivateAndOverwritesNothing(t *testing.T) {
	t.Parallel()
	guide := read(t, "../docs/install.md")
	for _, c := range []struct{ name, line, file, want string }{
		{"systemd", `(?m)^sudo sh -c '(umask .*)'$`, "purser.env", "PURSER_SECRET_KEY=rand -hex 32\n"},
		{"compose", `(?m)^(\(umask .* \.env\))$`, ".env", "POSTGRES_PASSWORD=rand -hex 24\nPURSER_SECRET_KEY=rand -hex 32\n"},
		{"backup", `(?m)^(\(umask .* pg_dump .*)$`, "purser-20261224-120000.dump", "compose exec -T postgres pg_dump --username=purser --format=custom purser\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			line := regexp.MustCompile(c.line).FindStringSubmatch(guide)
			if line == nil {
				t.Fatal("the guide has no such line")
			}
			folder := t.TempDir()
			run := func(answer string) ([]byte, error) {
				shell := exec.CommandContext(t.Context(), "sh", "-c", "umask 022\nopenssl() { "+answer+"; }\ndocker() { openssl \"$@\"; }\ndate() { echo 20261224-120000; }\n"+strings.ReplaceAll(line[1], "/etc/purser/", ""))
				shell.Dir = folder
				return shell.CombinedOutput()
			}
			path := filepath.Join(folder, c.file)
			isBackup := c.name == "backup" // has a name of its own each time
			if out, err := run("return 127"); err == nil {
				t.Errorf("without openssl or a container: %s", out)
			}
			if _, err := os.Stat(path); !isBackup && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a command that failed left a file: %v", err)
			}
			if out, err := run(`echo "$*"`); err != nil {
				t.Fatalf("%s: %v\n%s", line[1], err, out)
			}
			if !isBackup {
				if out, err := run("echo other"); err == nil || !strings.Contains(string(out), "exist") {
					t.Errorf("run again: %v\n%s", err, out)
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("the file has mode %v", info.Mode())
			}
			if got := read(t, path); got != c.want {
				t.Errorf("the file is %q", got)
			}
		})
	}
}
