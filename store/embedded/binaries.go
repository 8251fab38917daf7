package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the first major version that has all of our settings.
const oldestMajor = 15

// packaged are the folders where distributions install each major version.
var packaged = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"}

// binaries are the programs of one installed Postgres.
type binaries struct {
	dir   string
	major int
}

func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }

// binaries finds the programs of the cluster's version, or for a new cluster the newest
// ones.
func (c *cluster) binaries(ctx context.Context) (binaries, error) {
	found, err := c.installed(ctx)
	if err != nil {
		return binaries{}, err
	}
	newest := found[0]
	if newest.major < oldestMajor {
		return binaries{}, fmt.Errorf("%s has Postgres %d, but Purser needs %d or later: install it (on Debian and Ubuntu, from apt.postgresql.org), or set DATABASE_URL to another server", newest.dir, newest.major, oldestMajor)
	}
	if !c.initialised() {
		return newest, nil
	}
	made, err := c.madeBy()
	if err != nil {
		return binaries{}, err
	}
	for _, b := range found {
		if b.major == made {
			return b, nil
		}
	}
	return binaries{}, fmt.Errorf("the cluster in %s was made by Postgres %d, but only %s is here: apt-get install postgresql-%d",
		c.path(dataName), made, versions(found), made)
}

// installed lists the installed versions, the newest first. It is never empty.
func (c *cluster) installed(ctx context.Context) ([]binaries, error) {
	var found []binaries
	for _, dir := range folders(c.binDir, "initdb") {
		b := binaries{dir: dir}
		if !executable(b.postgres()) || !executable(b.initdb()) {
			continue
		}
		var err error
		if b.major, err = majorOf(ctx, b.postgres()); err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	if len(found) == 0 && c.binDir != "" {
		return nil, fmt.Errorf("the programs of Postgres (postgres, initdb) are not in %s: apt-get install postgresql", c.binDir)
	}
	if len(found) == 0 {
		return nil, errors.New("the programs of Postgres (postgres, initdb) are not on this machine: apt-get install postgresql")
	}
	slices.SortStableFunc(found, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	return found, nil
}

// folders are where programs may be: the given folder alone, or those of distributions and
// that of the named program on the PATH.
func folders(binDir, name string) []string {
	if binDir != "" {
		return []string{binDir}
	}
	var dirs []string
	for _, pattern := range packaged {
		matches, _ := filepath.Glob(pattern) // only a malformed pattern fails
		dirs = append(dirs, matches...)
	}
	if path, err := exec.LookPath(name); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

var versionLine = regexp.MustCompile(`^\w+ \(PostgreSQL\) (\d+)`)

func majorOf(ctx context.Context, program string) (int, error) {
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env = environment()
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("asking %s for its version: %w", program, err)
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("%s does not tell its version, but %q", program, out)
	}
	return strconv.Atoi(string(match[1]))
}

// madeBy is the major version that created the cluster; no other can run it.
func (c *cluster) madeBy() (int, error) {
	text, err := os.ReadFile(c.path(dataName, "PG_VERSION"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func versions(found []binaries) string {
	var names []string
	for _, b := range found {
		names = append(names, strconv.Itoa(b.major))
	}
	return "Postgres " + strings.Join(names, ", ")
}

// environment is all of our environment that Postgres gets: no secrets, no PG* variable
// that would change a default, no locale.
func environment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
