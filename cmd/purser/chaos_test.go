//go:build chaos

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"purser/store/storetest"
)

// What a server holds under attack. These tests measure a server in a process of
// its own, so they need a machine that does nothing else: `make chaos` runs them.

// rssLimit is PURSER_MEMORY_LIMIT's default.
const rssLimit = 512 << 20

// chaosServer is a server in a process of its own.
type chaosServer struct {
	product
	process *os.Process
}

func startChaos(t *testing.T, settings ...string) chaosServer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "purser")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := product{database: storetest.FreshURL(t), log: new(safeBuffer)}
	p.environ = append([]string{
		"DATABASE_URL=" + p.database, "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey),
		"PURSER_DATA=" + filepath.Join(t.TempDir(), "data"), "PURSER_DRAIN=0s",
	}, settings...)
	command := exec.Command(program, "serve", "--addr", "127.0.0.1:0")
	command.Env = append(os.Environ(), p.environ...)
	storetest.EndWithTests(command)
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = p.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	if p.greeting, err = readGreeting(stdout); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, stdout)
	p.base = addressIn(p.greeting)
	return chaosServer{p, command.Process}
}

// rss is the resident memory of the server now.
func (s chaosServer) rss(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// peak is the highest resident memory while the attack lasts.
func (s chaosServer) peak(t *testing.T, attack func()) (peak int64) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		attack()
	}()
	for {
		peak = max(peak, s.rss(t))
		select {
		case <-done:
			return max(peak, s.rss(t))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s chaosServer) holds(t *testing.T, attack func()) {
	t.Helper()
	before, peak := s.rss(t), s.peak(t, attack)
	t.Logf("RSS rose from %d MiB to %d MiB", before>>20, peak>>20)
	if peak > rssLimit {
		t.Errorf("RSS rose to %d MiB", peak>>20)
	}
	if got := status(t, http.MethodGet, s.base+"/readyz", "", ""); got != http.StatusOK {
		t.Errorf("/readyz answers %d afterwards", got)
	}
}

func (s chaosServer) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Error(err)
		return nil
	}
	return c
}

// TestChaosConnections opens 9,000 connections that each make a request.
func TestChaosConnections(t *testing.T) {
	s := startChaos(t)
	s.holds(t, func() {
		var open []net.Conn
		defer func() {
			for _, c := range open {
				c.Close()
			}
		}()
		for range 9000 {
			c := s.dial(t)
			if c == nil {
				return
			}
			open = append(open, c)
			fmt.Fprint(c, "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
		}
	})
}

// TestChaosHalfSentBodies sends 1,500 bodies but for their last byte.
func TestChaosHalfSentBodies(t *testing.T) {
	for name, path := range map[string]string{"webhooks": "/webhooks/stripe/con_01h455vb4pex5vsknk084sn02q", "logins": "/login"} {
		t.Run(name, func(t *testing.T) {
			s := startChaos(t)
			s.holds(t, func() {
				body := strings.Repeat("x", 1<<20-1)
				var all sync.WaitGroup
				for range 1500 {
					all.Go(func() {
						c := s.dial(t)
						if c == nil {
							return
						}
						defer c.Close()
						_ = c.SetDeadline(time.Now().Add(30 * time.Second))
						_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
							path, len(body)+1, body)
						_, _ = io.Copy(io.Discard, c)
					})
				}
				all.Wait()
			})
		})
	}
}

// TestChaosLogins has 400 sign-ins at once, from as many networks.
func TestChaosLogins(t *testing.T) {
	s := startChaos(t, "PURSER_TRUSTED_PROXY=127.0.0.1")
	s.holds(t, func() {
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				form := url.Values{"email": {fmt.Sprintf("ann%d@example.com", i)}, "password": {"an unused password"}}
				request, err := http.NewRequest(http.MethodPost, s.base+"/login", strings.NewReader(form.Encode()))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				request.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.1", i/256, i%256))
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				if response.StatusCode >= http.StatusInternalServerError {
					t.Errorf("a sign-in answers %s", response.Status)
				}
			})
		}
		all.Wait()
	})
}

// TestChaosFairness compares the p99 of one application on a calm server and next
// to one that floods it.
func TestChaosFairness(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		rise     time.Duration // by how much the flood may raise the p99
		deposits bool          // half of the flood
	}{
		"with the default rate limit":       {nil, 50 * time.Millisecond, false},
		"without a rate limit":              {[]string{"PURSER_RATE_LIMIT=0"}, 100 * time.Millisecond, false},
		"with deposits to the same wallets": {nil, 50 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := startChaos(t, c.settings...)
			quiet, flood := s.tenant(t, "Quiet"), s.tenant(t, "Flood")
			s.measure(t, quiet, 2*time.Second) // warm
			calm, _ := s.measure(t, quiet, 10*time.Second)
			end := s.startFlood(t, flood, c.deposits)
			before := s.processorTime(t)
			flooded, refused := s.measure(t, quiet, 10*time.Second)
			busy := s.processorTime(t) - before
			t.Logf("p99 %s calm, %s flooded (%s); the server took %s of processor time", calm, flooded, end(), busy)
			if flooded > calm+c.rise || refused > 0 {
				t.Errorf("p99 rose from %s to %s, %d were refused", calm, flooded, refused)
			}
		})
	}
}

