package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"purser/fault"
)

// badRequest is a request that no caller should send, and how it is refused.
type badRequest struct {
	name string
	request
	code fault.Code
}

// corpus is every bad request that the suite knows: what is wrong with a body as
// such, with each field, with queries, paths, media types, sizes and methods.
func corpus() (all []badRequest) {
	for _, b := range bodiedOperations {
		all = append(all, badBodies(b)...)
		all = append(all, badFields(b)...)
		all = append(all, badMembers(b)...)
		all = append(all, badMedia(b)...)
	}
	all = append(all, badQueries()...)
	all = append(all, badPaths()...)
	return append(all, badRoutes()...)
}

// malformed is no body for any operation.
var malformed = map[string]string{
	"nothing":                      ``,
	"white space":                  " \r\n\t",
	"null":                         `null`,
	"a number":                     `1`,
	"text":                         `"x"`,
	"true":                         `true`,
	"an array":                     `[]`,
	"an array of objects":          `[{}]`,
	"an unclosed object":           `{`,
	"an unclosed name":             `{"a`,
	"an unclosed value":            `{"a":"b`,
	"a name without a value":       `{"a"}`,
	"a missing value":              `{"a":}`,
	"a missing colon":              `{"a" 1}`,
	"a trailing comma":             `{"a":1,}`,
	"a leading comma":              `{,"a":1}`,
	"a missing comma":              `{"a":1 "b":2}`,
	"a name without quotes":        `{a:1}`,
	"single quotes":                `{'a':1}`,
	"a comment":                    `{/* a */}`,
	"a line comment":               "{} // a",
	"a closing bracket too many":   `{}}`,
	"another bracket":              `{]`,
	"two objects":                  `{}{}`,
	"two lines of objects":         "{}\n{}",
	"an object and text":           `{} x`,
	"an object and NUL":            "{}\x00",
	"a byte order mark":            "\xef\xbb\xbf{}",
	"UTF-16":                       "\xff\xfe{\x00}\x00",
	"broken UTF-8 in a name":       "{\"\xff\":1}",
	"broken UTF-8 outside":         "{}\xff",
	"an overlong slash":            "{\"a\":\"\xc0\xaf\"}",
	"NUL in a name":                `{"a\u0000":1}`,
	"a lone surrogate in a name":   `{"\ud800":1}`,
	"a control character":          "{\"a\":\"\x01\"}",
	"an empty name":                `{"":1}`,
	"a form":                       `identity=a&feature=b`,
	"XML":                          `<a/>`,
	"a deep array":                 `{"a":` + repeated("[", 5000) + repeated("]", 5000) + `}`,
	"a deep object":                repeated(`{"a":`, 2000) + `1` + repeated(`}`, 2000),
	"a deep array that never ends": repeated("[", 16000),
	"a deep object that does not":  repeated(`{"a":`, 3000),
	"many names":                   `{` + strings.TrimSuffix(manyNames(1000), ",") + `}`,
	"a long number":                `{"a":` + repeated("9", 16000) + `}`,
	"a long fraction":              `{"a":0.` + repeated("9", 16000) + `}`,
	"a long exponent":              `{"a":1e` + repeated("9", 16000) + `}`,
	"a long name":                  `{"` + repeated("a", 16000) + `":1}`,
	"prototype":                    `{"__proto__":{"a":1}}`,
}

func manyNames(n int) string {
	names := strings.Builder{}
	for i := range n {
		fmt.Fprintf(&names, `"n%d":%d,`, i, i)
	}
	return names.String()
}

func badBodies(b bodied) (all []badRequest) {
	for name, body := range malformed {
		all = append(all, badRequest{name, request{method: b.method, target: b.target, body: body}, fault.InvalidRequest})
	}
	return all
}

func badFields(b bodied) (all []badRequest) {
	for name, r := range b.rules {
		for _, value := range r.bad {
			bad := request{method: b.method, target: b.target, body: b.withRaw(name, value)}
			all = append(all, badRequest{fmt.Sprintf("%s = %.40s", name, value), bad, fault.InvalidRequest})
		}
	}
	return all
}

