package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"purser/api"
	"purser/fault"
	"purser/keys"
	"purser/store/reports"
)

func TestExportWallet(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	tn.credit("tokens")
	tn.feature("call", "tokens", nil)
	identity, other := newHolder(), newHolder()
	tn.deposit(identity, "tokens", "100000000")
	tn.post("/v1/wallets", fields{"identity": other}).is(201)
	last := newName()
	tn.post("/v1/events", fields{"id": last, "identity": identity, "feature": "call", "properties": fields{"model": "large"}}).is(201)
	tn.post("/v1/events/"+last+"/reverse", newReversal("3")).is(201)
	tn.post("/v1/transfers", newTransfer(identity, other, "tokens")).is(201)
	tn.post("/v1/events", fields{"id": newName(), "identity": identity, "feature": "call", "quantity": 1_000_000_000}).refused("insufficient_balance")
	// Past two parts, by one.
	var batch []fields
	for range 2*reports.ExportRange + 1 - 4 {
		batch = append(batch, fields{"id": newName(), "identity": identity, "feature": "call"})
	}
	for len(batch) > 0 {
		n := min(1000, len(batch))
		tn.post("/v1/events/batch", batchOf(batch[:n]...)).is(200)
		batch = batch[n:]
	}

	got := tn.get("/v1/wallets/" + identity + "/export").is(200).object()
	if got["identity"] != identity || got["complete"] != true || got["subscription"] != nil {
		t.Errorf("the export is of %v, complete %v", got["identity"], got["complete"])
	}
	if fmt.Sprint(got["wallet"]) != fmt.Sprint(tn.get("/v1/wallets/"+identity).is(200).object()) {
		t.Errorf("the wallet is %v", got["wallet"])
	}
	if failed := got["failedRequests"].([]any); len(failed) != 1 || failed[0].(fields)["error"] != "insufficient_balance" {
		t.Errorf("the failed requests are %v", failed)
	}
	if denied := got["denials"].([]any); len(denied) != 1 || denied[0].(fields)["reason"] != "insufficient_balance" || denied[0].(fields)["feature"] != "call" {
		t.Errorf("the denials are %v", denied)
	}
	entries := got["entries"].([]any)
	if len(entries) != 2*reports.ExportRange+1 {
		t.Fatalf("there are %d entries", len(entries))
	}
	journal := map[string]fields{}
	for after := 0; after < len(entries); after += 100 {
		for _, e := range tn.get(fmt.Sprintf("/v1/wallets/%s/journal?limit=100&after=%d", identity, after)).is(200).object()["data"].([]any) {
			journal[e.(fields)["id"].(string)] = e.(fields)
		}
	}
	for i, item := range entries {
		e := item.(fields)
		if number(e, "seq") != int64(i+1) {
			t.Fatalf("entry %d is %v", i+1, e)
		}
		listed := journal[e["id"].(string)]
		for name, value := range listed {
			if name != "event" && fmt.Sprint(e[name]) != fmt.Sprint(value) {
				t.Errorf("entry %d has %s %v, the journal %v", i+1, name, e[name], value)
			}
		}
	}
	if event := entries[1].(fields)["event"]; fmt.Sprint(event) != fmt.Sprint(tn.get("/v1/events/"+last).is(200).object()) {
		t.Errorf("the event is %v", event)
	}
	if reason := entries[2].(fields)["reason"]; reason != "The answer was empty" {
		t.Errorf("the reversal's reason is %v", reason)
	}
	tn.get("/v1/wallets/" + newHolder() + "/export").refused("wallet_not_found")
}

// TestExportsAreLimited has an export of each of two applications wait for its reader.
func TestExportsAreLimited(t *testing.T) {
	t.Parallel()
	n := newNode(t, api.Options{MaxExports: 2}, &clock{})
	tenants := []*tenant{newTenantAt(t, n, "exports", false), newTenantAt(t, n, "exports too", false)}
	last, identity := newTenantAt(t, n, "exports last", false), newHolder()
	for _, tn := range append(tenants, last) {
		tn.post("/v1/wallets", fields{"identity": identity}).is(201)
	}
	begun, read, ended := make(chan struct{}), make(chan struct{}), make(chan error, len(tenants))
	release := sync.OnceFunc(func() { close(read) })
	defer release()
	for _, tn := range tenants {
		go func() {
			ended <- n.server.ExportWallet(t.Context(), tn.app.Scope(), identity, func() io.Writer {
				begun <- struct{}{}
				<-read
				return io.Discard
			}, admitAll)
		}()
		select {
		case <-begun:
		case err := <-ended:
			t.Fatalf("an export of another application is refused: %v", err)
		}
		tn.get("/v1/wallets/" + identity + "/export").refused(fault.Overloaded)
	}
	last.get("/v1/wallets/" + identity + "/export").refused(fault.Overloaded)
	release()
	for range tenants {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	tenants[0].get("/v1/wallets/" + identity + "/export").is(200)
}

// admitAll lets an export go on.
func admitAll() error { return nil }

// stoppingWriter stops the server as soon as an export has begun.
type stoppingWriter struct {
	bytes.Buffer
	stop func()
}

func (w *stoppingWriter) Write(part []byte) (int, error) {
	w.stop()
	return w.Buffer.Write(part)
}

func TestExportsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	n := newNode(t, api.Options{}, &clock{})
	tn := newTenantAt(t, n, "stopped-exports", false)
	identity := newHolder()
	tn.post("/v1/wallets", fields{"identity": identity}).is(201)
	tn.credit("tokens")
	tn.deposit(identity, "tokens", "100000000")
	w := &stoppingWriter{stop: n.server.StopWaiting}
	err := n.server.ExportWallet(t.Context(), tn.app.Scope(), identity, func() io.Writer { return w }, admitAll)
	if err == nil || w.Len() == 0 || strings.Contains(w.String(), `"complete"`) {
		t.Errorf("it ends with %v after %s", err, w)
	}
	tn.get("/v1/wallets/" + identity + "/export").refused(fault.Overloaded)
}

