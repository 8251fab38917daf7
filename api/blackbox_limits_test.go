package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"purser/api"
	"purser/keys"
)

// TestRateLimit has a bucket of one token that takes hours to fill again.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", nil)
	limited := tn.on(limitedNode(t, api.Options{RateLimit: 0.0001}))
	limited.get("/v1/credits").is(200)

	t.Run("says in whole seconds how long to wait", func(t *testing.T) {
		if wait := retryAfter(limited.in(t).get("/v1/credits").refused("rate_limited")); wait < 2 || wait > 10_000 {
			t.Errorf("Retry-After is %d", wait)
		}
	})
	t.Run("holds for every operation of the key, and nothing is done", func(t *testing.T) {
		identity := newHolder()
		for _, r := range []request{
			adds("/v1/wallets", fields{"identity": identity}), adds("/v1/events", fields{"id": newName(), "identity": identity, "feature": "chat"}),
			adds("/v1/check", fields{"identity": identity, "feature": "chat"}), adds("/v1/deposits", newDeposit(identity, "gold")), reads("/v1/application"),
		} {
			limited.in(t).send(r).refused("rate_limited")
		}
		tn.in(t).get(walletPath(identity)).refused("wallet_not_found")
	})
	t.Run("comes before the body and before the key is read", func(t *testing.T) {
		limited.in(t).post("/v1/wallets", "{").refused("rate_limited")
		key := tn.newKey(keys.Spec{Preset: keys.Setup})
		c := limited.in(t).with(key.secret)
		c.post("/v1/check", fields{"identity": newHolder(), "feature": "chat"}).is(200)
		tn.revoke(key)
		c.get("/v1/credits").refused("rate_limited")
		c.post("/v1/check", "{").refused("rate_limited")
	})
	t.Run("counts what is refused with 401 and 403 too", func(t *testing.T) {
		denied := limited.in(t).with(tn.newKey(keys.Spec{Preset: keys.Ingestion}).secret)
		denied.get("/v1/credits").refused("permission_denied")
		denied.get("/v1/credits").refused("rate_limited")
		key := tn.newKey(keys.Spec{Preset: keys.Setup})
		tn.revoke(key)
		revoked := limited.in(t).with(key.secret)
		revoked.get("/v1/credits").refused("revoked_api_key")
		revoked.get("/v1/credits").refused("rate_limited")
	})
	t.Run("is of one key alone", func(t *testing.T) {
		limited.in(t).with(tn.newKey(keys.Spec{Preset: keys.Setup}).secret).get("/v1/credits").is(200)
	})
	t.Run("does not hold for what needs no key", func(t *testing.T) {
		limited.in(t).get("/v1/openapi.json").is(200)
		limited.in(t).get("/v1/nothing").refused("not_found")
	})
}

func TestRateLimitIsOverWhenItWasSaidToBe(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	limited := tn.on(limitedNode(t, api.Options{RateLimit: 1}))
	limited.get("/v1/credits").is(200)
	// The bucket holds two tokens, and one comes each second: on a slow machine it may
	// take more than one round to empty it.
	wait := 0
	for wait == 0 {
		for _, got := range atOnce(t, slices.Repeat([]request{reads("/v1/credits")}, 20), limited) {
			if got.status != 200 {
				wait = max(wait, retryAfter(got.refused("rate_limited")))
			}
		}
	}
	<-time.After(time.Duration(wait) * time.Second)
	limited.get("/v1/credits").is(200)
}

// retryAfter is the header in seconds; the document has it as a whole number.
func retryAfter(a answer) int {
	a.t.Helper()
	return must(strconv.Atoi(a.header.Get("Retry-After")))
}

// heldRequest is a request under way: the server has begun to read its body, and
// waits for the rest.
type heldRequest struct {
	body   *io.PipeWriter
	answer chan answer
	err    chan error
}

// hold returns once the server reads the body: that is when it says to go on.
func (c client) hold(target string) heldRequest {
	c.t.Helper()
	r := request{method: "POST", target: target, body: "{}", key: c.key, chunked: true}
	sent, err := c.node.compose(r)
	if err != nil {
		c.t.Fatal(err)
	}
	reader, writer := io.Pipe()
	sent.Body = reader
	sent.Header.Set("Expect", "100-continue")
	reading := make(chan struct{})
	sent = sent.WithContext(httptrace.WithClientTrace(c.t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }}))
	held := heldRequest{writer, make(chan answer, 1), make(chan error, 1)}
	go func() {
		got, err := c.node.http.Do(sent)
		if err != nil {
			held.err <- err
			return
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		if err != nil {
			held.err <- err
			return
		}
		held.answer <- answer{t: c.t, method: r.method, target: r.target, status: got.StatusCode, header: got.Header, body: body}
	}()
	select {
	case <-reading:
	case err := <-held.err:
		c.t.Fatal(err)
	case early := <-held.answer:
		c.t.Fatalf("%s: answered before its body came\n%s", early, early.body)
	}
	return held
}

