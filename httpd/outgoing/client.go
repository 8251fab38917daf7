package outgoing

import "net/http"

// NewClient creates a client that sends requests by the transport. It follows no redirects:
// they could lead where the caller does not check.
func NewClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     plainHTTP{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plainHTTP closes connections that switch to another protocol, which no caller asks for.
// The body of such a response is the connection itself: neither the deadline of the
// request nor its cancellation ends a read from it.
type plainHTTP struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t plainHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close() // the status says that it failed
		response.Body = http.NoBody
	}
	return response, err
}

// CloseIdleConnections is for http.Client.
func (t plainHTTP) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
