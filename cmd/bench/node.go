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
	nodeStartLimit = time.Minute
	nodeStopLimit  = 40 * time.Second // the server's own limit for requests under way is shorter
	logShown       = 5                // lines of a node's log in an error
)

// node is one running `purser serve`.
type node struct {
	host     string // and port
	database string
	command  *exec.Cmd
	env      []string
	log      string
}

var runningLine = regexp.MustCompile(`http://(\S+:\d+)`)

// startNode starts the server and waits until it listens. Without a database it
// runs as it ships, on the embedded Postgres that it finds in the data folder.
func (r *rig) startNode(ctx context.Context, database string) (*node, error) {
	n := &node{database: database, env: r.environment(database)}
	if database == "" {
		n.database = mainDatabase
	}
	log, err := os.Create(filepath.Join(r.folder, fmt.Sprintf("node-%d.log", len(r.nodes))))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n.log = log.Name()
	n.command = exec.Command(r.program, "serve")
	n.command.Env, n.command.Stderr = n.env, log
	// A Ctrl-C is for us: we stop the nodes when nobody asks them any more.
	n.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.command.Start(); err != nil {
		return nil, err
	}
	r.nodes = append(r.nodes, n)
	if n.host, err = readHost(ctx, stdout); err != nil {
		return nil, n.explain(err)
	}
	return n, nil
}

// readHost takes the address from the line with which the server says it runs.
func readHost(ctx context.Context, stdout io.Reader) (string, error) {
	found := make(chan string, 1)
	go func() {
		defer close(found)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if match := runningLine.FindStringSubmatch(lines.Text()); match != nil {
				found <- match[1]
				break
			}
		}
		_, _ = io.Copy(io.Discard, stdout) // so that the server never waits for a reader
	}()
	select {
	case host, ok := <-found:
		if !ok {
			return "", fmt.Errorf("the server ended while it started")
		}
		return host, nil
	case <-time.After(nodeStartLimit):
		return "", fmt.Errorf("the server did not start within %v", nodeStartLimit)
	case <-ctx.Done():
		return "", ctx.Err()
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