// finish sends the body and gives the answer.
func (h heldRequest) finish(t *testing.T, body fields) answer {
	t.Helper()
	if _, err := h.body.Write(must(bodyText(body))); err != nil {
		t.Fatal(err)
	}
	if err := h.body.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-h.err:
		t.Fatal(err)
		return answer{}
	case got := <-h.answer:
		if err := got.check(); err != nil {
			t.Fatalf("%s: %v\n%s", got, err, got.body)
		}
		return got
	}
}

// TestAKeyThatIsRevokedWhileABodyArrivesMovesNoMoney revokes a key after a request with it
// was admitted.
func TestAKeyThatIsRevokedWhileABodyArrivesMovesNoMoney(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	key := tn.newKey(keys.Spec{Preset: keys.Setup})
	held := tn.with(key.secret).hold("/v1/deposits")
	tn.revoke(key)
	time.Sleep(2 * api.SlowBody) // the key is read again only after a body that took longer than SlowBody
	holder := newHolder()
	held.finish(t, fields{"identity": holder, "creditKey": "gold", "amountNanocredits": "5", "idempotencyKey": newName()}).refused("revoked_api_key")
	if list := tn.get("/v1/deposits?identity=" + holder).is(200).object()["data"].([]any); len(list) > 0 {
		t.Errorf("it deposited %v", list)
	}
}

// TestAnApplicationHasEightCatalogsAtOnce: a ninth waits, and usage does not.
func TestAnApplicationHasEightCatalogsAtOnce(t *testing.T) {
	t.Parallel()
	tn, catalog := newRuledTenant(t).on(limitedNode(t, api.Options{})), fields{"catalog": catalogOf()}
	var held []heldRequest
	for range 8 {
		held = append(held, tn.hold("/v1/catalog/preview"))
	}
	tn.post("/v1/catalog/preview", catalog).refused("overloaded")
	tn.get("/v1/catalog").refused("overloaded")
	tn.post("/v1/events/batch", batchOf(fields{"id": newName(), "identity": newHolder(), "feature": "chat"})).is(200)
	for _, h := range held {
		h.finish(t, catalog).is(200)
	}
	tn.post("/v1/catalog/preview", catalog).is(200)
}

// stuckClient reads nothing of a response until it is freed.
type stuckClient struct {
	*httptest.ResponseRecorder
	writing chan<- struct{}
	free    <-chan struct{}
}

func (c stuckClient) Write(part []byte) (int, error) {
	c.writing <- struct{}{}
	<-c.free
	return c.ResponseRecorder.Write(part)
}

// TestUnreadRepliesAreBounded holds replies in memory that an application does not read: it
// has half of the limit, and keeps no other from its replies, nor itself from usage.
func TestUnreadRepliesAreBounded(t *testing.T) {
	t.Parallel()
	tn, other := newRuledTenant(t), newTenant(t)
	var credits []fields
	for i := range 250 {
		credits = append(credits, fields{"key": fmt.Sprintf("credit-%d", i), "name": strings.Repeat("x", 100), "unit": "coin"})
	}
	for _, c := range []*tenant{tn, other} {
		c.applies(catalogOf(credits...), nil).is(200)
	}
	size := len(other.get("/v1/catalog").is(200).body)
	n := limitedNode(t, api.Options{MaxUnsent: int64(4*size) + 4096}) // the applications differ a bit
	writing, free := make(chan struct{}, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	var clients errgroup.Group
	for range 2 {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/catalog", nil)
		request.Header.Set("Authorization", "Bearer "+tn.key)
		clients.Go(func() error {
			n.handler.ServeHTTP(stuckClient{httptest.NewRecorder(), writing, free}, request)
			return nil
		})
		<-writing
	}
	stuck := tn.on(n)
	if wait := stuck.get("/v1/catalog").refused("overloaded").header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After is %q", wait)
	}
	stuck.get("/v1/application").is(200)
	stuck.post("/v1/events/batch", batchOf(fields{"id": newName(), "identity": newHolder(), "feature": "chat"})).is(200)
	other.on(n).get("/v1/catalog").is(200)
	release()
	if err := clients.Wait(); err != nil {
		t.Fatal(err)
	}
	stuck.get("/v1/catalog").is(200)
}

