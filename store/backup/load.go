package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"purser/store/embedded"
)

// restoring leaves out owners and privileges: they are those of the login, and Prepare grants
// the rest. So are tablespaces, because another machine may not have them.
var restoring = []string{"--no-owner", "--no-privileges", "--no-tablespaces", "--exit-on-error", "--single-transaction"}

// Load restores an archive in one transaction. Major is the version of the server.
func Load(ctx context.Context, address string, major int, archive io.Reader) error {
	program, found, err := embedded.Program(ctx, "pg_restore", major)
	if err != nil {
		return err
	}
	if found > major {
		return loadScript(ctx, address, program, archive)
	}
	return run(ctx, address, program, archive, nil, restoring...)
}

// loadScript restores with a pg_restore that is newer than the server, and begins with settings
// that the server may not know, such as transaction_timeout. So it writes a script for psql,
// with such settings changed. Its COMMIT is at the end, so a script that is cut off loads nothing.
func loadScript(ctx context.Context, address, program string, archive io.Reader) error {
	psql := filepath.Join(filepath.Dir(program), "psql") // of the same version, for its backslash commands
	if _, err := os.Stat(psql); err != nil {
		return fmt.Errorf("%s is newer than the database and needs the psql of its version: %w", program, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	restore := exec.CommandContext(ctx, program, append(restoring, "--file=-")...)
	var complaint tail
	restore.Env, restore.Stdin, restore.Stderr = environment(), readerOnly{archive}, &complaint
	script, err := restore.StdoutPipe()
	if err != nil {
		return err
	}
	if err := restore.Start(); err != nil {
		return err
	}
	known, err := askForSettings(script)
	if err == nil {
		err = run(ctx, address, psql, known, nil, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-")
	}
	if err != nil {
		cancel()
		script.Close() // a program that still writes to it ends
	}
	if ended := restore.Wait(); ended != nil && err == nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(program), errors.Join(context.Cause(ctx), ended), complaint.text())
	}
	return err
}

// setting is a line of a script that changes a setting of its session.
var setting = regexp.MustCompile(`^SET (\w+) = '?([^']*?)'?;\n$`)

// askForSettings lets the server itself leave out the settings at the beginning of a script that
// it does not have. What follows them is not changed: it may be data.
func askForSettings(script io.Reader) (io.Reader, error) {
	rest := bufio.NewReader(script)
	var head strings.Builder
	for {
		line, err := rest.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		changed := setting.ReplaceAllString(line, "SELECT pg_catalog.set_config(name, '$2', false) FROM pg_catalog.pg_settings WHERE name = '$1';\n")
		head.WriteString(changed)
		before := changed != line || line == "\n" || line == "BEGIN;\n" || strings.HasPrefix(line, "--") ||
			strings.HasPrefix(line, `\restrict `) || strings.HasPrefix(line, "SELECT pg_catalog.set_config(")
		if err == io.EOF || !before {
			return io.MultiReader(strings.NewReader(head.String()), rest), nil
		}
	}
}
