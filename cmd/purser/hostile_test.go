package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/api"
	"purser/ids"
	"purser/payments/sandbox"
	"purser/store/storetest"
)

// hostileSeed makes the requests of the suite; `make attack` draws many more.
const hostileSeed = 20261115

// TestHostileRequestsAreNoServerError sends requests that no honest client sends to
// every route: broken framing, paths, headers, encodings and bodies, with and without
// credentials.
func TestHostileRequestsAreNoServerError(t *testing.T) {
	t.Parallel()
	p := startProduct(t)
	h := newAttacker(t, p)
	h.attack(t, hostileSeed, 500)
	lines := slices.DeleteFunc(loggedErrors(p.log.String()), func(line string) bool { return strings.Contains(line, `"msg":"not ready"`) }) // a slow probe
	if len(lines) > 0 {
		t.Errorf("the server logged %d errors, the first is %s", len(lines), lines[0])
	}
}

// loggedErrors is the lines at level ERROR, and those of a panic.
func loggedErrors(log string) (lines []string) {
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, "panic") {
			lines = append(lines, line)
		}
	}
	return lines
}

// attacker draws requests to a server.
type attacker struct {
	address string
	app     string // that the keys belong to
	routes  []hostileRoute
	bodies  []string // JSON that the interface takes
	keys    []string // that work: of the API and of the sandbox
	cookie  string   // of an owner's session
	names   []string // that mean something in a path
}

type hostileRoute struct{ method, path string }

func newAttacker(t *testing.T, p product) *attacker {
	t.Helper()
	made := p.newKey(t, "--org", "Hostile", "--app", "Target", "--preset", "setup")
	h := &attacker{
		address: strings.TrimPrefix(p.base, "http://"), app: made.AppID, keys: []string{made.Secret},
		names: []string{"hostile", "target", "tokens", "chat", "pro", "a", made.AppID, made.KeyID, "con_01h455vb4pex5vsknk084sn02q", "wal_01h455vb4pex5vsknk084sn02q"},
	}
	app, err := ids.Parse(ids.Application, made.AppID)
	if err != nil {
		t.Fatal(err)
	}
	var bank *sandbox.Server
	h.routes, bank = servedRoutes(t)
	h.keys = append(h.keys, bank.Key(app))
	h.bodies = exampleBodies(t)
	h.cookie = p.signUp(t)
	for _, step := range [][2]string{
		{"credits", `{"key":"tokens","name":"Tokens","unit":"token"}`},
		{"features", `{"key":"chat","name":"Chat","unit":"message","creditKey":"tokens","costNanocredits":"1"}`},
		{"deposits", `{"identity":"a","creditKey":"tokens","amountNanocredits":"1000000","idempotencyKey":"a"}`},
	} {
		if got := status(t, http.MethodPost, p.base+"/v1/"+step[0], made.Secret, step[1]); got != http.StatusCreated {
			t.Fatalf("%s answers %d", step[0], got)
		}
	}
	return h
}

// servedRoutes lists all that is mounted on a server, and the sandbox's surface.
func servedRoutes(t *testing.T) (routes []hostileRoute, bank *sandbox.Server) {
	t.Helper()
	c := config{baseURL: "http://purser.test", secretKey: strings.Repeat("k", minSecretKey), maxConnections: 10}
	db := &database{Store: storetest.Open(t)}
	log := slog.New(slog.DiscardHandler)
	seals, err := secret(c.secretKey).vault("")
	if err != nil {
		t.Fatal(err)
	}
	payments, err := newPayments(c, db.Store, seals, secret(c.secretKey), newMetrics(), log)
	if err != nil {
		t.Fatal(err)
	}
	site := newSite(c, db, nil, seals, payments, nil, nil, log)
	lines := newLogWriter(io.Discard, slog.LevelError, newRequestLog(0, 0))
	defer lines.close()
	app, _, err := newApp(c, db, nil, newMetrics(), secret(c.secretKey), site, payments, lines)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range app.Routes() {
		if strings.HasPrefix(r.Path, "/") {
			routes = append(routes, hostileRoute{r.Method, r.Path})
		}
	}
	// Behind the sandbox's own mux.
	for _, path := range []string{
		"products", "products/:id", "prices", "prices/:id", "customers", "customers/search", "customers/:id", "checkout/sessions", "checkout/sessions/:id",
		"checkout/sessions/:id/expire", "subscriptions", "subscriptions/:id", "subscription_schedules", "subscription_schedules/:id/release", "invoices", "invoices/upcoming",
		"invoices/:id/lines", "invoices/:id/pay", "payment_methods/:id", "payment_intents/:id", "charges/:id", "refunds", "disputes/:id", "events", "billing_portal/sessions",
		"billing_portal/configurations", "account", "webhook_endpoints", "test_helpers/test_clocks", "test_helpers/test_clocks/:id/advance",
	} {
		routes = append(routes, hostileRoute{http.MethodGet, "/sandbox/stripe/v1/" + path}, hostileRoute{http.MethodPost, "/sandbox/stripe/v1/" + path})
	}
	for _, path := range []string{"clock", "refunds", "disputes", "webhooks", "checkout/:id", "authenticate/:id", "invoice/:id", "portal/:id"} {
		routes = append(routes, hostileRoute{http.MethodGet, "/sandbox/apps/:target/" + path}, hostileRoute{http.MethodPost, "/sandbox/apps/:target/" + path})
	}
	slices.SortFunc(routes, func(a, b hostileRoute) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method))
	})
	return slices.Compact(routes), payments.sandbox
}

