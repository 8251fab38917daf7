package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"purser/httpd/outgoing"
)

// outsideTime is the timeout of a webhook to another program.
const outsideTime = 5 * time.Second

// outsideClient connects to loopback addresses only, whatever a name resolves to.
var outsideClient = outgoing.NewClient(&http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
	if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
		return errors.New("sandbox: webhook address is not on this machine")
	}
	return nil
}}).DialContext})

// sendToProgram sends a webhook to another program on this machine.
func (s *Server) sendToProgram(ctx context.Context, address string, header http.Header, body []byte) error {
	if !s.isLocal() || !isLoopback(address) {
		return errors.New("the address is not on this machine")
	}
	ctx, cancel := context.WithTimeout(ctx, outsideTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	request.Header.Set("User-Agent", "Purser-Sandbox/1.0")
	answer, err := outsideClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxForm)) // the body is not used
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the endpoint answers %s", answer.Status)
	}
	return nil
}

// isOwn reports whether an endpoint is one of this server's own: payments wait for its
// deliveries, which do not use the network.
func (s *Server) isOwn(address string) bool {
	return strings.HasPrefix(address, s.ownWebhooks())
}

func (s *Server) ownWebhooks() string { return s.options.BaseURL + "/webhooks/" }

// checkEndpointURL refuses an endpoint that no webhook can reach.
func (s *Server) checkEndpointURL(address string) error {
	switch {
	case s.isOwn(address) && s.options.OwnEndpoints:
		return nil
	case s.isOwn(address):
		return badRequest("url", "This is an address of this server. It adds the endpoint of your application itself; use an address of your own program.")
	case !s.isLocal():
		return badRequest("url", "The sandbox of this server delivers webhooks to its own application only, because the server has a public address, or listens on all addresses without PURSER_BASE_URL. Run Purser on your machine to receive them in a program of yours.")
	case !isLoopback(address):
		return badRequest("url", "The sandbox delivers webhooks to this machine only. Use an address such as http://localhost:4242/webhook (localhost, 127.0.0.1 or [::1]).")
	}
	return nil
}

// isLocal reports whether the server has a loopback address: then other loopback
// addresses belong to the same developer.
func (s *Server) isLocal() bool { return !s.options.Public && isLoopback(s.options.BaseURL) }

func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
