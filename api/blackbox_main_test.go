package api_test

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs everything, then looks at what was left behind: goroutines, and
// secrets in the log.
func TestMain(m *testing.M) {
	code := m.Run()
	atEnd.run()
	if isFuzzing() { // the fuzzing engine has goroutines of its own
		os.Exit(code)
	}
	// The Postgres that test processes share is watched until the process ends.
	watching := []goleak.Option{
		goleak.IgnoreAnyFunction("purser/store/embedded.(*Server).supervise"),
		goleak.IgnoreAnyFunction("purser/store/embedded.(*Server).watch.func1"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"),
	}
	// Each look lasts less than a second, which is not enough for the last goroutines
	// to end on a busy machine.
	err := goleak.Find(watching...)
	for patience := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(patience); {
		err = goleak.Find(watching...)
	}
	if err != nil {
		fmt.Println("goroutines are left:", err)
		code = 1
	}
	if leaks := logbook.leaks(); len(leaks) > 0 {
		fmt.Printf("the log shows what it must not: %q\n", leaks)
		code = 1
	}
	os.Exit(code)
}

// isFuzzing is for what would grow without end: a run of the fuzzing engine is a
// test that lasts for hours.
var isFuzzing = sync.OnceValue(func() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return true
		}
	}
	return false
})

// atEnd holds what all tests share until the last one is done.
var atEnd ending

type ending struct {
	mu   sync.Mutex
	work []func()
}

func (e *ending) do(work func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.work = append(e.work, work)
}

// run does the last first, as defer would.
func (e *ending) run() {
	for len(e.work) > 0 {
		last := len(e.work) - 1
		e.work[last]()
		e.work = e.work[:last]
	}
}
