package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/store/embedded"
	"purser/store/embedded/flock"
)

const (
	partialSuffix = ".partial"
	// maxComplaint bounds what is kept of a program's error output.
	maxComplaint = 4 << 10
)

// magic begins every archive of the custom format.
const magic = "PGDMP"

// Dump writes the database to a file that must not exist, and returns its size. Major is
// the version of the server.
func Dump(ctx context.Context, address string, major int, path string) (size int64, err error) {
	program, _, err := embedded.Program(ctx, "pg_dump", major)
	if err != nil {
		return 0, err
	}
	if err := absent(path); err != nil {
		return 0, err
	}
	partial, err := flock.TryPrivate(path+partialSuffix, flock.Exclusive)
	if errors.Is(err, flock.ErrHeld) {
		return 0, fmt.Errorf("another backup is writing %s", path)
	}
	if err != nil {
		return 0, err
	}
	defer partial.Release()
	file := partial.File()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := file.Truncate(0); err != nil { // left by a backup that was killed
		return 0, err
	}
	if err := run(ctx, address, program, nil, file, "--format=custom"); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	if err := absent(path); err != nil {
		return 0, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return 0, err
	}
	return info.Size(), embedded.SyncFolder(filepath.Dir(path))
}

// absent refuses to overwrite a file.
func absent(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s exists: choose another name", path)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return nil
}

// Check refuses a file that is no archive of pg_dump, and leaves the file at its beginning.
func Check(file *os.File) error {
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(file, start); err != nil || string(start) != magic {
		return fmt.Errorf("%s is not a backup: it must be a file of 'purser backup' or pg_dump --format=custom", file.Name())
	}
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// run runs a program on the database. Its input and output are copied by this process: a
// pipe ends with it, where a file would stay open in a program that outlives us.
func run(ctx context.Context, address, program string, stdin io.Reader, stdout io.Writer, args ...string) error {
	database, password, err := split(address)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--no-password", "--dbname="+database)...)
	cmd.Env = environment()
	if filepath.Base(program) == "psql" {
		cmd.Env = append(cmd.Env, "PGAPPNAME=pg_restore")
	}
	if password != "" {
		cmd.Env = append(cmd.Env, "PGPASSWORD="+password)
	}
	var complaint tail
	cmd.Stderr = &complaint
	if stdin != nil {
		cmd.Stdin = readerOnly{stdin}
	}
	if stdout != nil {
		cmd.Stdout = writerOnly{stdout}
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), errors.Join(context.Cause(ctx), err), complaint.text())
	}
	return nil
}

// environment has no secret of Purser. The store looks for a running pg_restore by its
// application name, so that nothing else chooses the name.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "PURSER_") || strings.HasPrefix(pair, "DATABASE_URL=") || strings.HasPrefix(pair, "PGAPPNAME=")
	})
}

// readerOnly and writerOnly keep exec from passing a file itself to the program.
type (
	readerOnly struct{ io.Reader }
	writerOnly struct{ io.Writer }
)

// known are the parameters that mean the same to pgx and to libpq, which refuses others.
var known = []string{
	"host", "port", "user", "dbname", "passfile", "connect_timeout", "target_session_attrs", "gssencmode", "krbsrvname", "channel_binding",
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslsni", "sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version",
	"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
}

// split takes the password out of an address, because every user of the machine can read
// command lines. Errors do not repeat the address.
func split(address string) (database, password string, err error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return "", "", errors.New("DATABASE_URL is not a valid postgres:// address")
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", "", errors.New("write DATABASE_URL as postgres://USER:PASSWORD@HOST:5432/DATABASE to back up or restore")
	}
	query := u.Query()
	if query.Has("sslpassword") {
		return "", "", errors.New("sslpassword in DATABASE_URL would be visible in the command line of pg_dump: use a key file without a passphrase")
	}
	for name := range query {
		if !slices.Contains(known, name) {
			query.Del(name)
		}
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq takes a plus for a plus
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String(), config.Password, nil
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - maxComplaint; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *tail) text() string { return string(bytes.TrimSpace(t.kept)) }