// revokingClient has its key revoked as soon as an export has begun.
type revokingClient struct {
	*httptest.ResponseRecorder
	revoke func()
}

func (w *revokingClient) Write(part []byte) (int, error) {
	w.revoke()
	return w.ResponseRecorder.Write(part)
}

func (w *revokingClient) SetWriteDeadline(time.Time) error { return nil }

func TestExportsEndWhenTheirKeyIsRevoked(t *testing.T) {
	t.Parallel()
	tn, identity := newTenant(t), newHolder()
	tn.credit("tokens")
	tn.deposit(identity, "tokens", "100000000")
	for _, revoked := range []bool{false, true} {
		key := tn.newKey(keys.Spec{Preset: keys.Setup})
		w := &revokingClient{httptest.NewRecorder(), func() {
			if revoked {
				tn.revoke(key)
			}
		}}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/wallets/"+identity+"/export", nil)
		request.Header.Set("Authorization", "Bearer "+key.secret)
		func() {
			defer func() {
				if cut := recover(); (cut == http.ErrAbortHandler) != revoked {
					t.Errorf("the export ends with %v", cut)
				}
			}()
			tn.node.handler.ServeHTTP(w, request)
		}()
		if body := w.Body.String(); !strings.Contains(body, identity) || strings.Contains(body, `"complete"`) == revoked || strings.Contains(body, `"seq":1`) == revoked {
			t.Errorf("with a key that is revoked %v: %s", revoked, body)
		}
	}
}

// exported reads an export by a server that calls change at one of two moments: after it
// has read the wallet, or when the response begins.
func (tn *tenant) exported(t *testing.T, identity string, early bool, change func()) (found fields, err error) {
	t.Helper()
	changed := false
	once := func(now bool) {
		if now && !changed {
			changed = true
			change()
		}
	}
	exporting := false
	server, err := api.New(api.Options{Store: tn.node.store, CursorKey: cursorKey, Now: func() int64 {
		once(exporting && early) // the export takes its time between the wallet and the subscription
		return tn.node.clock.now()
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	exporting = true
	err = server.ExportWallet(t.Context(), tn.app.Scope(), identity, func() io.Writer {
		once(!early)
		return &got
	}, admitAll)
	if !changed {
		t.Fatal("nothing changed during the export")
	}
	if err == nil {
		found = answer{t: t, body: got.Bytes()}.object()
	}
	return found, err
}

func TestExportsAreOfOneWallet(t *testing.T) {
	t.Parallel()
	tn, identity := newShop(t), newHolder()
	tn.buy(identity, "small")
	tn.get(subscriptionPath(identity)).is(200)
	tn.post("/v1/topup-checkout", newTopup(identity, "gold")).is(200)
	want := tn.get("/v1/wallets/" + identity + "/export").is(200).object()
	if n := len(want["checkouts"].([]any)); n != 2 || want["subscription"] == nil {
		t.Fatalf("there are %d checkouts, and the subscription %v", n, want["subscription"])
	}
	for _, early := range []bool{true, false} {
		renamed := newHolder()
		got, err := tn.exported(t, identity, early, func() {
			tn.post("/v1/wallets/"+identity+"/rename", fields{"identity": renamed, "idempotencyKey": newName()}).is(200)
			tn.buy(identity, "small") // another customer, in a wallet of their own
			tn.get(subscriptionPath(identity)).is(200)
		})
		if err != nil || got["complete"] != true {
			t.Fatalf("a rename ends the export: %v", err)
		}
		if fmt.Sprint(got["checkouts"]) != fmt.Sprint(want["checkouts"]) {
			t.Errorf("after a rename, the checkouts are %v, want %v", got["checkouts"], want["checkouts"])
		}
		subscription, _ := got["subscription"].(fields)
		if subscription["id"] != want["subscription"].(fields)["id"] {
			t.Errorf("after a rename, the subscription is %v, want %v", got["subscription"], want["subscription"])
		}
		identity = renamed
	}
}

func TestErasedWalletsAreNotExportedInPart(t *testing.T) {
	t.Parallel()
	tn := newShop(t)
	for _, early := range []bool{true, false} {
		identity := newHolder()
		tn.post("/v1/wallets", fields{"identity": identity}).is(201)
		tn.post(subscriptionPath(identity)+"/change", fields{"planKey": "free", "idempotencyKey": newName()}).is(200)
		got, err := tn.exported(t, identity, early, func() {
			tn.post("/v1/wallets/"+identity+"/erase", fields{"reason": "asked by letter", "idempotencyKey": newName()}).is(200)
		})
		if err == nil {
			t.Errorf("an export during an erasure is complete: %v", got)
		}
	}
}

// TestAFreePeriodIsExportedWithoutACurrency: the answer is held against the document.
func TestAFreePeriodIsExportedWithoutACurrency(t *testing.T) {
	t.Parallel()
	tn, identity := newShop(t), newHolder()
	tn.post("/v1/wallets", fields{"identity": identity}).is(201)
	tn.post(subscriptionPath(identity)+"/change", fields{"planKey": "free", "idempotencyKey": newName()}).is(200)
	payments := tn.get("/v1/wallets/" + identity + "/export").is(200).object()["payments"].([]any)
	if len(payments) != 1 || payments[0].(fields)["kind"] != "free_period" {
		t.Fatalf("the payments are %v", payments)
	}
	if currency, has := payments[0].(fields)["currency"]; has {
		t.Errorf("the currency is %q", currency)
	}
}
