package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
)

// inProcess is a transport whose requests a handler of this process answers,
// wherever their address points: the server reaches itself also when its public
// address belongs to a proxy, or cannot be reached from here.
type inProcess struct{ handler http.Handler }

// errDropped is what a caller sees when the handler ends the connection.
var errDropped = errors.New("the connection was dropped")

// RoundTrip is http.RoundTripper's. The answer is complete before it is given, so
// it is for short ones.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	asked.RequestURI, asked.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if asked.Host == "" {
		asked.Host = r.URL.Host
	}
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	w := &answerWriter{header: http.Header{}}
	done := make(chan error, 1)
	go func() {
		defer asked.Body.Close()
		done <- p.serve(w, asked)
	}()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return w.response(r), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// serve turns a panic into an error, as a network would: this is not the
// goroutine of a connection, so it would end the process.
func (p inProcess) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			err = errDropped
		default:
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	p.handler.ServeHTTP(w, r)
	return nil
}

// answerWriter keeps what a handler writes.
type answerWriter struct {
	header http.Header
	sent   http.Header // as it was when the status was written
	status int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *answerWriter) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(text)
}

// Flush is http.Flusher's. There is nobody to be flushed to.
func (w *answerWriter) Flush() {}

func (w *answerWriter) response(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}
}
