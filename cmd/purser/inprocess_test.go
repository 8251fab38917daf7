package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestInProcess(t *testing.T) {
	t.Parallel()
	caller := func(handle http.HandlerFunc) *http.Client { return &http.Client{Transport: inProcess{handle}} }

	t.Run("answers what the handler writes, wherever the address points", func(t *testing.T) {
		t.Parallel()
		client := caller(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("X-Asked", r.Method+" "+r.Host+r.RequestURI)
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("X-Late", "too late")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(strings.ToUpper(string(body))))
		})
		got, err := client.Post("https://nowhere.invalid/a%2Fb?c=d", "text/plain", strings.NewReader("short"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		if err != nil || string(text) != "SHORT" || got.StatusCode != http.StatusTeapot || got.Header.Get("X-Late") != "" {
			t.Errorf("%d %q %v, %v", got.StatusCode, text, got.Header, err)
		}
		if asked := got.Header.Get("X-Asked"); asked != "POST nowhere.invalid/a%2Fb?c=d" {
			t.Errorf("asked %s", asked)
		}
	})

	t.Run("is 200 for a handler that writes nothing", func(t *testing.T) {
		t.Parallel()
		got, err := caller(func(http.ResponseWriter, *http.Request) {}).Get("http://nowhere.invalid/")
		if err != nil || got.StatusCode != http.StatusOK {
			t.Errorf("%v, %v", got, err)
		}
	})

	t.Run("fails as a network does when the handler drops the connection or breaks", func(t *testing.T) {
		t.Parallel()
		_, err := caller(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		}).Get("http://nowhere.invalid/")
		if !errors.Is(err, errDropped) {
			t.Errorf("dropped: %v", err)
		}
		_, err = caller(func(http.ResponseWriter, *http.Request) { panic("broken") }).Get("http://nowhere.invalid/")
		if err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("broken: %v", err)
		}
	})

	t.Run("does not wait for a handler longer than its caller", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		client := caller(func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
			close(ended)
		})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://nowhere.invalid/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Do(request); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		<-ended
	})
}