// TestOverload has four requests in flight at most, of which one application can
// have two, and the next one as many as are free then.
func TestOverload(t *testing.T) {
	t.Parallel()
	small := limitedNode(t, api.Options{MaxInFlight: 4})
	one, two, three := newTenant(t), newTenant(t), newTenant(t)
	shed := func(c client) {
		t.Helper()
		if wait := c.get("/v1/credits").refused("overloaded").header.Get("Retry-After"); wait != "1" {
			t.Errorf("Retry-After is %q", wait)
		}
		c.post("/v1/wallets", fields{"identity": newHolder()}).refused("overloaded")
	}

	var held []heldRequest
	held = append(held, one.on(small).hold("/v1/wallets"))
	one.on(small).get("/v1/credits").is(200)
	held = append(held, one.on(small).hold("/v1/wallets"))
	shed(one.on(small)) // has as much as is free
	two.on(small).get("/v1/credits").is(200)
	held = append(held, two.on(small).hold("/v1/wallets"))
	shed(two.on(small))
	three.on(small).get("/v1/credits").is(200) // two that flood leave room
	held = append(held, three.on(small).hold("/v1/wallets"))
	shed(three.on(small))
	three.on(small).with("").get("/v1/credits").refused("missing_api_key")
	three.on(small).get("/v1/openapi.json").is(200)

	identity := newHolder()
	held[0].finish(t, fields{"identity": identity}).is(201)
	one.get(walletPath(identity)).is(200)
	newTenant(t).on(small).get("/v1/credits").is(200)
	for _, h := range held[1:] {
		h.finish(t, fields{"identity": newHolder()}).is(201)
	}
	for _, tn := range []*tenant{one, two, three} {
		tn.on(small).get("/v1/credits").is(200)
	}
}

// TestOverloadByManyApplications has four requests in flight at most. The applications of
// an organization leave one to others.
func TestOverloadByManyApplications(t *testing.T) {
	t.Parallel()
	small, org := limitedNode(t, api.Options{MaxInFlight: 4}), newName()
	var held []heldRequest
	for _, requests := range []int{2, 1} {
		tn := newTenantAt(t, sharedNode(t), org, false)
		for range requests {
			held = append(held, tn.on(small).hold("/v1/wallets"))
		}
	}
	third := newTenantAt(t, sharedNode(t), org, false)
	third.on(small).get("/v1/credits").refused("overloaded")
	newTenant(t).on(small).get("/v1/credits").is(200)
	held[0].finish(t, fields{"identity": newHolder()}).is(201)
	third.on(small).get("/v1/credits").is(200)
	for _, h := range held[1:] {
		h.finish(t, fields{"identity": newHolder()}).is(201)
	}
}

// TestABodyThatArrivesSlowlyTakesNoTimeOfTheRequest waits for as long as an event
// may take, with half of its body sent.
func TestABodyThatArrivesSlowlyTakesNoTimeOfTheRequest(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("gold")
	tn.feature("chat", "gold", fields{"costNanocredits": "0"})
	identity := newHolder()
	good, bad := tn.hold("/v1/events"), tn.hold("/v1/events")
	<-time.After(api.UsageTimeout)
	good.finish(t, fields{"id": newName(), "identity": identity, "feature": "chat"}).is(201)
	bad.finish(t, fields{"id": newName(), "identity": identity}).refused("invalid_request")
}

// TestUnauthenticatedBodiesAreNotWaitedFor sends no byte of the body that it announces.
func TestUnauthenticatedBodiesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	node := sharedNode(t)
	for target, status := range map[string]int{
		"POST /v1/nowhere": 404, "POST /nowhere": 404, "PUT /v1/credits": 405, "DELETE /v1/openapi.json": 405,
		"POST /v1/credits": 401, "PATCH /v1/credits/a%zz": 400,
	} {
		for _, length := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
			c, err := net.Dial("tcp", node.host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil { // only a server that waits reaches it
				t.Fatal(err)
			}
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n\r\n", target, length)
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Errorf("%s with %s: %v", target, length, err)
				continue
			}
			response.Body.Close()
			if response.StatusCode != status || !response.Close {
				t.Errorf("%s with %s: %s, closes: %t", target, length, response.Status, response.Close)
			}
		}
	}
}
