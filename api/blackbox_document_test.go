package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"purser/api"
)

func TestTheServedDocument(t *testing.T) {
	t.Parallel()
	node := limitedNode(t, api.Options{BaseURL: "https://billing.example.com"})
	c := client{t: t, node: node}
	ask := func(header http.Header) answer {
		t.Helper()
		got, err := node.exchange(request{method: http.MethodGet, target: "/v1/openapi.json", header: header})
		if err != nil {
			t.Fatal(err)
		}
		got.t = t
		return got
	}
	plain := c.get("/v1/openapi.json").is(200)
	etag := plain.header.Get("ETag")

	t.Run("names the server's public address", func(t *testing.T) {
		var read struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal(plain.body, &read); err != nil || len(read.Servers) != 1 || read.Servers[0].URL != "https://billing.example.com" {
			t.Errorf("%v %v", read, err)
		}
	})
	t.Run("is not sent again to a caller that has it", func(t *testing.T) {
		for _, tags := range []string{etag, `"x", ` + etag, etag[2:], "*"} {
			got := ask(http.Header{"If-None-Match": {tags}}).is(304)
			if len(got.body) > 0 || got.header.Get("ETag") != etag {
				t.Errorf("%s: %d bytes, %v", tags, len(got.body), got.header)
			}
		}
		for _, tags := range []string{"", "x", `"x"`} {
			ask(http.Header{"If-None-Match": {tags}}).is(200)
		}
		if other := (client{t: t, node: sharedNode(t)}).get("/v1/openapi.json").header.Get("ETag"); other == etag {
			t.Error("another document has the same tag")
		}
	})
	t.Run("is compressed for who can read that", func(t *testing.T) {
		for accepted, packed := range map[string]bool{
			"gzip": true, "deflate, gzip;q=0.5": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false, "br": false, "": false,
		} {
			got := ask(http.Header{"Accept-Encoding": {accepted}}).is(200)
			if (got.header.Get("Content-Encoding") == "gzip") != packed || got.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q is answered with %v", accepted, got.header)
			}
			if !packed {
				continue
			}
			reader, err := gzip.NewReader(bytes.NewReader(got.body))
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(reader); err != nil || !bytes.Equal(text, plain.body) || len(got.body) > len(text)/4 {
				t.Errorf("%d bytes packed, %d read, %v", len(got.body), len(text), err)
			}
		}
	})
	t.Run("may be read by pages of any origin, and nothing else may", func(t *testing.T) {
		if got := plain.header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("allowed is %q", got)
		}
		if got := newTenant(t).get("/v1/application").header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("another operation allows %q", got)
		}
	})
}
