package store_test

import (
	"testing"
	"time"

	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/credential"
)

// TestANewResetLinkBesideAnOperatorsReset has both delete an expired link. The operator's
// reset holds the user, so a link that was swept before the user is locked would deadlock.
func TestANewResetLinkBesideAnOperatorsReset(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only these two wait for locks
	db := openStore(t, url)
	user := newMember(t, db, newOrganization(t, db, "Links"), tenancy.Owner).UserID
	email := user.String() + "@example.com"
	noError(t, db.User(user).ChangePassword(t.Context(), "", "$first", "", people.CommandLine(moment)))
	offer := func(link credential.Hash, now int64) error {
		_, _, err := db.Auth().OfferReset(t.Context(), ids.New(), email, link, now)
		return err
	}
	noError(t, offer(credential.Hash{1}, moment))
	later := moment + people.ResetLinkTTL.Milliseconds()
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `SELECT FROM passwords WHERE user_id = $1 FOR UPDATE`, user)
	replaced, offered := make(chan error, 1), make(chan error, 1)
	go func() {
		replaced <- db.Auth().ResetPassword(t.Context(), people.Reset{Email: email, Encoded: "$second", By: people.CommandLine(later)})
	}()
	soon(t, "the operator's reset waits", func() bool { return lockWaits(t, url, "%") == 1 })
	go func() { offered <- offer(credential.Hash{2}, later) }()
	soon(t, "the new link waits", func() bool { return lockWaits(t, url, "%") == 2 })
	noError(t, lock.Rollback(t.Context()))
	noError(t, <-replaced)
	noError(t, <-offered)
	if left := texts(t, connect(t, url), `SELECT encode(hash, 'hex') FROM password_resets`); len(left) != 1 || left[0][:2] != "02" {
		t.Errorf("the links %v are left", left)
	}
}

// TestResetLinksAtTheSameMomentCountEachOther has two mails wait for the user, of whom one
// more link may be open.
func TestResetLinksAtTheSameMomentCountEachOther(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only these two wait for locks
	db := openStore(t, url)
	user := newMember(t, db, newOrganization(t, db, "Links"), tenancy.Owner).UserID
	noError(t, db.User(user).ChangePassword(t.Context(), "", "$first", "", people.CommandLine(moment)))
	offer := func(link byte) error {
		_, _, err := db.Auth().OfferReset(t.Context(), ids.New(), user.String()+"@example.com", credential.Hash{link}, moment)
		return err
	}
	for link := range byte(people.MaxResetLinks - 1) {
		noError(t, offer(link))
	}
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `SELECT FROM users WHERE id = $1 FOR UPDATE`, user)
	offered := make(chan error, 2)
	for link := range byte(2) {
		go func() { offered <- offer(100 + link) }()
	}
	soon(t, "both wait", func() bool { return lockWaits(t, url, "%") == 2 })
	noError(t, lock.Rollback(t.Context()))
	noError(t, <-offered)
	noError(t, <-offered)
	if links := texts(t, connect(t, url), `SELECT encode(hash, 'hex') FROM password_resets`); len(links) != people.MaxResetLinks {
		t.Errorf("%d links are open, of at most %d", len(links), people.MaxResetLinks)
	}
}

// TestAttemptsThatMeet makes an attempt wait for the count of its subject, which another
// one holds.
func TestAttemptsThatMeet(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only one waits for locks
	db := openStore(t, url)
	attempt := func(subject credential.Hash, now int64) error {
		_, err := db.Auth().Attempt(t.Context(), subject, credential.Hash{}, now)
		return err
	}
	for name, meanwhile := range map[string]string{
		"count when the other succeeds":                     `DELETE FROM login_failures WHERE subject = $1`,
		"hold no expired count that the other may wait for": `SELECT FROM login_failures WHERE subject <> $1 FOR UPDATE NOWAIT`,
	} {
		t.Run(name, func(t *testing.T) {
			exec(t, connect(t, url), `DELETE FROM login_failures`)
			subject, later := credential.Hash{1}, moment+2*credential.ForgottenAfter.Milliseconds()
			noError(t, attempt(credential.Hash{2}, moment))
			noError(t, attempt(subject, moment+time.Second.Milliseconds()))
			other, err := connect(t, url).Begin(t.Context())
			noError(t, err)
			exec(t, other, `SELECT FROM login_failures WHERE subject = $1 FOR UPDATE`, subject[:])
			counted := make(chan error, 1)
			go func() { counted <- attempt(subject, later) }()
			soon(t, "the attempt waits", func() bool { return lockWaits(t, url, "%") == 1 })
			exec(t, other, meanwhile, subject[:])
			noError(t, other.Commit(t.Context()))
			noError(t, <-counted)
			if left := texts(t, connect(t, url), `SELECT failures::text FROM login_failures WHERE failed_at = $1`, later); len(left) != 1 || left[0] != "1" {
				t.Errorf("the counts %v are left", left)
			}
			if left := texts(t, connect(t, url), `SELECT failures::text FROM login_failures`); len(left) != 1 {
				t.Errorf("an expired count is left: %v", left)
			}
		})
	}
}
