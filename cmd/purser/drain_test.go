package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"purser/store/storetest"
)

// drainingNode is a server that the test stops as SIGTERM does.
type drainingNode struct {
	base  string
	http  *http.Client
	term  func() // SIGTERM
	hurry func() // the second signal
	ended chan error

	finished sync.WaitGroup // of the balancer's requests
}

func startDrainingNode(t *testing.T, environ []string) *drainingNode {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	hurry := make(chan struct{})
	n := &drainingNode{
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience},
		term: func() { cancel(&terminated{hurry}) }, hurry: sync.OnceFunc(func() { close(hurry) }), ended: make(chan error, 1),
	}
	stdout, printed := io.Pipe()
	var log safeBuffer
	go func() {
		err := run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, slices.Clone(environ), printed, &log)
		printed.CloseWithError(err)
		n.ended <- err
		close(n.ended)
	}()
	t.Cleanup(func() {
		n.term()
		n.hurry()
		n.http.CloseIdleConnections()
		<-n.ended
	})
	greeting, err := readGreeting(stdout)
	if err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, log.String())
	}
	go io.Copy(io.Discard, stdout)
	_, rest, _ := strings.Cut(greeting, "Open ")
	n.base, _, _ = strings.Cut(rest, " ")
	return n
}

// send posts an event and reports what went wrong, if anything did.
func (n *drainingNode) send(secret, id string) (closing bool, err error) {
	body := fmt.Sprintf(`{"id":%q,"identity":"ann","feature":"chat"}`, id)
	request, err := http.NewRequest(http.MethodPost, n.base+"/v1/events", strings.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := n.http.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return response.Close, err
}

func (n *drainingNode) isReady() (bool, error) {
	response, err := n.http.Get(n.base + "/readyz")
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK, err
}

// balancer sends each request to a node that was ready when last asked.
type balancer struct {
	mu    sync.Mutex
	nodes []*drainingNode
	next  int
}

// pick reserves a node for one request; the caller ends the reservation.
func (b *balancer) pick() *drainingNode {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	n := b.nodes[b.next%len(b.nodes)]
	n.finished.Add(1)
	return n
}

func (b *balancer) add(n *drainingNode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = append(b.nodes, n)
}

func (b *balancer) remove(n *drainingNode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = slices.DeleteFunc(b.nodes, func(other *drainingNode) bool { return other == n })
}

// TestRollingRestartFailsNoRequest replaces two nodes, one after the other, under
// load. The drain has no clock in it: the second signal ends it once the balancer
// has seen the 503 and its last request to the node is answered.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	t.Parallel()
	environ := []string{
		"DATABASE_URL=" + storetest.FreshURL(t), "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey),
		"PURSER_DATA=" + filepath.Join(t.TempDir(), "data"), "PURSER_RATE_LIMIT=0", "PURSER_DRAIN=10m",
	}
	first := startDrainingNode(t, environ)
	key := product{environ: environ}.newKey(t, "--org", "Acme", "--app", "Chat", "--preset", "setup")
	for _, step := range [][2]string{
		{"credits", `{"key":"tokens","name":"Tokens","unit":"token"}`},
		{"features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"1"}`},
		{"deposits", `{"identity":"ann","creditKey":"tokens","amountNanocredits":"1000000000","idempotencyKey":"d"}`},
	} {
		if got := status(t, http.MethodPost, first.base+"/v1/"+step[0], key.Secret, step[1]); got != http.StatusCreated {
			t.Fatalf("%s answers %d", step[0], got)
		}
	}
	b := &balancer{nodes: []*drainingNode{first, startDrainingNode(t, environ)}}

	var stop atomic.Bool
	var sent atomic.Int64
	var load sync.WaitGroup
	for worker := range 8 {
		load.Go(func() {
			for i := 0; !stop.Load(); i++ {
				n := b.pick()
				_, err := n.send(key.Secret, fmt.Sprintf("load-%d-%d", worker, i))
				n.finished.Done()
				if sent.Add(1); err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
			}
		})
	}
	defer load.Wait()
	defer stop.Store(true)
	for turn := range 2 {
		old := b.nodes[0]
		before := sent.Load()
		eventually(t, "load on both nodes", func() bool { return sent.Load() > before+50 })
		old.term()
		eventually(t, "the balancer sees that the node stops", func() bool {
			ready, err := old.isReady()
			if err != nil {
				t.Fatalf("/readyz fails while the node drains: %v", err)
			}
			return !ready
		})
		for i := range 20 { // from clients that have not noticed yet, on old and on new connections
			closing, err := old.send(key.Secret, fmt.Sprintf("late-%d-%d", turn, i))
			if err != nil || !closing {
				t.Fatalf("while draining: Connection: close is %t, %v", closing, err)
			}
		}
		if got := status(t, http.MethodGet, old.base+"/healthz", "", ""); got != http.StatusOK {
			t.Errorf("/healthz answers %d while the node drains", got)
		}
		b.remove(old)
		old.finished.Wait()
		old.hurry()
		if err := <-old.ended; err != nil {
			t.Errorf("the node did not stop cleanly: %v", err)
		}
		b.add(startDrainingNode(t, environ))
	}
	stop.Store(true)
	load.Wait()
	t.Logf("%d requests", sent.Load())
}

func TestSignals(t *testing.T) {
	t.Parallel()
	follow := func() (ctx context.Context, send func(os.Signal), done chan struct{}) {
		ctx, cancel := context.WithCancelCause(context.Background())
		signals, done := make(chan os.Signal), make(chan struct{})
		go func() {
			defer close(done)
			followSignals(signals, cancel)
		}()
		return ctx, func(s os.Signal) { signals <- s }, done
	}
	t.Run("SIGTERM asks for a drain, and a second signal ends it", func(t *testing.T) {
		ctx, send, done := follow()
		send(syscall.SIGTERM)
		<-ctx.Done()
		var cause *terminated
		if !errors.As(context.Cause(ctx), &cause) {
			t.Fatalf("the cause is %v", context.Cause(ctx))
		}
		select {
		case <-cause.skipDrain:
			t.Error("the drain ended with the first signal")
		default:
		}
		send(syscall.SIGINT)
		<-cause.skipDrain
		<-done // from now on a signal ends the process
	})
	t.Run("SIGINT stops without a drain, and a second signal ends the process", func(t *testing.T) {
		ctx, send, done := follow()
		send(syscall.SIGINT)
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
			t.Errorf("the cause is %v", cause)
		}
		<-done
	})
}

