package store_test

import (
	"crypto/rand"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// newest is the last entry of the organization's log.
func newest(t *testing.T, db *store.Store, org ids.ID) audit.Entry {
	t.Helper()
	entries, _, err := db.Org(org).AuditLog(t.Context(), people.AuditPage{Limit: 1})
	noError(t, err)
	if len(entries) == 0 {
		t.Fatal("the log is empty")
	}
	return entries[0]
}

func TestResetPassword(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Reset")
	member := newMember(t, db, org, tenancy.Admin)
	person := db.User(member.UserID)
	user, err := person.Profile(t.Context())
	noError(t, err)
	noError(t, person.ChangePassword(t.Context(), "", "$old", "", people.CommandLine(moment)))
	noError(t, person.AddFactor(t.Context(), people.Factor{SealedSeed: []byte("seed"), LastStep: 1}, []credential.Hash{{1}}, newSession(t, db, user.ID), people.CommandLine(moment)))
	token := newSession(t, db, user.ID)
	code := credential.CodeSubject(user.ID.Format(ids.User), "")
	for range 6 {
		_, err := db.Auth().Attempt(t.Context(), code, credential.Hash{}, moment)
		noError(t, err)
	}

	reset := people.Reset{Email: user.Email, Encoded: "$new", By: people.CommandLine(moment)}
	noError(t, db.Auth().ResetPassword(t.Context(), reset))
	if encoded, err := store.PasswordOf(t.Context(), db, member.UserID); err != nil || encoded != "$new" {
		t.Errorf("the password is %q, %v", encoded, err)
	}
	if _, found, err := db.Auth().SessionContent(t.Context(), token, moment-1, moment); err != nil || found {
		t.Errorf("a session outlives the password: %v", err)
	}
	if attempt, err := db.Auth().Attempt(t.Context(), code, credential.Hash{}, moment); err != nil || attempt.Wait > 0 {
		t.Errorf("a code has to wait %s, %v", attempt.Wait, err)
	}
	// A change that was checked against the password before the reset comes too late.
	wantFault(t, person.ChangePassword(t.Context(), "$old", "$late", "", people.CommandLine(moment)), fault.RevisionConflict)
	until := moment + people.ResetLasts.Milliseconds()
	account, err := db.Auth().Account(t.Context(), user.Email)
	noError(t, err)
	if account.TemporaryUntil != until || account.Expired(until-1) || !account.Expired(until) {
		t.Errorf("the new password lasts until %d", account.TemporaryUntil)
	}
	if around, err := person.PageContext(t.Context(), ""); err != nil || !around.MustChange {
		t.Errorf("the new password need not be changed: %v", err)
	}
	if _, err := person.Factor(t.Context()); err != nil {
		t.Errorf("the authenticator is gone without being asked for: %v", err)
	}
	if e := newest(t, db, org.ID); e.Action != "member.reset" || e.Name != "command line" || e.Target != user.ID.Format(ids.User) {
		t.Errorf("the log says %+v", e)
	}

	reset.RemovesFactor = true
	noError(t, db.Auth().ResetPassword(t.Context(), reset))
	if _, err := person.Factor(t.Context()); !fault.Is(err, fault.PathNotFound) {
		t.Errorf("the authenticator stays: %v", err)
	}
	reset.Email = "nobody-" + ids.New().String() + "@example.com"
	wantFault(t, db.Auth().ResetPassword(t.Context(), reset), fault.PathNotFound)
}

// newSession is the token of a new session.
func newSession(t *testing.T, db *store.Store, user ids.ID) (token string) {
	t.Helper()
	token = rand.Text()
	account, err := db.User(user).PageContext(t.Context(), "")
	noError(t, err)
	opened, err := db.Auth().OpenSession(t.Context(), token, people.Session{
		ID: ids.New(), UserID: user, CreatedAt: moment, SeenAt: moment, ExpiresAt: moment + 1000, PasswordAt: account.PasswordAt, FactorAt: account.FactorAt,
	}, []byte{1})
	if err != nil || !opened {
		t.Fatalf("the session was opened: %t, %v", opened, err)
	}
	return token
}

// TestAReplacedPassword changes a password while requests of before are under way.
func TestAReplacedPassword(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user := newMember(t, db, newOrganization(t, db, "Replaced"), tenancy.Owner).UserID
	person := db.User(user)
	by := people.CommandLine(moment)
	noError(t, person.ChangePassword(t.Context(), "", "$first", "", by))
	ended, thief := newSession(t, db, user), rand.Text()
	noError(t, person.EndOtherSessions(t.Context(), thief))
	wantFault(t, person.ChangePassword(t.Context(), "$first", "$stolen", ended, by), fault.RevisionConflict)

	here := newSession(t, db, user)
	by.At++
	noError(t, person.ChangePassword(t.Context(), "$first", "$second", here, by))
	opened, err := db.Auth().OpenSession(t.Context(), thief, people.Session{
		ID: ids.New(), UserID: user, CreatedAt: moment, SeenAt: moment, ExpiresAt: moment + 1000, PasswordAt: moment,
	}, []byte{1})
	if err != nil || opened {
		t.Errorf("the first password opens a session: %t, %v", opened, err)
	}
	list, current, err := person.Sessions(t.Context(), here, moment)
	if err != nil || len(list) != 1 || list[0].ID != current {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
}

// TestAReplacedAuthenticator adds and removes one while sign-ins of before are under way.
func TestAReplacedAuthenticator(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Authenticators")
	user := newMember(t, db, org, tenancy.Owner).UserID
	person := db.User(user)
	by := people.CommandLine(moment)
	noError(t, person.ChangePassword(t.Context(), "", "$password", "", by))
	here := newSession(t, db, user)
	signIn := func(factorAt int64) (opened bool) {
		opened, err := db.Auth().OpenSession(t.Context(), rand.Text(), people.Session{
			ID: ids.New(), UserID: user, CreatedAt: moment, SeenAt: moment, ExpiresAt: moment + 1000, PasswordAt: moment, FactorAt: factorAt,
		}, []byte{1})
		if err != nil {
			t.Error(err)
		}
		return opened
	}

	// The authenticator is written and waits for the log, which is locked, when the sign-in
	// by password alone ends.
	lock, err := connect(t, storetest.URL(t)).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `SELECT FROM audit_heads WHERE org_id = $1 FOR UPDATE`, org.ID)
	watch := connect(t, storetest.URL(t))
	waiting := func(pid string) []string {
		return texts(t, watch, `SELECT pid::text FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid))`, pid)
	}
	added, opened := make(chan error, 1), make(chan bool, 1)
	by.At++
	go func() {
		added <- person.AddFactor(t.Context(), people.Factor{SealedSeed: []byte("seed")}, []credential.Hash{{1}}, here, by)
	}()
	var adding []string
	soon(t, "the authenticator waits", func() bool {
		adding = waiting(texts(t, lock, `SELECT pg_backend_pid()::text`)[0])
		return len(adding) == 1
	})
	go func() { opened <- signIn(0) }()
	soon(t, "the sign-in waits or has ended", func() bool { return len(opened) == 1 || len(waiting(adding[0])) == 1 })
	noError(t, lock.Rollback(t.Context()))
	noError(t, <-added)
	if <-opened {
		t.Error("a sign-in without a code opened a session while the authenticator was added")
	}

	first := by.At
	if signIn(0) {
		t.Error("a session opens without a code")
	}
	if !signIn(first) {
		t.Error("no session opens with a code")
	}
	noError(t, person.RemoveFactor(t.Context(), here, by))
	if signIn(first) {
		t.Error("a session opens with the code of an authenticator that was removed")
	}
	by.At++
	noError(t, person.AddFactor(t.Context(), people.Factor{SealedSeed: []byte("seed")}, nil, here, by))
	if signIn(first) {
		t.Error("a session opens with the code of an authenticator that was replaced")
	}
}

// TestAnAuthenticatorBesideARevokedAccess has both end the same two sessions. The
// authenticator holds the second one, so a revocation that took the first would deadlock.
func TestAnAuthenticatorBesideARevokedAccess(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only these two wait for locks
	db := openStore(t, url)
	org := newOrganization(t, db, "Revoked")
	owner := newMember(t, db, org, tenancy.Owner)
	for name, revoke := range map[string]func(user ids.ID) error{
		"removed from the organization": func(user ids.ID) error { return orgAs(db, owner).RemoveMember(t.Context(), user) },
		"made an owner": func(user ids.ID) error {
			_, err := db.Auth().MakeOwner(t.Context(), people.OrgRef{ID: org.ID}, user.String()+"@example.com", people.CommandLine(moment))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			user := newMember(t, db, org, tenancy.Support).UserID
			person := db.User(user)
			noError(t, person.ChangePassword(t.Context(), "", "$password", "", people.CommandLine(moment)))
			newSession(t, db, user)
			here := newSession(t, db, user)
			lock, err := connect(t, url).Begin(t.Context())
			noError(t, err)
			exec(t, lock, `INSERT INTO second_factors (user_id, sealed_seed, created_at, last_step) VALUES ($1, 'seed', 1, 1)`, user)
			added, revoked := make(chan error, 1), make(chan error, 1)
			go func() {
				added <- person.AddFactor(t.Context(), people.Factor{SealedSeed: []byte("seed")}, nil, here, people.CommandLine(moment))
			}()
			soon(t, "the authenticator waits", func() bool { return lockWaits(t, url, "%") == 1 })
			go func() { revoked <- revoke(user) }()
			soon(t, "the revocation waits", func() bool { return lockWaits(t, url, "%") == 2 })
			noError(t, lock.Rollback(t.Context()))
			noError(t, <-added)
			noError(t, <-revoked)
			if list, _, err := person.Sessions(t.Context(), here, moment); err != nil || len(list) > 0 {
				t.Errorf("the sessions are %+v, %v", list, err)
			}
		})
	}
}