// badMembers have one member too few, too many, or twice.
func badMembers(b bodied) (all []badRequest) {
	add := func(name string, body any) {
		all = append(all, badRequest{name, request{method: b.method, target: b.target, body: body}, fault.InvalidRequest})
	}
	for _, name := range b.required {
		short := b.sample()
		delete(short, name)
		add("without "+name, short)
	}
	for _, unknown := range []string{"appId", "orgId", "app_id", "stranger", "id ", "toString", "createdAt", "revision", "😀"} {
		add("with "+unknown, merged(b.sample(), fields{unknown: "x"}))
		add("with "+unknown+" null", merged(b.sample(), fields{unknown: nil}))
	}
	for name, value := range b.sample() {
		add("with "+name+" in upper case", renamed(b.sample(), name, strings.ToUpper(name)))
		add("with "+name+" and its upper case", merged(b.sample(), fields{strings.ToUpper(name): value}))
		add("with "+name+" in snake case", renamed(b.sample(), name, name+"_"))
		again, err := json.Marshal(fields{name: value})
		if err != nil {
			panic(err)
		}
		twice := strings.TrimPrefix(string(again), "{")
		add("with "+name+" twice", strings.TrimSuffix(string(must(bodyText(b.sample()))), "}")+","+twice)
		escaped := fmt.Sprintf(`"\u%04x%s`, name[0], strings.TrimPrefix(twice, `"`+name[:1]))
		add("with "+name+" twice, once escaped", strings.TrimSuffix(string(must(bodyText(b.sample()))), "}")+","+escaped)
	}
	if b.required == nil && !b.mayBeEmpty {
		add("empty", fields{})
	}
	return all
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func renamed(object fields, from, to string) fields {
	object[to] = object[from]
	delete(object, from)
	return object
}

func badMedia(b bodied) (all []badRequest) {
	for _, media := range []string{
		"", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "application/json5",
		"application/jsonp", "application/*", "*/*", "json", "application/json; charset=latin1", "application/json; charset=utf-16", "application/json; charset",
		"application/json, text/plain", "application/ json", "application/merge-patch+json", "application/json;;", "\xff",
	} {
		bad := request{method: b.method, target: b.target, body: b.sample(), header: http.Header{"Content-Type": {media}}}
		all = append(all, badRequest{"as " + media, bad, fault.UnsupportedMedia})
	}
	for _, encoding := range []string{"gzip", "deflate", "br", "identity", "x"} {
		bad := request{method: b.method, target: b.target, body: b.sample(), header: http.Header{"Content-Encoding": {encoding}}}
		all = append(all, badRequest{"encoded by " + encoding, bad, fault.UnsupportedMedia})
	}
	without := request{method: b.method, target: b.target, body: b.sample(), header: http.Header{"Content-Type": nil}}
	large := request{method: b.method, target: b.target, body: string(must(bodyText(b.sample()))) + repeated(" ", largestBody(b))}
	chunked := large
	chunked.chunked = true
	queried := request{method: b.method, target: b.target + "?appId=x", body: b.sample()}
	return append(all,
		badRequest{"as nothing", without, fault.UnsupportedMedia}, badRequest{"too large", large, fault.BodyTooLarge},
		badRequest{"too large in pieces", chunked, fault.BodyTooLarge}, badRequest{"with a query", queried, fault.InvalidRequest})
}

const maxBody = 16384

// largestBody is the limit of the operation's body.
func largestBody(b bodied) int {
	switch b.id {
	case "trackBatch", "previewCatalog", "applyCatalog":
		return 1 << 20
	case "trackGroup":
		return 1 << 16
	}
	return maxBody
}

func badQueries() (all []badRequest) {
	for _, l := range listers {
		for _, query := range badListQueries(l.max) {
			all = append(all, badRequest{"a query", request{method: "GET", target: l.path + query}, fault.InvalidRequest})
		}
	}
	for _, target := range []string{"/v1/application", "/v1/credits/gold", "/v1/features/chat", "/v1/plans/pro", "/v1/wallets/" + ruledHolder} {
		for _, query := range []string{"limit=1", "cursor=A", "x", "appId=x", "=", "%zz", "a;b", "%00", "%FF=%FF"} {
			all = append(all, badRequest{"a query where there is none", request{method: "GET", target: target + "?" + query}, fault.InvalidRequest})
		}
	}
	for _, query := range []string{"", "identity=", "identity=%00", "identity=%FF", "identity=a&identity=b", "identity=" + repeated("a", 201), "creditKey=gold"} {
		all = append(all, badRequest{"a query", request{method: "GET", target: "/v1/deposits?" + query}, fault.InvalidRequest})
	}
	return all
}

func badPaths() (all []badRequest) {
	texts := []string{"%00", "a%00", "%FF", "%C3%28", "%ED%A0%80", "%80", "%C0%AF"}
	keys := append(slices.Clone(texts), "A", "-a", "_a", "a%20", "a.b", "a%2Fb", "%C3%A9", "a%0A", "a%25", "..", ".", "%2E%2E", repeated("a", 81), repeated("%61", 81), "{key}", ":key", "*")
	identities := append(slices.Clone(texts), repeated("a", 201), repeated("%F0%9F%98%80", 201), repeated("%2F", 201))
	for template, segments := range map[string][]string{
		"GET /v1/credits/": keys, "PATCH /v1/credits/": keys, "GET /v1/features/": keys, "PATCH /v1/features/": keys,
		"GET /v1/plans/": keys, "PATCH /v1/plans/": keys, "GET /v1/wallets/": identities,
	} {
		method, path, _ := strings.Cut(template, " ")
		for _, segment := range segments {
			bad := request{method: method, target: path + segment}
			if method == "PATCH" {
				bad.body = fields{"name": "x"}
			}
			all = append(all, badRequest{"a path", bad, fault.InvalidRequest})
		}
	}
	for _, segment := range identities {
		bad := request{method: "PATCH", target: "/v1/wallets/" + segment + "/billing-period", body: period("day", 0)}
		all = append(all, badRequest{"a path", bad, fault.InvalidRequest})
	}
	return all
}

func badRoutes() (all []badRequest) {
	for _, target := range unknownPaths {
		for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"} {
			all = append(all, badRequest{"an unknown path", request{method: method, target: target}, fault.PathNotFound})
		}
	}
	for target, allowed := range knownPaths {
		for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW", "get"} {
			if !slices.Contains(strings.Split(allowed, ", "), method) {
				all = append(all, badRequest{"an unknown method", request{method: method, target: target}, fault.MethodNotAllowed})
			}
		}
	}
	return all
}

