package embedded

import (
	"context"
	"fmt"
	"path/filepath"
)

// Program finds a client program of Postgres, such as pg_dump, for a server of this major
// version: of the same version, or else of the newest. An older one cannot read the server.
func Program(ctx context.Context, name string, major int) (string, error) {
	best, bestMajor := "", 0
	for _, dir := range folders("", name) {
		path := filepath.Join(dir, name)
		if !executable(path) {
			continue
		}
		found, err := majorOf(ctx, path)
		if err != nil {
			return "", err
		}
		if found == major {
			return path, nil
		}
		if found > bestMajor {
			best, bestMajor = path, found
		}
	}
	switch {
	case best == "":
		return "", fmt.Errorf("%s is not on this machine: install the client programs of Postgres %d or later (apt-get install postgresql-client)", name, major)
	case bestMajor < major:
		return "", fmt.Errorf("%s is of Postgres %d and the database of Postgres %d: install the client programs of Postgres %d or later", best, bestMajor, major, major)
	}
	return best, nil
}
