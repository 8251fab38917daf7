package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"purser/httpd/outgoing"
)

const (
	// healthTimeout is longer than /readyz takes to report an unreachable database.
	healthTimeout = 5 * time.Second
	// maxHealthAnswer bounds what is read of an answer: another program may listen there.
	maxHealthAnswer = 1 << 10
)

// health asks the server on this machine whether it is ready, for health checks of
// containers and service managers. An answer other than 200 is an error with its reason.
func health(ctx context.Context, c config, args []string, stdout, _ io.Writer) error {
	flags := flag.NewFlagSet("health", flag.ContinueOnError)
	flags.StringVar(&c.addr, "addr", c.addr, "address of the server (PURSER_ADDR)")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	if err := c.checkAddr(); err != nil {
		return err
	}
	address, err := localAddress(c.addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	// Without HTTP_PROXY: the question is for this machine.
	client := outgoing.NewClient(&http.Transport{Proxy: nil, DisableKeepAlives: true})
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", address, errors.Join(context.Cause(ctx), err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxHealthAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", address, err)
	}
	answer := strings.TrimSpace(string(text))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server at %s answers %d: %s", address, response.StatusCode, answer)
	}
	_, err = fmt.Fprintln(stdout, answer)
	return err
}

// localAddress is where a server that listens on addr can be reached from this machine.
func localAddress(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errors.New("--addr (PURSER_ADDR) has port 0: name the port that the server listens on")
	}
	if isWildcard(host) {
		host = "localhost" // both families
	}
	return net.JoinHostPort(host, port), nil
}
