package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	nodeStartLimit = 5 * time.Minute
	nodeStopLimit  = 5 * time.Minute // the server's own limits and that of its Postgres are shorter together
	logShown       = 5               // lines of a node's log in an error
)

// node is one running `purser serve`.
type node struct {
	host     string // and port
	setup    string // path of the page on which the first account is made
	database string
	command  *exec.Cmd
	env      []string
	log      string
}

var (
	runningLine = regexp.MustCompile(`Open http://(\S+:\d+)`)
	setupLine   = regexp.MustCompile(`http://\S+:\d+(/setup/\S+)`)
	lastLine    = "Press Ctrl-C"
)

// startNode starts the server and waits until it listens. Without a database it
// runs as it ships, on the embedded Postgres that it finds in the data folder.
func (h *harness) startNode(ctx context.Context, database string) (*node, error) {
	n := &node{database: database, env: h.environment(database)}
	if database == "" {
		n.database = mainDatabase
	}
	log, err := os.Create(filepath.Join(h.folder, fmt.Sprintf("node-%d.log", len(h.nodes))))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n.log = log.Name()
	n.command = exec.Command(h.program, "serve")
	n.command.Env, n.command.Stderr = n.env, log
	// Ctrl-C stops the load first, and the nodes after it.
	n.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.command.Start(); err != nil {
		return nil, err
	}
	h.nodes = append(h.nodes, n)
	said, err := readGreeting(ctx, stdout)
	if err != nil {
		return nil, n.explain(err)
	}
	n.host, n.setup = said.host, said.setup
	return n, nil
}

// greeting is what a server says when it runs.
type greeting struct{ host, setup string }

// readGreeting waits for the lines with which the server says that it runs.
func readGreeting(ctx context.Context, stdout io.Reader) (greeting, error) {
	found := make(chan greeting, 1)
	go func() {
		defer close(found)
		var said greeting
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), lastLine) {
			if match := runningLine.FindStringSubmatch(lines.Text()); match != nil {
				said.host = match[1]
			}
			if match := setupLine.FindStringSubmatch(lines.Text()); match != nil {
				said.setup = match[1]
			}
		}
		if lines.Err() == nil && said.host != "" {
			found <- said
		}
		_, _ = io.Copy(io.Discard, stdout) // so that the server never waits for a reader
	}()
	select {
	case said, ok := <-found:
		if !ok {
			return said, fmt.Errorf("the server ended while it started")
		}
		return said, nil
	case <-time.After(nodeStartLimit):
		return greeting{}, fmt.Errorf("the server did not start within %v", nodeStartLimit)
	case <-ctx.Done():
		return greeting{}, ctx.Err()
	}
}

func (n *node) pid() int { return n.command.Process.Pid }

func (n *node) stop() error {
	if err := n.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("a node had ended before: %w", err)
	}
	late := time.AfterFunc(nodeStopLimit, func() { _ = n.command.Process.Kill() })
	defer late.Stop()
	if err := n.command.Wait(); err != nil {
		return n.explain(err)
	}
	return nil
}

// explain adds the end of the node's log, which goes away with the folder.
func (n *node) explain(err error) error {
	text, _ := os.ReadFile(n.log) // without it the error has to do
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	last := bytes.Join(lines[max(0, len(lines)-logShown):], []byte("\n"))
	if len(last) == 0 {
		return err
	}
	return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(last)))
}
