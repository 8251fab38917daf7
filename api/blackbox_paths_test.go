package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func repeated(text string, n int) string { return strings.Repeat(text, n) }

// oddIdentities are all distinct, and many become another one when they are
// decoded once more, cleaned as a path, or folded.
func oddIdentities() []string {
	return []string{
		"a/b", "a%2Fb", "a%252Fb", "a\\b", "/", "//", "/a", "a/", "a//b", "../a", "a/..", "./a",
		".", "..", "...", "%", "%%", "%25", "%2525", "%2e", "%2E%2E", "%2F", "%zz", "100%", "100%25",
		" ", "  ", " a", "a ", "a b", "a+b", "a%20b", "a\tb", "a\nb", "\u00a0", "\u200b",
		"?", "a?b", "a?b=c", "#", "a#b", "&", "a&b=c", "=", ";", "a;b=c", ":", "@", "user@example.com", "User@example.com",
		"*", "{identity}", ":identity", "billing-period", "a/billing-period", "null", "undefined", "0", "-1",
		"é", "e\u0301", "E\u0301", "É", "ß", "SS", "ss", "İ", "ı", "K", "\u212a",
		"😀", "👩\u200d🚀", "👩🚀", "שלום", "\u202eabc", "\ufeff", "\ufffd", "\U0010ffff", "\u0001", "\u007f", "\u0085", "\u2028",
		`"`, "'", "''", "`", "<script>", "$1", "a,b", "{a,b}", "(a)", "\\", "\\u0000", "\\x00",
		strings.Repeat("😀", 200), strings.Repeat("e\u0301", 100), strings.Repeat("%", 200), strings.Repeat("/", 200), strings.Repeat("a", 200),
	}
}

func TestIdentitiesInPaths(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	made := map[string]any{}
	for _, identity := range oddIdentities() {
		wallet := tn.post("/v1/wallets", fields{"identity": identity}).is(201).shows(fields{"identity": identity})
		made[identity] = wallet.object()["id"]
	}

	t.Run("are read as they were made, however they are encoded", func(t *testing.T) {
		for identity, id := range made {
			for _, path := range []string{walletPath(identity), "/v1/wallets/" + encodeAll(identity, "%%%02X"), "/v1/wallets/" + encodeAll(identity, "%%%02x")} {
				tn.in(t).get(path).is(200).shows(fields{"identity": identity, "id": id})
			}
		}
	})
	t.Run("are found where they stand in the middle", func(t *testing.T) {
		anchor := int64(0)
		for identity, id := range made {
			anchor++
			want := fields{"identity": identity, "id": id, "billingPeriod": fields{"interval": "day", "anchor": anchor}}
			tn.in(t).patch(walletPath(identity)+"/billing-period", period("day", anchor)).is(200).shows(want)
			tn.in(t).get(walletPath(identity)).is(200).shows(want)
		}
	})
	t.Run("are decoded exactly once", func(t *testing.T) {
		for identity := range made {
			twice := url.PathEscape(url.PathEscape(identity))
			once := url.PathEscape(identity)
			if len([]rune(once)) > 200 {
				tn.in(t).get("/v1/wallets/" + twice).refused("invalid_request")
				continue
			}
			got := tn.in(t).get("/v1/wallets/" + twice)
			if id, exists := made[once]; exists {
				got.is(200).shows(fields{"identity": once, "id": id})
			} else {
				got.refused("wallet_not_found")
			}
		}
	})
	t.Run("are not cleaned, folded or split", func(t *testing.T) {
		for _, absent := range []string{"a/../a/b", "a/b/", "A/B", "a%2fb", "b", "a", "user@EXAMPLE.com", " a ", "e", "\u0301"} {
			tn.in(t).get(walletPath(absent)).refused("wallet_not_found")
		}
	})
	t.Run("may stand in the path without need of encoding", func(t *testing.T) {
		for _, raw := range []string{".", "..", "...", "a+b", "*", ":", "@", ":identity", "user@example.com", "'", "a;b=c", "=", "&", "-1", "$1"} {
			tn.in(t).get("/v1/wallets/" + raw).is(200).shows(fields{"identity": raw})
		}
	})
	t.Run("may be sent half encoded", func(t *testing.T) {
		for raw, identity := range map[string]string{
			"é%2Fb": "é/b", "é%252Fb": "é%2Fb", "é%2E%2E": "é..", "é%3Fb": "é?b", "😀": "😀", `"%2F`: `"/`, "{a}%2F|": "{a}/|", "é%2Fbilling-period": "é/billing-period",
		} {
			tn.post("/v1/wallets", fields{"identity": identity})
			tn.in(t).get("/v1/wallets/" + raw).is(200).shows(fields{"identity": identity})
			tn.in(t).patch("/v1/wallets/"+raw+"/billing-period", period("day", 0)).is(200).shows(fields{"identity": identity})
		}
		tn.in(t).patch("/v1/wallets/é%2Fbilling-period", period("day", 0)).refused("method_not_allowed")
	})
	t.Run("are never split by a slash that was sent as one", func(t *testing.T) {
		for _, path := range []string{"/v1/wallets/a/b", "/v1/wallets//", "/v1/wallets//a", "/v1/wallets/a/", "/v1/wallets/../a", "/v1/wallets/a/.."} {
			tn.in(t).get(path).refused("not_found")
		}
	})
	t.Run("are refused when they are no text, or too long", func(t *testing.T) {
		for _, path := range []string{
			"%00", "a%00b", "%FF", "%C3", "%C3%28", "%ED%A0%80", "%C0%80", "%F4%90%80%80", "%80",
			repeated("a", 201), repeated("%F0%9F%98%80", 201), repeated("%2F", 201), repeated("e%CC%81", 100) + "e",
		} {
			tn.in(t).get("/v1/wallets/" + path).refused("invalid_request")
			tn.in(t).patch("/v1/wallets/"+path+"/billing-period", period("day", 0)).refused("invalid_request")
		}
	})
}

// encodeAll writes every byte as a percent and two digits.
func encodeAll(text, format string) string {
	encoded := strings.Builder{}
	for i := range len(text) {
		fmt.Fprintf(&encoded, format, text[i])
	}
	return encoded.String()
}
