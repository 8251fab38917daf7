package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"purser/store"
	"purser/store/storetest"
)

const thirdKey = secret("a key of another place, 32 bytes!")

// starts is whether a server with these keys would serve from the database, and
// otherwise why not.
func starts(t *testing.T, db *store.Store, keys ...secret) (refusal string) {
	t.Helper()
	if err := checkSecret(t.Context(), config{secretKey: string(keys[0])}, db, vaultOf(t, keys...)); err != nil {
		return err.Error()
	}
	return ""
}

const (
	isWrong  = "PURSER_SECRET_KEY is not the key"
	isNotAll = "set PURSER_SECRET_KEY_PREVIOUS"
)

func TestADatabaseKnowsItsSecretKey(t *testing.T) {
	t.Parallel()
	expect := func(t *testing.T, db *store.Store, want string, keys ...secret) {
		t.Helper()
		if got := starts(t, db, keys...); got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("with %q it says %q, not %q", keys, got, want)
		}
	}
	t.Run("an empty one takes the first, and no other after that", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		expect(t, db, "", wasKey)
		expect(t, db, "", wasKey)
		expect(t, db, isWrong, isKey)
		expect(t, db, isWrong, isKey, thirdKey)
		if found := storetest.TablesWith(t, url, string(wasKey)); len(found) > 0 {
			t.Errorf("the key itself is in %v", found)
		}
	})
	t.Run("one from before goes by the secrets that it holds", func(t *testing.T) {
		t.Parallel()
		s := sealRows(t, storetest.FreshURL(t), 1)
		expect(t, s.db, isWrong, isKey)
		expect(t, s.db, isWrong, isKey, thirdKey)
		expect(t, s.db, "", wasKey)
		expect(t, s.db, isWrong, isKey)
	})
	t.Run("a rotation on several nodes is never locked out", func(t *testing.T) {
		t.Parallel()
		s := sealRows(t, storetest.FreshURL(t), 1)
		expect(t, s.db, "", wasKey)
		expect(t, s.db, "", wasKey, isKey) // step 1, on each node
		expect(t, s.db, "", wasKey)        // one that has not been restarted yet crashes
		expect(t, s.db, "", isKey, wasKey) // step 2, on the first node
		expect(t, s.db, "", wasKey, isKey) // the second node crashes
		expect(t, s.db, isNotAll, isKey)   // step 4 comes too early
		expect(t, s.db, isNotAll, wasKey)  // a node that was never given the new one
		expect(t, s.db, isWrong, thirdKey)
		if err := s.rotationOf(slog.New(slog.DiscardHandler)).run(t.Context()); err != nil { // step 3
			t.Fatal(err)
		}
		expect(t, s.db, "", isKey)
		expect(t, s.db, isWrong, wasKey)
		expect(t, s.db, "", isKey, wasKey)
	})
	t.Run("a lost key can be given up", func(t *testing.T) {
		t.Parallel()
		url := storetest.FreshURL(t)
		s := sealRows(t, url, 1)
		expect(t, s.db, "", wasKey)
		environ := []string{"DATABASE_URL=" + url, "PURSER_SECRET_KEY=" + string(isKey)}
		err := run(t.Context(), []string{"serve", "--addr", "127.0.0.1:0"}, environ, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), isWrong) || strings.Contains(err.Error(), "\n") {
			t.Errorf("serve says %v", err)
		}
		var out bytes.Buffer
		if err := run(t.Context(), []string{"migrate", "--adopt-secret-key"}, environ, &out, io.Discard); err != nil || !strings.Contains(out.String(), "decrypt: 10.") {
			t.Fatalf("%s, %v", out.String(), err)
		}
		expect(t, s.db, "", isKey)
		expect(t, s.db, isWrong, wasKey)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := run(ctx, []string{"serve", "--addr", "127.0.0.1:0"}, environ, stopWhenStarted{cancel}, io.Discard); err != nil {
			t.Errorf("after that it does not serve: %v", err)
		}
	})
}
