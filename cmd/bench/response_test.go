package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func answersFrom(r io.Reader) *answers {
	return &answers{from: r}
}

const accepted = "HTTP/1.1 201 Created\r\nX-Other: 99\r\ncontent-length: 21\r\n\r\n" + `{"status":"accepted"}`

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]io.Reader{
		"reads a whole answer":           strings.NewReader(accepted),
		"reads one that comes in pieces": iotest.OneByteReader(strings.NewReader(accepted)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := answersFrom(from).next()
			if err != nil {
				t.Fatal(err)
			}
			if got.status != 201 || string(got.body) != `{"status":"accepted"}` {
				t.Errorf("it is %d %s", got.status, got.body)
			}
		})
	}
	t.Run("reads one after the other", func(t *testing.T) {
		t.Parallel()
		a := answersFrom(iotest.OneByteReader(strings.NewReader(accepted + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))
		first, err := a.next()
		if err != nil || first.status != 201 {
			t.Fatalf("the first is %d, %v", first.status, err)
		}
		second, err := a.next()
		if err != nil || second.status != 200 || len(second.body) != 0 {
			t.Fatalf("the second is %d %s, %v", second.status, second.body, err)
		}
	})
	for name, text := range map[string]string{
		"refuses an answer without a length":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"refuses a length that is not a number":   "HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n",
		"refuses another protocol":                "SSH-2.0\r\n\r\n",
		"refuses an answer that breaks off":       accepted[:len(accepted)-1],
		"refuses more than an answer":             accepted + "!",
		"refuses an answer longer than its limit": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxAnswer),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := answersFrom(strings.NewReader(text)).next(); err == nil {
				t.Errorf("it took it for %d %s", got.status, got.body)
			}
		})
	}
	t.Run("passes on why a connection failed", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("broken")
		if _, err := answersFrom(iotest.ErrReader(broken)).next(); !errors.Is(err, broken) {
			t.Errorf("it says %v", err)
		}
	})
}

func TestExpectations(t *testing.T) {
	t.Parallel()
	track := newTrack("127.0.0.1:80", "secret", variant{}).expects
	for name, c := range map[string]struct {
		answer answer
		met    bool
	}{
		"an accepted event is one":          {answer{201, []byte(`{"status":"accepted"}`)}, true},
		"a duplicate is not":                {answer{200, []byte(`{"status":"duplicate"}`)}, false},
		"a refusal is not":                  {answer{409, []byte(`{"error":"insufficient_balance"}`)}, false},
		"another body is not":               {answer{201, []byte(`{}`)}, false},
		"the right body with 200 is not":    {answer{200, []byte(`{"status":"accepted"}`)}, false},
		"the server's own failure is not":   {answer{500, []byte(`{"error":"internal"}`)}, false},
		"an empty answer is not one at all": {answer{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if track.metBy(c.answer) != c.met {
				t.Errorf("for %d %s", c.answer.status, c.answer.body)
			}
		})
	}
}
