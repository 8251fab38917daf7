package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxAnswer is far above any answer to a check, an event or a batch of a hundred.
const maxAnswer = 64 << 10

// expectation is what the answer to a request has to be.
type expectation struct {
	status   int
	contains []byte
}

// answers reads responses off one connection, on which there is never more than
// one request under way. It knows as much of HTTP as our server needs.
type answers struct {
	from   io.Reader
	buffer [maxAnswer]byte
}

type answer struct {
	status int
	body   []byte // valid until the next answer
}

var (
	headersEnd    = []byte("\r\n\r\n")
	contentLength = []byte("content-length:")
)

func (a *answers) next() (answer, error) {
	filled, bodyAt := 0, -1
	for bodyAt < 0 {
		n, err := a.more(filled)
		if err != nil {
			return answer{}, err
		}
		filled += n
		if end := bytes.Index(a.buffer[:filled], headersEnd); end >= 0 {
			bodyAt = end + len(headersEnd)
		}
	}
	status, length, err := readHeaders(a.buffer[:bodyAt])
	if err != nil {
		return answer{}, err
	}
	for filled < bodyAt+length {
		n, err := a.more(filled)
		if err != nil {
			return answer{}, err
		}
		filled += n
	}
	if filled > bodyAt+length {
		return answer{}, errors.New("the server sent more than its answer")
	}
	return answer{status: status, body: a.buffer[bodyAt:filled]}, nil
}

func (a *answers) more(filled int) (int, error) {
	if filled == len(a.buffer) {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	n, err := a.from.Read(a.buffer[filled:])
	if n > 0 {
		return n, nil
	}
	if err == io.EOF {
		err = errors.New("the server closed the connection")
	}
	return 0, err
}

// readHeaders takes the status of "HTTP/1.1 201 Created" and the length of the body.
func readHeaders(headers []byte) (status, length int, err error) {
	const statusAt = len("HTTP/1.1 ")
	if len(headers) < statusAt+3 || !bytes.HasPrefix(headers, []byte("HTTP/1.1 ")) {
		return 0, 0, fmt.Errorf("not an answer of HTTP/1.1: %.40q", headers)
	}
	status, found := digits(headers[statusAt : statusAt+3])
	for line := range bytes.Lines(headers) {
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			var whole bool
			length, whole = digits(bytes.TrimSpace(line[len(contentLength):]))
			if !found || !whole {
				break
			}
			return status, length, nil
		}
	}
	return 0, 0, fmt.Errorf("an answer without a readable status and Content-Length: %.200q", headers)
}

func digits(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' || n > maxAnswer {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(text) > 0
}

func (e expectation) metBy(a answer) bool {
	return a.status == e.status && bytes.Contains(a.body, e.contains)
}