// TestAResetLinkBesideAChangedPassword has both end the link. The change holds the
// password, so a reset that took the link first would deadlock.
func TestAResetLinkBesideAChangedPassword(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t) // alone, so that only these two wait for locks
	db := openStore(t, url)
	user := newMember(t, db, newOrganization(t, db, "Links"), tenancy.Owner).UserID
	by, link := people.CommandLine(moment), credential.Hash{1}
	noError(t, db.User(user).ChangePassword(t.Context(), "", "$first", "", by))
	_, offered, err := db.Auth().OfferReset(t.Context(), ids.New(), user.String()+"@example.com", link, moment)
	if err != nil || !offered {
		t.Fatalf("the link was offered: %t, %v", offered, err)
	}
	here := newSession(t, db, user)
	lock, err := connect(t, url).Begin(t.Context())
	noError(t, err)
	exec(t, lock, `SELECT FROM sessions WHERE user_id = $1 FOR UPDATE`, user)
	changed, replaced := make(chan error, 1), make(chan error, 1)
	go func() { changed <- db.User(user).ChangePassword(t.Context(), "$first", "$second", here, by) }()
	soon(t, "the change waits", func() bool { return lockWaits(t, url, "%") == 1 })
	go func() { replaced <- db.Auth().ReplaceForgotten(t.Context(), link, "$third", by) }()
	soon(t, "the reset waits", func() bool { return lockWaits(t, url, "%") == 2 })
	noError(t, lock.Rollback(t.Context()))
	noError(t, <-changed)
	wantFault(t, <-replaced, fault.PathNotFound) // a new password ends the link
}

