package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// terminated is the cause of a context ended by SIGTERM: an orchestrator stops this node
// and needs time to route requests elsewhere.
type terminated struct {
	skipDrain <-chan struct{} // closed to end the drain early
}

func (*terminated) Error() string { return "terminated" }

// errInterrupted is the cause of a context ended by SIGINT: a person at a terminal
// waits, and there is no load balancer.
var errInterrupted = errors.New("interrupted")

// notifyStop returns a context that the first signal cancels. Each further signal skips
// a stage: it ends the drain, then the process.
func notifyStop(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		followSignals(signals, cancel)
		signal.Stop(signals) // the next one has its default effect
	}()
	return ctx
}

func followSignals(signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	if first := <-signals; first != syscall.SIGTERM {
		cancel(errInterrupted)
		return
	}
	hurry := make(chan struct{})
	cancel(&terminated{hurry})
	<-signals
	close(hurry)
}