// A handler that outlasts the limit ends with its connection, before the pools close.
func TestRequestsThatOutlastTheStopAreCutOff(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	served := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	}))
	answered := make(chan error, 1)
	go func() {
		response, err := http.Get(served.URL)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	<-began
	if err := finishRequests(served.Config, time.Millisecond); err == nil || !strings.Contains(err.Error(), "cut off after 1ms") {
		t.Errorf("it ends with %v", err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the handler goes on")
	}
	if err := <-answered; err == nil {
		t.Error("the client got a response")
	}
}

// longestStop is what follows the drain at most: requests, those at the sandbox's own address or
// jobs, a flush of statistics that runs and the last one, a scrape, and traces.
const longestStop = shutdownTimeout + shutdownTimeout + 2*10*time.Second + metricsStopTimeout + traceFlushTimeout

// longestDatabaseStop is the time that the embedded Postgres has to shut down.
const longestDatabaseStop = 2 * time.Minute

func TestServersHaveTheTimeThatAStopTakes(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		line string
		most time.Duration
	}{
		"deploy/compose.yaml":                    {`stop_grace_period: \$\{STOP_GRACE_PERIOD:-(\d+)s\}`, defaultDrain + longestStop},
		"deploy/chart/templates/deployment.yaml": {`terminationGracePeriodSeconds: \{\{ add \(trimSuffix "s" \.Values\.drain \| int\) (\d+) \}\}`, longestStop},
		"deploy/purser.service":                  {`(?m)^TimeoutStopSec=(\d+)$`, defaultDrain + longestStop + longestDatabaseStop},
		"docs/install.md":                        {`--stop-timeout (\d+) `, defaultDrain + longestStop},
		"docs/operating.md":                      {"Give the process (\\d+) seconds more than `PURSER_DRAIN`", longestStop},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(c.line).FindSubmatch(text)
		if found == nil {
			t.Errorf("%s says nothing like %s", file, c.line)
			continue
		}
		if given, err := time.ParseDuration(string(found[1]) + "s"); err != nil || given < c.most {
			t.Errorf("%s gives a server %s to stop, which can take %s", file, given, c.most)
		}
	}
}
