package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// terminated is the cause of a context that SIGTERM ended: an orchestrator stops
// this node and needs a moment to route requests elsewhere.
type terminated struct {
	hurry <-chan struct{} // closed when the drain is to end early
}

func (*terminated) Error() string { return "terminated" }

// errInterrupted is the cause of a context that SIGINT ended: a person at a
// terminal waits, and no load balancer does.
var errInterrupted = errors.New("interrupted")

// notifyStop returns a context that the first signal ends. Each further signal
// skips a stage: it ends the drain, then the process.
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
