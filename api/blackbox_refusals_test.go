package api_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"purser/api"
	"purser/httpd"
	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/store/storetest"
)

// closableNode is a node with a clock that stands still and a database that the
// test can take away.
func closableNode(t *testing.T, o api.Options) (n *node, closeDatabase func()) {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.URL(t), store.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	now := time.Now().UnixMilli()
	o.Store, o.CursorKey, o.Now = s, cursorKey, func() int64 { return now }
	server, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	n = &node{server: server, store: s, clock: &clock{}}
	n.serve(shellOf(server, httpd.Options{Log: newLog()}), t.Cleanup)
	return n, s.Close
}

// TestFloodsAreRefusedWithoutTheDatabase takes the database away: what is still
// answered needs none.
func TestFloodsAreRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)

	t.Run("a key over its rate limit", func(t *testing.T) {
		n, closeDatabase := closableNode(t, api.Options{RateLimit: 0.001})
		c := tn.on(n).in(t)
		c.get("/v1/credits").is(200)
		closeDatabase()
		for range 3 {
			c.get("/v1/credits").refused("rate_limited")
			c.post("/v1/events", "{").refused("rate_limited")
		}
	})
	t.Run("a revoked key", func(t *testing.T) {
		n, closeDatabase := closableNode(t, api.Options{})
		key := tn.newKey(keys.Spec{Preset: keys.Setup})
		tn.revoke(key)
		c := tn.on(n).in(t).with(key.secret)
		c.get("/v1/credits").refused("revoked_api_key")
		closeDatabase()
		for range 3 {
			c.get("/v1/credits").refused("revoked_api_key")
			c.post("/v1/events", "{").refused("revoked_api_key")
		}
	})
	t.Run("an expired key", func(t *testing.T) {
		n, closeDatabase := closableNode(t, api.Options{})
		expired := time.Now().Add(-time.Hour).UnixMilli()
		c := tn.on(n).in(t).with(tn.newKey(keys.Spec{Preset: keys.Setup, ExpiresAt: expired}).secret)
		c.get("/v1/credits").refused("expired_api_key")
		closeDatabase()
		c.get("/v1/credits").refused("expired_api_key")
		c.post("/v1/check", "{").refused("expired_api_key")
	})
}

// TestKeysOfOneIDInTwoApplicationsAreTwoKeys has a tenant whose key took the id of
// another's.
func TestKeysOfOneIDInTwoApplicationsAreTwoKeys(t *testing.T) {
	t.Parallel()
	one, two := newTenant(t), newTenant(t)
	id := ids.New()
	first, second := one.newKey(keys.Spec{ID: id, Preset: keys.Setup}), two.newKey(keys.Spec{ID: id, Preset: keys.Setup})

	t.Run("one does not spend the other's rate limit", func(t *testing.T) {
		n, _ := closableNode(t, api.Options{RateLimit: 0.001})
		one.on(n).in(t).with(first.secret).get("/v1/credits").is(200)
		one.on(n).in(t).with(first.secret).get("/v1/credits").refused("rate_limited")
		two.on(n).in(t).with(second.secret).get("/v1/credits").is(200)
	})
	t.Run("one that is revoked does not stop the other", func(t *testing.T) {
		n, _ := closableNode(t, api.Options{})
		one.revoke(first)
		one.on(n).in(t).with(first.secret).get("/v1/credits").refused("revoked_api_key")
		two.on(n).in(t).with(second.secret).get("/v1/credits").is(200)
	})
}

// TestHangUpsLeaveTheDatabaseItsConnections has callers that are gone before their
// key is looked up. Their queries must run to the end: a cancelled one costs its
// connection.
func TestHangUpsLeaveTheDatabaseItsConnections(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	n, _ := closableNode(t, api.Options{})
	gone, hangUp := context.WithCancel(context.Background())
	hangUp()
	for _, c := range []struct {
		target, secret string
		want           int
	}{
		{"/v1/credits", mintSecret(t).Reveal(), 401}, {"/v1/credits", tn.key, 200}, {"/v1/application", tn.key, 200},
	} {
		r := httptest.NewRequestWithContext(gone, "GET", c.target, nil)
		r.Header.Set("Authorization", "Bearer "+c.secret)
		w := httptest.NewRecorder()
		n.handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s answers %d to a caller who has hung up, not %d", c.target, w.Code, c.want)
		}
	}
}