// TestCorpus: a bad request is refused as the catalogue says, never with a 5xx,
// and changes nothing.
func TestCorpus(t *testing.T) {
	t.Parallel()
	tn := newRuledTenant(t)
	before := tn.everything()
	all := corpus()
	if len(all) < 2000 {
		t.Errorf("there are only %d bad requests", len(all))
	}
	refusals := map[fault.Code]int{}
	for _, bad := range all {
		got := tn.send(bad.request)
		code, _ := got.object()["error"].(string)
		if code != string(bad.code) {
			t.Errorf("%s %s %s: got %d %s, want %s\nbody %.200v\n%s", bad.name, bad.method, bad.target, got.status, code, bad.code, bad.body, got.body)
		}
		refusals[bad.code]++
	}
	if after := tn.everything(); !maps.Equal(before, after) {
		t.Errorf("the application was changed:\n%v\n%v", before, after)
	}
	t.Logf("%d bad requests: %v", len(all), refusals)
}

// everything is all that the application shows.
func (tn *tenant) everything() map[string]string {
	tn.t.Helper()
	all := map[string]string{}
	for _, target := range []string{"/v1/credits?limit=100", "/v1/features?limit=100", "/v1/plans?limit=100", "/v1/wallets?limit=25", "/v1/deposits?identity=" + ruledHolder} {
		all[target] = string(tn.get(target).is(200).body)
	}
	return all
}
