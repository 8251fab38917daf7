package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
)

// inProcess is an http.RoundTripper that calls a handler of this process, whatever the
// host: the server can call itself even if its public URL belongs to a proxy or cannot
// be reached from here.
type inProcess struct{ handler http.Handler }

// errDropped is returned if the handler aborts the connection.
var errDropped = errors.New("the connection was dropped")

// RoundTrip implements http.RoundTripper. The response is buffered, so it must be short.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := r.Clone(r.Context())
	asked.RequestURI, asked.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	if asked.Host == "" {
		asked.Host = r.URL.Host
	}
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	w := &responseRecorder{header: http.Header{}}
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

// serve turns a panic into an error: this is not a connection's goroutine, so the panic
// would end the process.
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

// responseRecorder buffers a handler's response.
type responseRecorder struct {
	header http.Header
	sent   http.Header // a copy from when the status was written
	status int
	body   bytes.Buffer
}

func (w *responseRecorder) Header() http.Header { return w.header }

func (w *responseRecorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *responseRecorder) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(text)
}

// Flush implements http.Flusher; the response is buffered anyway.
func (w *responseRecorder) Flush() {}

func (w *responseRecorder) response(r *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}
}
