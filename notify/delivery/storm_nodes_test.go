//go:build chaos

package delivery_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/ids"
	"purser/jobs"
	"purser/notify"
	"purser/notify/delivery"
	"purser/store"
	"purser/store/storetest"
	books "purser/store/verify"
	"purser/tenancy/vault"
)

const (
	// An hour of the schedule of deliveries passes in a second.
	stormSpeed   = 3600
	stormTimeout = 400 * time.Millisecond
	stormSecret  = "a secret for the webhooks of the tests of this package"
)

// fastClock is the clock of all nodes.
type fastClock struct{ start time.Time }

func (c fastClock) now() time.Time { return c.start.Add(time.Since(c.start) * stormSpeed) }

func newStormNode(ctx context.Context, url string, clock fastClock) (*store.Store, *jobs.Queue, *delivery.Dispatcher, error) {
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	sealed, err := vault.New(rand.Reader, []byte(stormSecret))
	queue := jobs.New(jobs.Options{Store: db, Now: clock.now, Lease: 3 * time.Second})
	return db, queue, delivery.New(delivery.Options{Store: db, Vault: sealed, Jobs: queue, Now: clock.now, Opened: loopback, Timeout: stormTimeout}), err
}

// TestMain runs a node when the test starts its own program as one.
func TestMain(m *testing.M) {
	url := os.Getenv("PURSER_STORM_DATABASE")
	if url == "" {
		os.Exit(m.Run())
	}
	start, _ := strconv.ParseInt(os.Getenv("PURSER_STORM_START"), 10, 64)
	_, queue, _, err := newStormNode(context.Background(), url, fastClock{time.Unix(0, start)})
	if err == nil {
		err = queue.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func stormNode(t *testing.T, url string, clock fastClock) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	noError(t, err)
	node := exec.Command(program)
	node.Env = append(os.Environ(), "PURSER_STORM_DATABASE="+url, "PURSER_STORM_START="+strconv.FormatInt(clock.start.UnixNano(), 10))
	node.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	node.Stderr = os.Stderr
	noError(t, node.Start())
	return node
}

// Notifications to three receivers that fail in every way, sent by three nodes that are
// killed again and again; one receiver accepts nothing until it is paused, and is enabled
// six days later. None is lost or changed, and the links are whole.
// PURSER_STORM_NOTIFICATIONS is how many there are.
func TestChaosWebhooks(t *testing.T) {
	total, err := strconv.Atoi(os.Getenv("PURSER_STORM_NOTIFICATIONS"))
	if err != nil {
		total = 100_000
	}
	began := time.Now()
	url, clock := storetest.FreshURL(t), fastClock{time.Now()}
	r := &harness{T: t, now: clock.now()}
	r.db, r.queue, r.dispatcher, err = newStormNode(t.Context(), url, clock)
	noError(t, err)
	t.Cleanup(r.db.Close)
	r.application()
	usual := mood{fails: 300, busy: 200, slow: 20, hangs: 20, gone: 1}
	receivers := []*moody{newMoody(t, usual), newMoody(t, usual), newMoody(t, mood{})}
	receivers[2].refuse = true
	var down ids.ID
	for _, hooks := range receivers {
		e, secret := r.endpoint(hooks.URL)
		hooks.trust(t, secret)
		down = e.ID
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	nodes := []*exec.Cmd{stormNode(t, url, clock), stormNode(t, url, clock), stormNode(t, url, clock)}
	defer func() {
		for _, node := range nodes {
			_ = node.Process.Kill()
			_ = node.Wait()
		}
	}()
	var writers errgroup.Group
	writers.SetLimit(16)
	go func() {
		for i := range total {
			writers.Go(func() error {
				key := strconv.Itoa(i)
				_, _, err := r.db.App(r.scope).Deposit(context.WithoutCancel(t.Context()), store.Deposit{
					ID: ids.New(), Identity: "user-" + strconv.Itoa(i%500), CreditKey: "tokens", Amount: 5, IdempotencyKey: &key, CreatedAt: clock.now().UnixMilli(),
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
				return err
			})
		}
	}()
	kills, pausedAt := 0, time.Time{}
	nextKill, nextReport := time.Now(), time.Now()
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	for {
		noError(t, r.dispatcher.Prepare(t.Context(), r.scope))
		r.mu.Lock()
		r.now = clock.now()
		r.mu.Unlock()
		list, err := r.db.Notifications(r.scope).Endpoints(t.Context())
		noError(t, err)
		for _, e := range list {
			switch {
			case e.Status == notify.Enabled:
			case e.ID == down && pausedAt.IsZero():
				pausedAt = clock.now()
				t.Logf("paused after %s: %s", time.Since(began).Round(time.Second), e.PauseReason)
			case e.ID == down && clock.now().Sub(pausedAt) < 6*24*time.Hour:
			default:
				if e.ID == down {
					receivers[2].mu.Lock()
					receivers[2].refuse, receivers[2].mood = false, usual
					receivers[2].mu.Unlock()
				}
				_, err := r.db.Notifications(r.scope).UpdateEndpoint(t.Context(), e.ID, notify.EndpointPatch{Status: new(notify.Enabled)}, false)
				noError(t, err)
			}
		}
		if time.Now().After(nextKill) {
			i := random.IntN(len(nodes))
			noError(t, nodes[i].Process.Kill())
			_ = nodes[i].Wait()
			nodes[i] = stormNode(t, url, clock)
			kills++
			nextKill = time.Now().Add(20*time.Second + time.Duration(random.IntN(20_000))*time.Millisecond)
		}
		last := r.last()
		done := last >= int64(total) && !pausedAt.IsZero()
		var progress []int
		for _, hooks := range receivers {
			number, _ := hooks.accepted()
			done = done && int64(number) == last
			progress = append(progress, number)
		}
		if time.Now().After(nextReport) {
			nextReport = time.Now().Add(time.Minute)
			fmt.Fprintf(os.Stderr, "%s: %d numbered, %v accepted, %d kills\n", time.Since(began).Round(time.Second), last, progress, kills)
		}
		if done {
			break
		}
		<-pace.C
	}
	noError(t, writers.Wait())
	answers, twice := map[int]int{}, 0
	for _, hooks := range receivers {
		hooks.whole(t, r.last())
		_, again := hooks.accepted()
		twice += again
		for status, n := range hooks.answers {
			answers[status] += n
		}
	}
	checked, err := r.db.Verification(r.scope).Verify(t.Context(), books.Options{})
	if err != nil || len(checked.Differences) > 0 {
		t.Errorf("the books differ: %v, %v", checked.Differences, err)
	}
	t.Logf("%d notifications for %d receivers in %s: %d kills, answers %v (0 is none), %d accepted twice", r.last(), len(receivers), time.Since(began).Round(time.Second), kills, answers, twice)
}
