package storetest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// seedVariable repeats the random choices of an earlier run.
const seedVariable = "PURSER_TEST_SEED"

// Seed is for the random choices of a test. It is logged, so that PURSER_TEST_SEED can
// repeat them.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if given := os.Getenv(seedVariable); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			tb.Fatalf("%s: %v", seedVariable, err)
		}
	}
	tb.Logf("%s=%d repeats the random choices", seedVariable, seed)
	return seed
}

// margin is what AvoidEndOf leaves to a test.
const margin = 2 * time.Minute

// AvoidEndOf waits for the next UTC day (24 hours) or hour when less than two minutes are
// left of this one: for tests on the real clock, whose events have to fall on one.
func AvoidEndOf(tb testing.TB, unit time.Duration) {
	tb.Helper()
	next := time.Now().Truncate(unit).Add(unit)
	for left := time.Until(next); 0 < left && left < margin && tb.Context().Err() == nil; left = time.Until(next) {
		select {
		case <-time.After(left):
		case <-tb.Context().Done():
		}
	}
}

// ClosedPort is a port of 127.0.0.1 that refuses connections while the test runs. It is
// bound, so that no other process gets it, and does not listen.
func ClosedPort(tb testing.TB) int {
	tb.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Close(socket) })
	syscall.CloseOnExec(socket)
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		tb.Fatal(err)
	}
	return bound.(*syscall.SockaddrInet4).Port
}
