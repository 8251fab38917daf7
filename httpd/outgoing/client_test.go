package outgoing

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// heldFor is how long the server of the test keeps a connection that its client should
// close at once: long enough for a busy machine.
const heldFor = 30 * time.Second

// switching answers a request with 101, waits for the end of the connection, and reports
// whether the client ended it.
func switching(t *testing.T) (url string, closed <-chan bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan bool, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(heldFor))
		_, err = conn.Read(make([]byte, 1))
		timeout, isNetwork := err.(net.Error)
		ended <- !isNetwork || !timeout.Timeout()
	}()
	return "http://" + listener.Addr().String(), ended
}

func TestAConnectionThatSwitchesProtocolsIsClosed(t *testing.T) {
	t.Parallel()
	url, closed := switching(t)
	client := NewClient(&http.Transport{})
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || len(text) != 0 || response.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("%d with %q, %v", response.StatusCode, text, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if !<-closed {
		t.Error("the client kept the connection")
	}
}
