package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"purser/store/storetest"
)

func askHealth(t *testing.T, args ...string) (printed string, err error) {
	t.Helper()
	var out bytes.Buffer
	err = run(t.Context(), append([]string{"health"}, args...), nil, &out, &out)
	return out.String(), err
}

func TestHealthReportsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	addr := strings.TrimPrefix(p.base, "http://")
	_, port, _ := strings.Cut(addr, ":")

	t.Run("a ready server is healthy", func(t *testing.T) {
		for _, addr := range []string{addr, ":" + port, "0.0.0.0:" + port, "[::]:" + port} {
			eventually(t, addr+" is ready", func() bool {
				printed, err := askHealth(t, "--addr", addr)
				return err == nil && printed == "ready\n"
			})
		}
	})
	t.Run("the address comes from PURSER_ADDR", func(t *testing.T) {
		eventually(t, addr+" is ready", func() bool {
			var out bytes.Buffer
			return run(t.Context(), []string{"health"}, []string{"PURSER_ADDR=" + addr}, &out, &out) == nil
		})
	})
	t.Run("a draining server is not, with its reason", func(t *testing.T) {
		draining := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			http.Error(w, "not ready: the server is stopping", http.StatusServiceUnavailable)
		}))
		defer draining.Close()
		if printed, err := askHealth(t, "--addr", draining.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "503: not ready: the server is stopping") {
			t.Errorf("%q, %v", printed, err)
		}
	})
	t.Run("a redirect is not followed", func(t *testing.T) {
		elsewhere := httptest.NewServer(http.RedirectHandler(p.base+"/readyz", http.StatusFound))
		defer elsewhere.Close()
		if _, err := askHealth(t, "--addr", elsewhere.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "302") {
			t.Error(err)
		}
	})
	t.Run("an answer is read up to its limit", func(t *testing.T) {
		endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(bytes.Repeat([]byte("x"), maxHealthAnswer))
			}
		}))
		defer endless.Close()
		if printed, err := askHealth(t, "--addr", endless.Listener.Addr().String()); err != nil || len(printed) != maxHealthAnswer+1 {
			t.Errorf("%d bytes, %v", len(printed), err)
		}
	})
	t.Run("no server is an error that names the address", func(t *testing.T) {
		addr := fmt.Sprint("127.0.0.1:", storetest.ClosedPort(t))
		if _, err := askHealth(t, "--addr", addr); err == nil || !strings.Contains(err.Error(), "no server answers at "+addr) {
			t.Error(err)
		}
	})
	t.Run("addresses that name no server are refused", func(t *testing.T) {
		for _, addr := range []string{"localhost", "127.0.0.1:0"} {
			if _, err := askHealth(t, "--addr", addr); err == nil || !strings.Contains(err.Error(), "PURSER_ADDR") {
				t.Errorf("%s: %v", addr, err)
			}
		}
	})
}

func TestVersionNamesWhatTheBinaryIsBuiltFrom(t *testing.T) {
	t.Parallel()
	var text, asJSON bytes.Buffer
	if err := run(context.Background(), []string{"version"}, nil, &text, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"purser " + version + "\n", "commit " + commit + "\n", "built  " + built + "\n", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in %q", want, text.String())
		}
	}
	if err := run(context.Background(), []string{"version", "--json"}, nil, &asJSON, nil); err != nil {
		t.Fatal(err)
	}
	var told map[string]string
	if err := json.Unmarshal(asJSON.Bytes(), &told); err != nil || told["version"] != version || told["commit"] != commit || told["go"] != runtime.Version() {
		t.Errorf("%v, %v", told, err)
	}
	if err := run(context.Background(), []string{"version", "stray"}, nil, &text, nil); err == nil {
		t.Error("a stray argument was accepted")
	}
}