// exampleBodies is the bodies that the document shows.
func exampleBodies(t *testing.T) (bodies []string) {
	t.Helper()
	root, err := api.Document()
	if err != nil {
		t.Fatal(err)
	}
	document, err := root.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	for _, methods := range read.Paths {
		for _, operation := range methods {
			if example := operation.RequestBody.Content["application/json"].Example; example != nil {
				bodies = append(bodies, string(example))
			}
		}
	}
	slices.Sort(bodies)
	return bodies
}

// signUp makes the first account and gives the cookie of its session.
func (p product) signUp(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(p.greeting, "/setup/")
	link, _, _ := strings.Cut(rest, "\n")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	response, err := client.PostForm(p.base+"/setup/"+strings.TrimSpace(link), url.Values{
		"name": {"Ann"}, "email": {ownerEmail}, "password": {ownerPassword}, "repeat": {ownerPassword}, "organization": {"Acme"}, "application": {"Chat"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	base, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	var cookies []string // of the session and of the browser
	for _, c := range jar.Cookies(base) {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	if response.StatusCode != http.StatusOK || len(cookies) == 0 {
		t.Fatalf("signing up answers %s with %d cookies", response.Status, len(cookies))
	}
	return strings.Join(cookies, "; ")
}

// attack sends requests over raw connections, some at once, and fails for each that
// is answered with a server error.
func (h *attacker) attack(t *testing.T, seed uint64, count int) {
	t.Helper()
	var all sync.WaitGroup
	next := make(chan int)
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 8 {
		all.Go(func() {
			for i := range next {
				sent := h.draw(rand.New(rand.NewPCG(seed, uint64(i))))
				got, err := h.send(sent)
				if err != nil {
					t.Errorf("request %d: %v\n%.600q", i, err, sent.text)
				}
				mu.Lock()
				for _, status := range got {
					statuses[status]++
					// Readiness is refused when its probe takes more than two seconds.
					slow := status == http.StatusServiceUnavailable && bytes.Contains(sent.text, []byte("/readyz"))
					// net/http has no words for some encodings and versions; the rest is ours.
					if status >= 500 && !slow && status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported {
						t.Errorf("request %d is answered %d\n%.600q", i, status, sent.text)
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	all.Wait()
	t.Logf("%d requests are answered with %v", count, statuses)
	if statuses[http.StatusOK] == 0 || statuses[http.StatusBadRequest] == 0 || statuses[http.StatusNotFound] == 0 {
		t.Error("too few kinds of answers: the requests do not reach the server's handlers")
	}
}

// hostileRequest is the bytes of one or several requests.
type hostileRequest struct {
	text []byte
	// whole requests ask the server to close the connection; after others the sender
	// closes its side, or the server would wait for more.
	whole bool
}

// send gives the statuses of all answers on one connection.
func (h *attacker) send(r hostileRequest) (statuses []int, err error) {
	c, err := net.Dial("tcp", h.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	written := make(chan struct{})
	go func() { // the server may answer and close before it has read everything
		defer close(written)
		_, _ = c.Write(r.text)
		if !r.whole {
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	defer func() { <-written }()
	answers := bufio.NewReader(c)
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return statuses, fmt.Errorf("no answer in %s", patience)
			}
			return statuses, nil
		}
		// Bodies are skipped over: none of ours begins a line so.
		var status int
		if n, _ := fmt.Sscanf(line, "HTTP/1.1 %d ", &status); n == 1 {
			statuses = append(statuses, status)
		}
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

var (
	oddMethods  = []string{"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PRI", "G\x00T", "", "M-SEARCH", strings.Repeat("A", 300), "POST\t"}
	oddSegments = []string{
		"%00", "%2F", "%2f%2e%2e%2f", "..", ".", "%ff", "%C3%28", "%zz", "%", "é", "🔑", "a b", "'--", "\"", "<script>", "%0d%0aX:1", "\\", ";a=b", "*", "{org}", "-1", "0",
		"9999999999999999999999", "con_", "con_ILOU", strings.Repeat("x", 201), strings.Repeat("%F0%9F%94%91", 300), strings.Repeat("a/", 200), "\xff\xfe", "null", "~", "%252F",
	}
	oddQueries = []string{
		"?", "?limit=0", "?limit=-1", "?limit=1e9", "?limit=9223372036854775808", "?cursor=%ff", "?cursor=" + strings.Repeat("A", 5000), "?cursor=AAAA", "?identity=%00",
		"?identity=a&identity=b", "?a=%zz", "?a;b", "?q=%ff%fe&live=1", "?from=9999999999999&to=-1", "?from=2026-02-30", "?page=-1&sort=%27", "?%00=%00", "?=&&==", "#x",
		"?identity=a&limit=10&cursor=x", "?before=txn_x&after=txn_y", "?feature=%F0%28%8C%BC", "?since=1e400",
	}
	oddHeaders = []string{
		"Accept: \xff", "Accept-Encoding: gzip;q=\xff, br", "Accept-Language: " + strings.Repeat("de,", 2000), "Range: bytes=0-0,1-1,-5,99999999999999999999-", "Range: bytes=-",
		"If-None-Match: *", "If-None-Match: \"x\", W/\"y", "If-Modified-Since: never", "If-Range: \xff", "Origin: null", "Origin: http://evil.test", "Sec-Fetch-Site: cross-site",
		"Sec-Fetch-Site: same-origin", "HX-Request: true", "HX-Target: \xff", "Referer: http://[::1", "X-Forwarded-For: \xff, 1.2.3.4, ::ffff:1.2.3.4%eth0", "X-Forwarded-Proto: \xff",
		"Forwarded: for=\"_x\"", "Traceparent: 00-" + strings.Repeat("0", 32) + "-" + strings.Repeat("0", 16) + "-00", "Idempotency-Key: \xff", "Idempotency-Key: ", "Stripe-Signature: t=1,v1=\xff",
		"Stripe-Signature: t=99999999999999999999,v1=00", "Stripe-Version: \xff", "Stripe-Account: acct_x", "Expect: 100-continue", "Expect: \xff", "Upgrade: h2c", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x",
		"HTTP2-Settings: AAMAAABkAAQAAP__", "Connection: keep-alive, Content-Length", "Cookie: " + strings.Repeat("a=b; ", 500), "Cookie: purser=\xff; =; ;;", "X-Http-Method-Override: DELETE",
		"X-Request-Id: \xff", "User-Agent: \xff", "User-Agent: " + strings.Repeat("x", 4000), "X-Odd: " + strings.Repeat("x", 40<<10), " folded: x", "X\x00: y", "X: \x01", "No colon", ": empty", "Content-Length: -1",
		"Content-Length: 1, 2", "Content-Length: 99999999999999999999", "Transfer-Encoding: gzip", "Transfer-Encoding: identity", "Host: a\r\nHost: b", "Content-Encoding: gzip", "Content-Encoding: \xff", "Te: trailers", "Trailer: Content-Length",
	}
	oddTypes = []string{
		"application/json", "application/json; charset=utf-8", "application/json; charset=\xff", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data", "text/plain", "", "\xff", "application/json, text/plain",
	}
	oddValues = []string{
		"null", "true", `""`, `"\u0000"`, `"\ud800"`, `"` + strings.Repeat("x", 201) + `"`, "-1", "0", "1.5", "1e400", "9223372036854775808", "-0", "[]", "{}", strings.Repeat("[", 100), `"9999999999999999999"`, `"-1"`, `"é"`, `"\"><script>"`,
		"253402300800000", `{"interval":"month","anchor":-1}`, `[{"featureKey":"chat","limit":-1}]`, `[[[]]]`, "NaN", "'x'", "\xff", `"http://[::1"`, `"javascript:1"`, `"https://a.test/{X}"`,
	}
	oddForms = []string{
		"a=b", "name=%ff&email=%00", "email=x%40example.com&password=" + strings.Repeat("p", 300), "%zz=%zz", strings.Repeat("a=b&", 2000), "card=4242424242424242&action=pay", "card=\xff", "seconds=99999999999999999999", "=&=&",
		"key=tokens&name=&unit=", "amount=1e99&credit=tokens&reason=%00", "expand[]=x&limit=-1&metadata[a][b]=c", "line_items[0][price]=x&mode=%ff", "items[99999999]=1", "a[b[c]]]=1", "created[gte]=x&starting_after=%ff",
		"role=owner&email=%F0%28", "code=000000", "preset=setup&name=" + strings.Repeat("n", 500), "permissions=credits%3Aread&permissions=%ff&expires=-1",
	}
	oddVersions = []string{"HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "FTP/1.1", "HTTP/1.1 ", ""}
)

// draw makes one request, or several on one connection.
func (h *attacker) draw(r *rand.Rand) hostileRequest {
	switch r.IntN(20) {
	case 0:
		return h.smuggled(r)
	case 1: // cut anywhere
		text := h.one(r, false)
		return hostileRequest{text: text[:r.IntN(len(text)+1)]}
	case 2: // bytes changed anywhere
		text := h.one(r, false)
		for range 1 + r.IntN(5) {
			text[r.IntN(len(text))] = byte(r.IntN(256))
		}
		return hostileRequest{text: text}
	case 3: // pipelined, and then closed
		return hostileRequest{text: bytes.Join([][]byte{h.one(r, false), h.one(r, false), h.one(r, false)}, nil)}
	case 4: // noise
		text := make([]byte, r.IntN(400))
		for i := range text {
			text[i] = byte(r.IntN(256))
		}
		return hostileRequest{text: text}
	}
	return hostileRequest{text: h.one(r, true), whole: true}
}

// one is a request with sound framing, and anything in it.
func (h *attacker) one(r *rand.Rand, last bool) []byte {
	route := pick(r, h.routes)
	method := route.method
	if chance(r, 10) {
		method = pick(r, oddMethods[:9])
	} else if !last && chance(r, 10) {
		method = pick(r, oddMethods)
	}
	version := "HTTP/1.1"
	if !last && chance(r, 5) {
		version = pick(r, oddVersions)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s %s\r\nHost: %s\r\n", method, h.target(r, route.path), version, h.address)
	h.credentials(r, &out)
	for range r.IntN(3) {
		header := pick(r, oddHeaders)
		// What breaks the framing would leave the server waiting.
		name, _, _ := strings.Cut(header, ":")
		if last && slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Expect", "Upgrade", "Connection"}, name) {
			continue
		}
		out.WriteString(header + "\r\n")
	}
	if last {
		out.WriteString("Connection: close\r\n")
	}
	body, media := h.body(r)
	if method == "GET" || method == "HEAD" {
		if !chance(r, 5) {
			body = nil
		}
	}
	if media != "" {
		fmt.Fprintf(&out, "Content-Type: %s\r\n", media)
	}
	if body != nil && chance(r, 15) {
		out.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			n := min(len(body), 1+r.IntN(4096))
			fmt.Fprintf(&out, "%x;x=y\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		out.WriteString("0\r\n\r\n")
		return out.Bytes()
	}
	if body != nil || method != "GET" {
		fmt.Fprintf(&out, "Content-Length: %d\r\n", len(body))
	}
	fmt.Fprintf(&out, "\r\n%s", body)
	return out.Bytes()
}

// target fills in the parameters of a path, and sometimes bends it.
func (h *attacker) target(r *rand.Rand, path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, ":") && part != "*" {
			continue
		}
		parts[i] = pick(r, h.names)
		switch {
		case part == ":org" && chance(r, 80):
			parts[i] = "acme"
		case part == ":app" && chance(r, 80):
			parts[i] = "chat"
		case part == ":target" && chance(r, 80):
			parts[i] = h.app
		case chance(r, 50):
			parts[i] = pick(r, oddSegments)
		}
	}
	target := strings.ReplaceAll(strings.Join(parts, "/"), " ", "%20")
	switch r.IntN(30) {
	case 0:
		target = "http://evil.test" + target
	case 1:
		target = "/" + target
	case 2:
		target += "/"
	case 3:
		target = strings.ToUpper(target)
	case 4:
		target = strings.Replace(target, "/", "/%2e/", 1)
	case 5:
		target = "*"
	case 6:
		target += strings.Repeat("/x", 1000)
	}
	if chance(r, 25) {
		target += pick(r, oddQueries)
	}
	return target
}

func (h *attacker) credentials(r *rand.Rand, out *bytes.Buffer) {
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		fmt.Fprintf(out, "Authorization: Bearer %s\r\n", pick(r, h.keys))
	case 4:
		out.WriteString(pick(r, []string{
			"Authorization: Bearer \xff", "Authorization: Bearer", "Authorization: Basic c2tfdGVzdF86", "Authorization: Bearer psr_test_" + strings.Repeat("a", 40), "Authorization: Bearer sk_test_\xff", "Authorization: Bearer pub_live_x",
			"Authorization: Bearer " + h.keys[0] + "x", "Authorization: bearer  " + h.keys[0], "Authorization: Bearer a\r\nAuthorization: Bearer b", "Authorization: " + strings.Repeat("B", 9000),
		}) + "\r\n")
	}
	if chance(r, 50) {
		fmt.Fprintf(out, "Cookie: %s\r\n", h.cookie)
	}
}

// body is JSON of the interface with a value replaced, a form, or bytes, and a media
// type that most often fits.
func (h *attacker) body(r *rand.Rand) (body []byte, media string) {
	switch r.IntN(10) {
	case 0:
		return nil, ""
	case 1, 2, 3, 4:
		body, media = []byte(pick(r, h.bodies)), "application/json"
		var object map[string]json.RawMessage
		if err := json.Unmarshal(body, &object); err == nil && chance(r, 80) {
			names := make([]string, 0, len(object))
			for name := range object {
				names = append(names, name)
			}
			slices.Sort(names)
			body = slices.Concat([]byte(`{"`+pick(r, names)+`":`+pick(r, oddValues)+`,`), body[1:])
			if chance(r, 70) { // once, and not twice
				name := pick(r, names)
				var out bytes.Buffer
				out.WriteString("{")
				for i, each := range names {
					if i > 0 {
						out.WriteString(",")
					}
					value := string(object[each])
					if each == name {
						value = pick(r, oddValues)
					}
					fmt.Fprintf(&out, "%q:%s", each, value)
				}
				out.WriteString("}")
				body = out.Bytes()
			}
		}
	case 5, 6, 7:
		body, media = []byte(pick(r, oddForms)), "application/x-www-form-urlencoded"
	case 8:
		body = make([]byte, pick(r, []int{0, 1, 100, 16 << 10, 16<<10 + 1, 70 << 10, 300 << 10}))
		for i := range body {
			body[i] = byte(r.IntN(256))
		}
		media = pick(r, oddTypes)
	default:
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(pick(r, h.bodies)))
		_ = w.Close()
		body, media = packed.Bytes(), "application/json\r\nContent-Encoding: gzip"
	}
	if chance(r, 10) {
		media = pick(r, oddTypes)
	}
	return body, media
}

// smuggled is a request whose length can be read in two ways, with another inside.
func (h *attacker) smuggled(r *rand.Rand) hostileRequest {
	inner := "GET /v1/application HTTP/1.1\r\nHost: x\r\n\r\n"
	framing := pick(r, []string{
		"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding: chunked\r\nContent-Length: 999\r\n\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + inner,
		"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + inner,
		"Transfer-Encoding: chunked\r\n\r\n5\r\nab\r\n0\r\n\r\n" + inner,
		"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nContent-Length: 5\r\nX: \xff\r\n\r\n" + inner,
		"Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + inner,
		"Content-Length: +5\r\n\r\nabcde" + inner,
		"Content-Length: 5\r\n\r\n" + inner,
		"Content-Length: 0x5\r\n\r\nabcde" + inner,
		"\r\n" + inner,
	})
	route := pick(r, h.routes)
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s",
		pick(r, []string{"POST", route.method}), h.target(r, route.path), pick(r, h.keys), framing)
	switch r.IntN(6) {
	case 0:
		text = strings.ReplaceAll(text, "\r\n", "\n")
	case 1:
		text = strings.ReplaceAll(text, "\r\n", "\r")
	}
	return hostileRequest{text: []byte(text)}
}