func TestAnEndedSessionChangesNoAuthenticator(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	user := newMember(t, db, newOrganization(t, db, "Ended"), tenancy.Owner).UserID
	person := db.User(user)
	by := people.CommandLine(moment)
	noError(t, person.ChangePassword(t.Context(), "", "$password", "", by))
	ended, here := newSession(t, db, user), newSession(t, db, user)
	otherUsers := newSession(t, db, newMember(t, db, newOrganization(t, db, "Other"), tenancy.Owner).UserID)
	noError(t, person.EndOtherSessions(t.Context(), here))
	f, kept := people.Factor{SealedSeed: []byte("seed")}, credential.Hash{1}
	for _, token := range []string{ended, otherUsers, ""} {
		wantFault(t, person.AddFactor(t.Context(), f, []credential.Hash{{2}}, token, by), fault.RevisionConflict)
	}
	_, err := person.Factor(t.Context())
	wantFault(t, err, fault.PathNotFound)

	noError(t, person.AddFactor(t.Context(), f, []credential.Hash{kept}, here, by))
	for _, token := range []string{ended, otherUsers, ""} {
		wantFault(t, person.ReplaceRecoveryCodes(t.Context(), []credential.Hash{{2}}, token, by), fault.RevisionConflict)
		wantFault(t, person.RemoveFactor(t.Context(), token, by), fault.RevisionConflict)
	}
	if spent, err := person.UseRecoveryCode(t.Context(), kept); err != nil || !spent {
		t.Errorf("the recovery code works: %t, %v", spent, err)
	}
	noError(t, person.ReplaceRecoveryCodes(t.Context(), []credential.Hash{{2}}, here, by))
	noError(t, person.RemoveFactor(t.Context(), here, by))
}

