package api_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// handle sends a request straight into the handler, with no network between. An
// address that net/http would refuse before the handler is no request.
func (tn *tenant) handle(t *testing.T, method, target, body string, header http.Header) {
	t.Helper()
	address, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") {
		return
	}
	r := &http.Request{
		Method: method, URL: address, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "localhost", RemoteAddr: "127.0.0.1:1",
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
	recorder := httptest.NewRecorder()
	tn.node.handler.ServeHTTP(recorder, r.WithContext(t.Context()))
	got := answer{t: t, method: method, target: target, status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
	if got.status >= 500 {
		t.Fatalf("%s: %d", got, got.status)
	}
	if !strings.HasPrefix(address.Path, "/v1/") {
		return // the probes of the server have no document
	}
	if err := got.check(); err != nil {
		t.Fatalf("%s: %v\n%s", got, err, got.body)
	}
}

func (tn *tenant) headers() http.Header {
	return http.Header{"Authorization": {"Bearer " + tn.key}, "Content-Type": {"application/json"}}
}

// FuzzBody: no body of any operation is answered with a 5xx, or with anything
// that the document does not describe.
func FuzzBody(f *testing.F) {
	tn := newRuledTenant(f)
	for i, b := range bodiedOperations {
		f.Add(uint8(i), must(bodyText(b.sample())))
		for _, name := range slices.Sorted(maps.Keys(b.rules)) {
			f.Add(uint8(i), []byte(b.withRaw(name, b.rules[name].bad[0])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(malformed)) {
		f.Add(uint8(len(bodiedOperations)-1), []byte(malformed[name]))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		b := bodiedOperations[int(which)%len(bodiedOperations)]
		tn.handle(t, b.method, b.target, string(body), tn.headers())
	})
}

// FuzzQuery: the same for queries.
func FuzzQuery(f *testing.F) {
	tn := newRuledTenant(f)
	paths := []string{"/v1/deposits", "/v1/credits", "/v1/features", "/v1/wallets", "/v1/application", "/v1/credits/gold", "/v1/openapi.json"}
	for i, query := range badListQueries(100) {
		f.Add(uint8(i), query)
	}
	f.Add(uint8(0), "identity="+ruledHolder+"&creditKey=gold&limit=3")
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		tn.handle(t, http.MethodGet, paths[int(which)%len(paths)]+"?"+query, "", tn.headers())
	})
}

// FuzzPath: the same for paths, and for methods.
func FuzzPath(f *testing.F) {
	tn := newRuledTenant(f)
	methods := []string{"GET", "PATCH", "POST", "DELETE", "OPTIONS", "PUT"}
	for _, path := range unknownPaths {
		f.Add(uint8(0), path)
		f.Add(uint8(1), path)
	}
	for path := range knownPaths {
		f.Add(uint8(3), path)
	}
	for _, identity := range oddIdentities() {
		f.Add(uint8(0), walletPath(identity))
		f.Add(uint8(1), walletPath(identity)+"/billing-period")
	}
	f.Fuzz(func(t *testing.T, which uint8, path string) {
		tn.handle(t, methods[int(which)%len(methods)], path, "{}", tn.headers())
	})
}

// FuzzHeaders: the same for the headers that are read.
func FuzzHeaders(f *testing.F) {
	tn := newRuledTenant(f)
	for _, authorization := range []string{"", "Bearer", "Bearer x", "Basic x", "Bearer " + strings.Repeat("a", 58), "Bearer pub_live_x", "Bearer psr_test_" + strings.Repeat("z", 49)} {
		f.Add(authorization, "application/json", "")
	}
	for _, media := range []string{"", "text/plain", "application/json; charset=utf-8", "application/json; charset", `application/json; a="`, "\xff"} {
		f.Add("key", media, "")
	}
	f.Add("key", "application/json", "gzip")
	f.Fuzz(func(t *testing.T, authorization, media, encoding string) {
		header := http.Header{"Authorization": {authorization}, "Content-Type": {media}, "Content-Encoding": {encoding}}
		if authorization == "key" {
			header.Set("Authorization", "Bearer "+tn.key)
		}
		tn.handle(t, http.MethodPost, "/v1/check", `{"identity":"a","feature":"chat"}`, header)
	})
}
