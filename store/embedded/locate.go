package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

const (
	insideName   = "postgres"          // the cluster's home in the data folder
	locationName = "postgres.location" // the file in the data folder that names a home elsewhere
	systemFolder = "/var/lib/purser"   // where such homes are, for root only
)

// locate finds the home of the data folder's cluster, or chooses it.
func locate(ctx context.Context, o Options) (*cluster, error) {
	c := &cluster{binDir: o.BinDir, log: o.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	dir, err := dataFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("the data folder %s cannot be used (%w): choose another with --data (PURSER_DATA), or give it to this user with chown", o.Dir, err)
	}
	c.home, err = readLocation(dir)
	if err != nil || c.home != "" {
		return c, err
	}
	c.home = filepath.Join(dir, insideName)
	if os.Geteuid() == 0 && !c.initialised() {
		enters, err := c.accountEnters(ctx, dir)
		if err != nil {
			return nil, err
		}
		if !enters {
			c.home, err = c.settleElsewhere(ctx, dir, systemFolder)
			if err != nil {
				return nil, err
			}
			c.log.Info("database stored outside the data folder, which the Postgres user cannot access",
				"data", dir, "database", c.home)
			return c, nil
		}
	}
	return c, makeDir(c.home, homeMode())
}

// Missing reports a data folder that has no cluster and names none elsewhere.
func Missing(dir string) bool {
	_, inside := os.Stat(filepath.Join(dir, insideName, dataName))
	_, elsewhere := os.Stat(filepath.Join(dir, locationName))
	return errors.Is(inside, os.ErrNotExist) && errors.Is(elsewhere, os.ErrNotExist)
}

// dataFolder creates the folder if it is missing, and returns its path without links, the
// same for all processes.
func dataFolder(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no folder is given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := makeDir(dir, homeMode()); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// homeMode is the mode of the folders that we create around the cluster: private, but if
// root creates them, others may pass through, since Postgres runs as another user.
func homeMode() os.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// makeDir creates a folder with exactly this mode, whatever the umask is. It does not
// change an existing one.
func makeDir(path string, mode os.FileMode) error {
	err := os.Mkdir(path, mode)
	if errors.Is(err, os.ErrExist) {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is in the way: it is not a folder", path)
		}
		return err
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// readLocation returns the home that the data folder points to, or "".
func readLocation(dir string) (string, error) {
	file := filepath.Join(dir, locationName)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	home := strings.TrimSuffix(string(text), "\n")
	if info, err := os.Stat(home); err != nil || !filepath.IsAbs(home) || !info.IsDir() {
		return "", fmt.Errorf("%s names %q, which is not a folder: the database was moved or lost", file, home)
	}
	return home, nil
}

// settleElsewhere creates a home outside the data folder and stores its path there. Its
// name is new each time, so an emptied data folder never gets its old rows back.
func (c *cluster) settleElsewhere(ctx context.Context, dir, within string) (string, error) {
	if err := makeDir(within, 0o755); err != nil {
		return "", err
	}
	home, err := os.MkdirTemp(within, filepath.Base(dir)+"-*")
	if err != nil {
		return "", err
	}
	err = errors.Join(os.Chmod(home, homeMode()), c.requireEntry(ctx, home))
	if err == nil {
		err = CreateFile(filepath.Join(dir, locationName), home+"\n")
	}
	if err == nil {
		return home, nil
	}
	if err := os.Remove(home); err != nil {
		return "", err
	}
	if errors.Is(err, os.ErrExist) {
		return readLocation(dir)
	}
	return "", err
}

// requireEntry refuses a home that the account of Postgres cannot enter.
func (c *cluster) requireEntry(ctx context.Context, home string) error {
	enters, err := c.accountEnters(ctx, home)
	if err == nil && !enters {
		err = fmt.Errorf("the user that runs Postgres can enter neither the data folder nor %s: choose a folder that it can enter with --data (PURSER_DATA), or run Purser as the owner of these folders", filepath.Dir(home))
	}
	return err
}
