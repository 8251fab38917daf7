package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/store/storetest"
)

func init() {
	readHeaderTimeout, readTimeout, pageTimeout, writeTimeout, sandboxTimeout = patience, patience, patience, patience, patience
}

// product is a whole server on a database of its own, as 'purser serve' runs it.
type product struct {
	base     string   // its address
	environ  []string // the settings with which other commands reach the same database
	database string
	greeting string // what it printed when it was ready
	log      *safeBuffer
}

// startProduct starts the product. It stops with the test.
func startProduct(t *testing.T, settings ...string) product {
	t.Helper()
	p := product{database: storetest.FreshURL(t)}
	p.environ = append([]string{
		"DATABASE_URL=" + p.database,
		"PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey),
		"PURSER_DATA=" + filepath.Join(t.TempDir(), "data"),
	}, settings...)
	process := startProcess(t, p.environ)
	p.base, p.greeting, p.log = process.base, process.greeting, process.log
	return p
}

// process is 'purser serve' in this process.
type process struct {
	base, greeting string
	log            *safeBuffer
	end            context.CancelFunc
	ended          chan error
	stopped        sync.Once
}

// startProcess serves until stop, or the end of the test.
func startProcess(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	p := &process{log: new(safeBuffer), end: end, ended: make(chan error, 1)}
	stdout, printed := io.Pipe()
	go func() {
		err := run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), environ, printed, p.log)
		printed.CloseWithError(err)
		p.ended <- err
	}()
	t.Cleanup(func() { p.stop(t) })
	var err error
	if p.greeting, err = readGreeting(stdout); err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, p.log.String())
	}
	if p.base = addressIn(p.greeting); !strings.HasPrefix(p.base, "http://127.0.0.1:") {
		// Behind a proxy it greets with its public address.
		eventually(t, "the log says where the server listens", func() bool {
			p.base = "http://" + listening.FindString(p.log.String())
			return p.base != "http://"
		})
	}
	go io.Copy(io.Discard, stdout)
	return p
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	p.stopped.Do(func() {
		p.end()
		select {
		case err := <-p.ended:
			if err != nil {
				t.Errorf("the server did not stop cleanly: %v", err)
			}
		case <-time.After(patience):
			t.Error("the server did not stop")
		}
	})
}

// lastOfGreeting is what the server says when it has said everything else.
const lastOfGreeting = "Press Ctrl-C to stop.\n"

func readGreeting(stdout io.Reader) (greeting string, err error) {
	lines := bufio.NewReader(stdout)
	for err == nil && !strings.HasSuffix(greeting, lastOfGreeting) {
		var line string
		line, err = lines.ReadString('\n')
		greeting += line
	}
	return greeting, err
}

// listening is the server's address in its log.
var listening = regexp.MustCompile(`\b127\.0\.0\.1:[0-9]+\b`)

// addressIn is where a server says that it is, or empty.
func addressIn(greeting string) string {
	_, rest, _ := strings.Cut(greeting, "Open ")
	address, _, _ := strings.Cut(rest, " ")
	return address
}

// startServer starts the product for tests of its API only.
func startServer(t *testing.T, settings ...string) (base string, environ []string) {
	t.Helper()
	p := startProduct(t, settings...)
	return p.base, p.environ
}

// newKey makes an application, unless it is there, and a key for it.
func (p product) newKey(t *testing.T, args ...string) madeKey {
	t.Helper()
	var out, diagnostics bytes.Buffer
	if err := run(t.Context(), append([]string{"keys", "create", "--json"}, args...), slices.Clone(p.environ), &out, &diagnostics); err != nil {
		t.Fatalf("%v\n%s", err, diagnostics.String())
	}
	var made madeKey
	if err := json.Unmarshal(out.Bytes(), &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// patience bounds what must not go on for ever. Only what never comes reaches it,
// however busy the machine is.
const patience = 3 * time.Minute

// eventually waits for something that happens by itself.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventuallyWithin(t, patience, what, holds)
}

func eventuallyWithin(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
