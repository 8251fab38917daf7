package store_test

import (
	"crypto/rand"
	"testing"
	"time"

	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Sessions")
	user, other := newMember(t, db, org, tenancy.Owner).UserID, newMember(t, db, org, tenancy.Owner).UserID
	theirs := newSession(t, db, other)
	var tokens []string
	open := func(seenAt int64) {
		t.Helper()
		token := rand.Text()
		opened, err := db.Auth().OpenSession(t.Context(), token, people.Session{
			ID: ids.New(), UserID: user, CreatedAt: moment, SeenAt: seenAt, ExpiresAt: moment + 100_000,
		}, []byte{1})
		if err != nil || !opened {
			t.Fatalf("the session was opened: %t, %v", opened, err)
		}
		tokens = append(tokens, token)
	}
	isOpen := func(token string) bool {
		_, found, err := db.Auth().SessionContent(t.Context(), token, 0, moment)
		noError(t, err)
		return found
	}
	for i := range people.MaxSessions {
		open(moment + int64(i))
	}
	if !isOpen(tokens[0]) {
		t.Error("at the limit, a session ended")
	}
	open(moment + people.MaxSessions)
	if isOpen(tokens[0]) || !isOpen(tokens[1]) {
		t.Errorf("past the limit, the session seen first is open: %t, the second: %t", isOpen(tokens[0]), isOpen(tokens[1]))
	}
	if !isOpen(theirs) {
		t.Error("another user's session ended")
	}
	// Sign-ins at one moment don't see each other, and an earlier release had no limit.
	exec(t, connect(t, storetest.URL(t)), `
		INSERT INTO sessions (hash, id, user_id, content, created_at, seen_at, expires_at, address, agent)
		SELECT sha256(convert_to($1::text || n, 'UTF8')), gen_random_uuid(), $1::text::uuid, '', $2::bigint, $2::bigint, $2::bigint + 1000, '', '' FROM generate_series(1, 50) n`, user.String(), moment-1)
	last := tokens[people.MaxSessions]
	list, current, err := db.User(user).Sessions(t.Context(), last, moment)
	if err != nil || len(list) != people.MaxSessions || list[0].ID != current {
		t.Errorf("%d sessions are listed, %v", len(list), err)
	}
}

// A transaction that ends several sessions may hold one that the sweep wants, and want one
// that was swept.
func TestASignInWaitsForNoExpiredSession(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only these two wait for locks
	db := openStore(t, url)
	user := newMember(t, db, newOrganization(t, db, "Sweep"), tenancy.Owner).UserID
	newSession(t, db, user)
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `SELECT FROM sessions WHERE user_id = $1 FOR UPDATE`, user)
	later := moment + 1000 + 2*(24*time.Hour).Milliseconds()
	opened := make(chan error, 1)
	go func() {
		_, err := db.Auth().OpenSession(t.Context(), rand.Text(), people.Session{ID: ids.New(), CreatedAt: later, SeenAt: later, ExpiresAt: later + 1000}, []byte{1})
		opened <- err
	}()
	soon(t, "the sign-in ends or waits", func() bool { return len(opened) == 1 || lockWaits(t, url, "%") == 1 })
	if len(opened) == 0 {
		t.Error("the sign-in waits")
	}
	noError(t, lock.Rollback(t.Context()))
	noError(t, <-opened)
}
