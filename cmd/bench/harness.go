package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"purser/store/embedded"
)

// harness is everything a run has started and made, in one folder.
type harness struct {
	folder   string
	program  string // the purser that is measured
	secret   string // shared by all nodes
	postgres *postgres
	nodes    []*node
}

// mainDatabase is the one that the embedded server uses of itself.
const mainDatabase = "postgres"

// stopLimit is how long Postgres may take to write down what it holds.
const stopLimit = 2 * time.Minute

// newHarness builds the program, unless one is given, and starts Postgres. The harness
// has to be closed even when an error is returned.
func newHarness(ctx context.Context, o options) (*harness, error) {
	folder, err := os.MkdirTemp(o.folder, "purser-bench-*")
	if err != nil {
		return nil, err
	}
	h := &harness{folder: folder, program: o.program, secret: rand.Text() + rand.Text()}
	// Started by root, Postgres runs as another user, who has to pass through.
	if err := os.Chmod(folder, 0o711); err != nil {
		return h, err
	}
	if h.program == "" {
		h.program = filepath.Join(folder, "purser")
		build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", h.program, "purser/cmd/purser")
		if out, err := build.CombinedOutput(); err != nil {
			return h, fmt.Errorf("building purser: %w\n%s", err, out)
		}
	}
	server, err := embedded.Start(ctx, embedded.Options{Dir: h.data()})
	if err != nil {
		return h, err
	}
	h.postgres = &postgres{server: server}
	return h, h.postgres.find()
}

func (h *harness) data() string { return filepath.Join(h.folder, "data") }

// close stops the nodes, then Postgres, and removes the folder.
func (h *harness) close() error {
	var failed []error
	for _, n := range h.nodes {
		failed = append(failed, n.stop())
	}
	if h.postgres != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		// Where Postgres's user may not enter our folder, the database is outside.
		failed = append(failed, h.postgres.server.Stop(ctx), os.RemoveAll(h.postgres.server.Home()))
	}
	return errors.Join(append(failed, os.RemoveAll(h.folder))...)
}

// environment is ours without the settings of another Purser or Postgres, and
// with those that the measured one gets.
func (h *harness) environment(database string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PURSER_") && !strings.HasPrefix(pair, "PG") && !strings.HasPrefix(pair, "DATABASE_URL=") {
			env = append(env, pair)
		}
	}
	env = append(env, "PURSER_ADDR=127.0.0.1:0", "PURSER_RATE_LIMIT=0", "PURSER_DRAIN=0s", "PURSER_SECRET_KEY="+h.secret,
		// The first scheduled verification would run in some rounds and not in others.
		"PURSER_VERIFY_NEW=0", "PURSER_VERIFY_ALL=0")
	if database == "" {
		return append(env, "PURSER_DATA="+h.data())
	}
	return append(env, "DATABASE_URL="+h.postgres.server.URL(database))
}
