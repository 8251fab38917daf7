package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"purser/fault"
	"purser/ids"
)

// manyPageRequests is more than the pages serve at once.
const manyPageRequests = 20

func TestSlowFormsLeaveRoomForOtherPages(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.topup(500)
	page, err := url.Parse(session.URL)
	must(t, err)
	for range manyPageRequests {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", page.Host)
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n",
			page.Path, page.Host, r.http.URL)
		must(t, err)
		// The server says so when it begins to read the body, which never comes.
		status, err := bufio.NewReader(conn).ReadString('\n')
		must(t, err)
		if !strings.Contains(status, "100") {
			t.Fatalf("answered %s", status)
		}
	}
	if status, _ := r.visit(session.URL); status != http.StatusOK {
		t.Errorf("the page answers %d", status)
	}
}

func TestLateWebhooksLeaveRoomForOtherPages(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.topup(500)
	entered, release := make(chan struct{}, manyPageRequests), make(chan struct{})
	r.settle = func(context.Context, ids.ID) error {
		entered <- struct{}{}
		<-release
		return nil
	}
	var visits errgroup.Group
	for range manyPageRequests {
		visits.Go(func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, session.URL, strings.NewReader("action=cancel"))
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set("Origin", r.http.URL)
			stays := *r.http.Client()
			stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			response, err := stays.Do(request)
			if err != nil {
				return err
			}
			if response.StatusCode == http.StatusServiceUnavailable {
				entered <- struct{}{}
			}
			return response.Body.Close()
		})
	}
	for range manyPageRequests {
		<-entered
	}
	if status, _ := r.visit(session.URL); status != http.StatusOK {
		t.Errorf("the page answers %d", status)
	}
	close(release)
	must(t, visits.Wait())
}

// TestMadeUpPagesTakeNoSlots has lookups of unknown tokens wait: pages that exist stay available.
func TestMadeUpPagesTakeNoSlots(t *testing.T) {
	t.Parallel()
	r := start(t)
	session := r.topup(500)
	entered, release := make(chan struct{}, manyPageRequests), make(chan struct{})
	r.lookup = func(token string) error {
		switch {
		case strings.HasSuffix(token, " made-up"):
			entered <- struct{}{}
			<-release
		case strings.HasSuffix(token, " refused"):
			return fault.New(fault.Overloaded)
		}
		return nil
	}
	unknown := func(token string) string { return session.URL[:strings.LastIndexByte(session.URL, '/')+1] + token }
	var visits errgroup.Group
	for range manyPageRequests {
		visits.Go(func() error {
			if status, _ := r.visit(unknown("made-up")); status != http.StatusNotFound {
				return fmt.Errorf("a made-up page answers %d", status)
			}
			return nil
		})
		<-entered
	}
	if status, _ := r.visit(session.URL); status != http.StatusOK {
		t.Errorf("the page answers %d", status)
	}
	if status, body := r.visit(unknown("refused")); status != http.StatusServiceUnavailable || !strings.Contains(body, "Try again") {
		t.Errorf("a lookup that is refused answers %d", status)
	}
	close(release)
	must(t, visits.Wait())
}