func TestMakeOwner(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	by := people.CommandLine(moment)
	name := "Orphan " + ids.New().String()
	made, err := tenancy.NewOrganization(ids.New(), name, moment)
	noError(t, err)
	draft, err := tenancy.NewApplication(ids.New(), made, "Chat", false, moment)
	noError(t, err)
	app, err := db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: made.Name}, made, draft)
	noError(t, err)
	org, err := db.Org(app.OrgID).Organization(t.Context())
	noError(t, err)
	home := newOrganization(t, db, "Home")
	user, err := db.User(newMember(t, db, home, tenancy.Support).UserID).Profile(t.Context())
	noError(t, err)

	for _, first := range []bool{true, false} {
		newSession(t, db, user.ID)
		if made, err := db.Auth().MakeOwner(t.Context(), people.OrgRef{Name: name}, user.Email, by); err != nil || made != first {
			t.Errorf("it made them an owner: %t, %v", made, err)
		}
		sessions, _, err := db.User(user.ID).Sessions(t.Context(), "", moment)
		if noError(t, err); (len(sessions) == 0) != first {
			t.Errorf("%d sessions stay", len(sessions))
		}
	}
	members, err := db.Org(org.ID).Members(t.Context())
	if err != nil || len(members) != 1 || members[0].UserID != user.ID || members[0].Role != tenancy.Owner {
		t.Errorf("its members are %+v, %v", members, err)
	}
	if e := newest(t, db, org.ID); e.Action != "member.own" || e.Name != "command line" {
		t.Errorf("the log says %+v", e)
	}
	if members, err := db.Org(home.ID).Members(t.Context()); err != nil || members[0].Role != tenancy.Support {
		t.Errorf("their role elsewhere changed: %+v, %v", members, err)
	}

	own := func(org people.OrgRef, email string) error {
		_, err := db.Auth().MakeOwner(t.Context(), org, email, by)
		return err
	}
	wantFault(t, own(people.OrgRef{Name: name + "?"}, user.Email), fault.PathNotFound)
	wantFault(t, own(people.OrgRef{Name: name}, "nobody-"+ids.New().String()+"@example.com"), fault.PathNotFound)
	wantFault(t, own(people.OrgRef{Name: home.Name}, user.Email), fault.PathNotFound) // people made it
	wantFault(t, own(people.OrgRef{ID: ids.New()}, user.Email), fault.PathNotFound)
	noError(t, own(people.OrgRef{ID: home.ID}, user.Email))
	noError(t, own(people.OrgRef{Slug: home.Slug}, user.Email))
}
