package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"purser/keys"
)

// padded is a body of exactly so many bytes that makes a wallet.
func padded(size int) string {
	body := fmt.Sprintf(`{"identity":%q}`, newHolder())
	return body[:1] + strings.Repeat(" ", size-len(body)) + body[1:]
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	for name, chunked := range map[string]bool{"with its length": false, "in pieces": true} {
		send := func(t *testing.T, size int) answer {
			return tn.in(t).send(request{method: "POST", target: "/v1/wallets", body: padded(size), chunked: chunked})
		}
		t.Run("16,384 bytes "+name+" are taken", func(t *testing.T) { send(t, 16384).is(201) })
		t.Run("16,385 bytes "+name+" are not", func(t *testing.T) { send(t, 16385).refused("body_too_large") })
		t.Run("100,000 bytes "+name+" are not", func(t *testing.T) { send(t, 100_000).refused("body_too_large") })
	}
	t.Run("the same holds for usage", func(t *testing.T) {
		long := string(must(bodyText(fields{"id": newName(), "identity": newHolder(), "feature": "none"})))
		fill := func(size int) string { return long + strings.Repeat("\n", size-len(long)) }
		tn.in(t).post("/v1/events", fill(16384)).refused("feature_not_found")
		tn.in(t).post("/v1/events", fill(16385)).refused("body_too_large")
	})
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	send := func(t *testing.T, header http.Header) answer {
		return tn.in(t).send(request{method: "POST", target: "/v1/wallets", body: fields{"identity": newHolder()}, header: header})
	}
	t.Run("JSON is taken, in UTF-8 or unsaid", func(t *testing.T) {
		for _, media := range []string{
			"application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8",
			`application/json; charset="utf-8"`, "application/json; version=1", " application/json ",
		} {
			send(t, http.Header{"Content-Type": {media}}).is(201)
		}
	})
	t.Run("nothing else is", func(t *testing.T) {
		send(t, http.Header{"Content-Type": nil}).refused("unsupported_media_type")
		for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=iso-8859-1", "application/jsonx", "application/json/x"} {
			send(t, http.Header{"Content-Type": {media}}).refused("unsupported_media_type")
		}
		for _, encoding := range []string{"gzip", "GZIP", "br", "deflate"} {
			send(t, http.Header{"Content-Encoding": {encoding}}).refused("unsupported_media_type")
		}
	})
	t.Run("a body of the wrong kind is refused before it is measured or read", func(t *testing.T) {
		tn.in(t).send(request{method: "POST", target: "/v1/wallets", body: padded(20000), header: http.Header{"Content-Type": {"text/plain"}}}).
			refused("unsupported_media_type")
	})
	t.Run("a request without a body needs no type, and a GET may have any", func(t *testing.T) {
		tn.in(t).send(request{method: "GET", target: "/v1/credits", header: http.Header{"Content-Type": {"text/plain"}}}).is(200)
		tn.in(t).send(request{method: "GET", target: "/v1/credits", body: "{}"}).is(200)
		tn.in(t).send(request{method: "POST", target: "/v1/wallets"}).refused("unsupported_media_type")
	})
}

func TestAuthorizationHeader(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	send := func(t *testing.T, values ...string) answer {
		return tn.in(t).send(request{method: "GET", target: "/v1/credits", header: http.Header{"Authorization": values}})
	}
	t.Run("is read as RFC 6750 has it", func(t *testing.T) {
		for _, value := range []string{"Bearer " + tn.key, "bearer " + tn.key, "BEARER " + tn.key, "Bearer   " + tn.key} {
			send(t, value).is(200)
		}
	})
	t.Run("is missing in any other scheme", func(t *testing.T) {
		for _, value := range []string{"", "Bearer", "Bearer ", "Basic " + tn.key, tn.key, "Token " + tn.key, "Bearer:" + tn.key, "Bearer\t" + tn.key} {
			got := send(t, value).refused("missing_api_key")
			if scheme := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(scheme, "Bearer") {
				t.Errorf("the answer asks for %q", scheme)
			}
		}
	})
	t.Run("is invalid with anything but a whole key", func(t *testing.T) {
		swapped := strings.Replace(tn.key, "psr_test_", "psr_live_", 1)
		for _, key := range []string{
			"x", tn.key[1:], tn.key[:len(tn.key)-1], tn.key + "x", tn.key + " " + tn.key, tn.key + "," + tn.key, `"` + tn.key + `"`, strings.ToUpper(tn.key), swapped,
			strings.Repeat("a", 8000), "null", "psr_test_", "😀",
		} {
			send(t, "Bearer "+key).refused("invalid_api_key")
		}
	})
	t.Run("is missing when there are two", func(t *testing.T) {
		send(t, "Bearer "+tn.key, "Bearer "+tn.key).refused("missing_api_key")
		send(t, "Bearer "+tn.key, "Bearer x").refused("missing_api_key")
	})
	t.Run("is of an unsupported kind with a publishable key", func(t *testing.T) {
		for _, key := range []string{"pub_live_x", "pub_test_" + tn.key[9:], "pub_test_"} {
			send(t, "Bearer "+key).refused("unsupported_key_kind")
		}
	})
	t.Run("is not looked for in the query or the body", func(t *testing.T) {
		anonymous := tn.in(t).with("")
		anonymous.get("/v1/credits?key=" + tn.key).refused("missing_api_key")
		anonymous.post("/v1/wallets", fields{"identity": newHolder(), "apiKey": tn.key}).refused("missing_api_key")
	})
}

// TestGatesComeInOrder: a request that is wrong in several ways is told the
// first, and a caller without the right key learns nothing about its request.
func TestGatesComeInOrder(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	reader := tn.newKey(keys.Spec{Preset: keys.ReadOnly}).secret
	revoked := tn.newKey(keys.Spec{Preset: keys.Setup})
	tn.revoke(revoked)
	for _, path := range []string{"/v1/wallets", "/v1/events", "/v1/check", "/v1/deposits"} {
		for name, bad := range map[string]request{
			"JSON":  {body: "{"},
			"media": {body: "{}", header: http.Header{"Content-Type": {"text/plain"}}},
			"size":  {body: strings.Repeat(" ", 20000)},
			"query": {body: "{}", target: "?x=1"},
		} {
			t.Run(path+" with bad "+name, func(t *testing.T) {
				bad.method, bad.target = "POST", path+bad.target
				c := tn.in(t)
				c.with("").send(bad).refused("missing_api_key")
				c.with(mintSecret(t).Reveal()).send(bad).refused("invalid_api_key")
				c.with(revoked.secret).send(bad).refused("revoked_api_key")
				c.with(reader).send(bad).refused("permission_denied")
				if status := c.send(bad).status; status != 400 && status != 413 && status != 415 {
					t.Errorf("with a good key: %d", status)
				}
			})
		}
	}
}
