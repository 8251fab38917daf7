package embedded

import (
	"context"
	"fmt"
	"path/filepath"
)

// Program finds a client program of Postgres, such as pg_dump, for a server of this major
// version, and its own version: the same one, or else the newest. An older one cannot read the
// server.
func Program(ctx context.Context, name string, major int) (best string, bestMajor int, err error) {
	for _, dir := range folders("", name) {
		path := filepath.Join(dir, name)
		if !executable(path) {
			continue
		}
		found, err := majorOf(ctx, path)
		if err != nil {
			return "", 0, err
		}
		if found == major {
			return path, major, nil
		}
		if found > bestMajor {
			best, bestMajor = path, found
		}
	}
	switch {
	case best == "":
		return "", 0, fmt.Errorf("%s is not on this machine: install the client programs of Postgres %d or later (apt-get install postgresql-client)", name, major)
	case bestMajor < major:
		return "", 0, fmt.Errorf("%s is of Postgres %d and the database of Postgres %d: install the client programs of Postgres %d or later", best, bestMajor, major, major)
	}
	return best, bestMajor, nil
}
