package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// drainLimit is how long requests under way at the end of a load may take. Past
// it the server is stuck.
const drainLimit = 2 * time.Minute

// errNoAnswer is for a window in which nothing was measured.
var errNoAnswer = errors.New("not one request was answered in time")

// load is a closed loop: every connection sends its next request when it has the
// answer to the last.
type load struct {
	tenant      *tenant
	nodes       []*node // connections are dealt to them in turn
	connections int
	checks      int // of each cycle of a connection, the first so many are checks
	events      int // and then so many are events
	batch       int // events of a request; 0 for one event each
	wallets     picker
	beside      *load // runs in the same window, and only its accepted events count
}

// size is how many events a request has.
func (l load) size() int { return max(1, l.batch) }

// picker makes a connection's way of choosing its next wallet.
type picker func(*rand.Rand) func() int

// outcome is what a load, or the part of it on one connection, brought about.
type outcome struct {
	latencies  histogram // of the answers inside the window
	accepted   int       // events in all, those outside the window too
	beside     int       // those of the load beside it
	wrong      int       // answers that were not as expected
	firstWrong string    // of the first of those
}

// window is when answers count: before it the caches are cold, after it the
// connections stop one by one.
type window struct{ from, to time.Time }

// run sends the load through the window. Probe is called when it opens and when
// it closes.
func (l load) run(ctx context.Context, w window, probe func()) (*outcome, error) {
	workers, err := l.connectAll(ctx)
	if err != nil {
		return nil, err
	}
	defer closeAll(workers)
	var others []*worker
	if l.beside != nil {
		if others, err = l.beside.connectAll(ctx); err != nil {
			return nil, err
		}
		defer closeAll(others)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for _, one := range append(slices.Clone(workers), others...) {
		all.Go(func() {
			if err := one.run(w); err != nil {
				fail(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()

	err = watch(ctx, w, done, probe)
	if err != nil { // so that a worker that waits for an answer ends
		closeAll(workers)
		closeAll(others)
	}
	<-done
	total := &outcome{}
	for _, one := range workers {
		total.add(&one.outcome)
	}
	for _, one := range others {
		total.beside += one.accepted
		one.accepted, one.latencies = 0, histogram{}
		total.add(&one.outcome)
	}
	if err != nil {
		return total, err
	}
	return total, total.fault()
}

// watch calls probe at both ends of the window and returns when the workers are
// done, or when one of them has failed.
func watch(ctx context.Context, w window, done <-chan struct{}, probe func()) error {
	for _, moment := range []time.Time{w.from, w.to} {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(moment)):
			probe()
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-done:
		return context.Cause(ctx) // the last one may have failed
	case <-time.After(drainLimit):
		return fmt.Errorf("requests had no answer for %v", drainLimit)
	}
}

func (o *outcome) add(other *outcome) {
	o.latencies.merge(&other.latencies)
	o.accepted += other.accepted
	o.wrong += other.wrong
	o.firstWrong = cmp.Or(o.firstWrong, other.firstWrong)
}

func (o *outcome) fault() error {
	switch {
	case o.wrong > 0:
		return fmt.Errorf("%d answers were wrong, the first: %s", o.wrong, o.firstWrong)
	case o.latencies.total == 0:
		return errNoAnswer
	}
	return nil
}

// worker is one connection.
type worker struct {
	outcome
	conn          net.Conn
	answers       answers
	tracks        []*request // in turn
	check         *request
	checks, cycle int
	turn          int
	tracked       int // how many tracks were sent
	pick          func() int
	random        *rand.PCG
}

func (l load) connectAll(ctx context.Context) (workers []*worker, err error) {
	for i := range l.connections {
		one, err := l.connect(ctx, i)
		if err != nil {
			closeAll(workers)
			return nil, err
		}
		workers = append(workers, one)
	}
	return workers, nil
}

func closeAll(workers []*worker) {
	for _, one := range workers {
		one.conn.Close()
	}
}

func (l load) connect(ctx context.Context, number int) (*worker, error) {
	to := l.nodes[number%len(l.nodes)]
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", to.host)
	if err != nil {
		return nil, err
	}
	random := rand.NewPCG(rand.Uint64(), rand.Uint64())
	w := &worker{
		conn:    conn,
		check:   newCheck(to.host, l.tenant.secret),
		checks:  l.checks,
		cycle:   l.checks + l.events,
		turn:    number, // so that connections are at different points of the cycle
		tracked: number,
		pick:    l.wallets(rand.New(random)),
		random:  random,
	}
	if l.batch > 0 {
		w.tracks = []*request{newBatch(to.host, l.tenant.secret, l.batch)}
	} else {
		for _, v := range traffic {
			w.tracks = append(w.tracks, newTrack(to.host, l.tenant.secret, v))
		}
	}
	w.answers.from = conn
	return w, nil
}

func (w *worker) run(counted window) error {
	for sent := time.Now(); sent.Before(counted.to); {
		got, err := w.send(sent)
		if err != nil {
			return err
		}
		answered := time.Now()
		if got && answered.After(counted.from) && !answered.After(counted.to) {
			w.latencies.add(answered.Sub(sent))
		}
		sent = answered
	}
	return nil
}

// send sends the next request of the cycle and reports whether it was answered as
// it should be.
func (w *worker) send(now time.Time) (bool, error) {
	next, isTrack := w.check, w.turn%w.cycle >= w.checks
	if isTrack {
		next = w.tracks[w.tracked%len(w.tracks)]
		w.tracked++
	}
	w.turn++
	if _, err := w.conn.Write(next.fill(w.pick, now, w.random)); err != nil {
		return false, err
	}
	got, err := w.answers.next()
	if err != nil {
		return false, err
	}
	if !next.expects.metBy(got) {
		w.wrong++
		if w.firstWrong == "" {
			w.firstWrong = fmt.Sprintf("%d %s", got.status, got.body)
		}
		return false, nil
	}
	if isTrack {
		w.accepted += len(next.slots)
	}
	return true, nil
}

// evenly picks any of the first n wallets.
func evenly(n int) picker {
	return func(r *rand.Rand) func() int { return func() int { return r.IntN(n) } }
}

// always picks one wallet.
func always(wallet int) picker {
	return func(*rand.Rand) func() int { return func() int { return wallet } }
}

// scatter is a prime, so that ranks times it, modulo any count of wallets that it
// does not divide, gives every wallet once.
const scatter = 611953

// byRank picks of n wallets some far more often than others, as Zipf found it
// with words. The often used ones lie all over the table, not side by side.
func byRank(n int) picker {
	return func(r *rand.Rand) func() int {
		zipf := rand.NewZipf(r, 1.01, 1, uint64(n-1))
		return func() int { return int(zipf.Uint64() * scatter % uint64(n)) }
	}
}