const floodSetting = "PURSER_TEST_FLOOD"

// startFlood sends uses as fast as it can on 512 connections, from a process of its
// own: other tenants' clients do not share the server's processors either, so it
// gives way to the server. The function that it returns ends it and says how much it
// sent.
func (s chaosServer) startFlood(t *testing.T, key string, deposits bool) func() string {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestFloodProcess$")
	command.Env = append(os.Environ(), floodSetting+"="+fmt.Sprint(s.base, " ", key, " ", deposits))
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	own, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // Linux gives 20 less the niceness
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, command.Process.Pid, 20-own+10); err != nil {
		t.Error(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan() // it has begun
	return sync.OnceValue(func() string {
		_ = stdin.Close()
		lines.Scan()
		sent := lines.Text()
		_ = command.Wait()
		return sent
	})
}

// TestFloodProcess is the process of a flood, which ends with its input. Run as a
// test it does nothing.
func TestFloodProcess(t *testing.T) {
	words := strings.Fields(os.Getenv(floodSetting))
	if len(words) == 0 {
		return
	}
	s, key, deposits := chaosServer{product: product{base: words[0]}}, words[1], words[2] == "true"
	send := func(ctx context.Context, client *http.Client, id string, wallet int) {
		if deposits && wallet%2 == 0 {
			_, _ = s.post(ctx, client, key, "deposits", fmt.Sprintf(`{"identity":"w%d","creditKey":"tokens","amountNanocredits":"1","idempotencyKey":%q}`, wallet/2%64, id))
			return
		}
		_, _ = s.use(ctx, client, key, id, wallet)
	}
	ctx, stop := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	var crowd sync.WaitGroup
	var sent atomic.Int64
	for i := range 512 {
		crowd.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				send(ctx, client, fmt.Sprintf("flood-%d-%d", i, n), i)
				sent.Add(1)
			}
		})
	}
	fmt.Println("begun")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	crowd.Wait()
	fmt.Println(sent.Load(), "requests of the flood")
}

// processorTime is what the server has used so far, in its own and in the kernel's
// code.
func (s chaosServer) processorTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// The name, which may hold spaces, ends with the last parenthesis.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// tenant makes an application with funded wallets and gives its key.
func (s chaosServer) tenant(t *testing.T, name string) string {
	t.Helper()
	key := s.newKey(t, "--org", name, "--app", name, "--preset", "setup").Secret
	steps := [][2]string{
		{"credits", `{"key":"tokens","name":"Tokens","unit":"token"}`},
		{"features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"1"}`},
	}
	for w := range 64 {
		steps = append(steps, [2]string{"deposits", fmt.Sprintf(`{"identity":"w%d","creditKey":"tokens","amountNanocredits":"1000000000","idempotencyKey":"w%d"}`, w, w)})
	}
	for _, step := range steps {
		if got := status(t, http.MethodPost, s.base+"/v1/"+step[0], key, step[1]); got != http.StatusCreated {
			t.Fatalf("%s answers %d", step[0], got)
		}
	}
	return key
}

func (s chaosServer) use(ctx context.Context, client *http.Client, key, id string, wallet int) (int, error) {
	return s.post(ctx, client, key, "events", fmt.Sprintf(`{"id":%q,"identity":"w%d","feature":"chat"}`, id, wallet%64))
}

func (s chaosServer) post(ctx context.Context, client *http.Client, key, path, body string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v1/"+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// measure sends 100 uses a second and gives their p99, and how many failed.
func (s chaosServer) measure(t *testing.T, key string, period time.Duration) (p99 time.Duration, refused int64) {
	t.Helper()
	took, failed := s.sample(t, key, period)
	return took[len(took)*99/100], failed
}

// sample sends 100 uses a second and gives their times, sorted, and how many failed.
func (s chaosServer) sample(t *testing.T, key string, period time.Duration) (took []time.Duration, failures int64) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed atomic.Int64
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for i := range int(period / (10 * time.Millisecond)) {
		<-ticker.C
		all.Go(func() {
			started := time.Now()
			code, err := s.use(context.Background(), client, key, fmt.Sprintf("%s-%d", run, i), i)
			if err != nil || code != http.StatusCreated {
				failed.Add(1)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(started))
		})
	}
	all.Wait()
	slices.Sort(took)
	return took, failed.Load()
}
