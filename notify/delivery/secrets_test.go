package delivery_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"purser/notify"
	"purser/notify/delivery"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy/audit"
)

// The secrets of endpoints are in no table in the clear, and in no log: after creation,
// rotation, deliveries that are accepted and refused, and a test.
func TestSecretsAreInNoTableAndNoLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	noError(t, err)
	t.Cleanup(db.Close)
	r := newHarnessOn(t, db, func(o *delivery.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	hooks := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 2 {
			w.WriteHeader(http.StatusGone)
		}
	})
	e, first := r.endpoint(hooks.URL)
	r.deposit()
	r.drain()
	_, second, err := r.dispatcher.Rotate(t.Context(), r.scope, audit.Actor{}, e.ID, 0, time.Hour)
	noError(t, err)
	r.deposit()
	r.drain() // gone: the endpoint is disabled, and the log says so
	r.enable()
	_, err = r.dispatcher.Test(t.Context(), r.scope, audit.Actor{}, e.ID, notify.BalanceLow, r.time().UnixMilli())
	noError(t, err)
	r.drain()
	verify(t, second, hooks.all()[len(hooks.all())-1])
	if !strings.Contains(log.String(), "webhook endpoint paused") {
		t.Errorf("the log is %q", log.String())
	}
	for _, secret := range []notify.Secret{first, second} {
		text := strings.TrimPrefix(secret.Reveal(), "whsec_")
		key, err := base64.StdEncoding.DecodeString(text)
		noError(t, err)
		for _, form := range []string{text, hex.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key)} {
			if found := storetest.TablesWith(t, url, form); len(found) > 0 {
				t.Errorf("a secret is in %v", found)
			}
			if strings.Contains(log.String(), form) {
				t.Error("a secret is in the log")
			}
		}
	}
	// The search finds what is there.
	if found := storetest.TablesWith(t, url, hooks.URL); len(found) == 0 {
		t.Error("the endpoint's address is in no table")
	}
}
