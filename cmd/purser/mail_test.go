package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
)

// A server whose SMTP server was removed from its settings sends nothing, and still deletes
// the mails that waited.
func TestExpiredMailsAreDeletedWithoutSMTP(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	now := db.Clock().Now()
	for _, expires := range []int64{now - 1, now + time.Hour.Milliseconds()} {
		err := db.Outbox().Queue(t.Context(), people.Mail{ID: ids.New(), Kind: "alert", Sealed: []byte("sealed"), CreatedAt: now - time.Hour.Milliseconds(), ExpiresAt: expires})
		if err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"DATABASE_URL=" + url, "PURSER_SECRET_KEY=" + strings.Repeat("k", minSecretKey), "PURSER_DATA=" + t.TempDir()}
	if err := run(t.Context(), []string{"migrate", "--adopt-secret-key"}, environ, io.Discard, io.Discard); err != nil { // it sealed no mail
		t.Fatal(err)
	}
	startProcess(t, environ)
	eventually(t, "the expired mail is deleted", func() bool {
		queue, err := db.Outbox().Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return queue.Waiting == 1
	})
}
