package store_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	auth := db.Auth()
	owner := connect(t, storetest.URL(t))
	user := newMember(t, db, newOrganization(t, db, "Sessions"), tenancy.Owner).UserID
	open := func(t *testing.T, of ids.ID) (token string) {
		t.Helper()
		token = rand.Text()
		opened, err := auth.OpenSession(t.Context(), token, people.Session{
			ID: ids.New(), UserID: of, CreatedAt: moment, SeenAt: moment, ExpiresAt: moment + 1000, Address: "192.0.2.1", Agent: "Browser",
		}, []byte("content"))
		if err != nil || !opened {
			t.Fatalf("the session was opened: %t, %v", opened, err)
		}
		return token
	}
	found := func(t *testing.T, token string, since, now int64) bool {
		t.Helper()
		_, found, err := auth.SessionContent(t.Context(), token, since, now)
		noError(t, err)
		return found
	}

	t.Run("are found until they are over, and never by another token", func(t *testing.T) {
		token := open(t, user)
		for _, c := range []struct {
			token      string
			since, now int64
			want       bool
		}{
			{token, 0, moment, true}, {token, 0, moment + 999, true}, {token, 0, moment + 1000, false},
			{token, moment - 1, moment, true}, {token, moment, moment, false}, {strings.ToLower(token), 0, moment, false}, {"", 0, moment, false},
		} {
			if got := found(t, c.token, c.since, c.now); got != c.want {
				t.Errorf("%q at %d: %t", c.token, c.now, got)
			}
		}
	})

	t.Run("leave no token in the table", func(t *testing.T) {
		token := open(t, user)
		for _, row := range texts(t, owner, `SELECT to_jsonb(s)::text FROM sessions s WHERE user_id = $1`, user) {
			if strings.Contains(row, token) {
				t.Errorf("the token is in %s", row)
			}
		}
	})

	t.Run("that were ended stay ended", func(t *testing.T) {
		token := open(t, user)
		noError(t, auth.CloseSession(t.Context(), token))
		s := people.Session{UserID: user, SeenAt: moment + 100_000, ExpiresAt: moment + 200_000}
		if there, err := auth.ContinueSession(t.Context(), token, s, nil); err != nil || there {
			t.Errorf("it is there: %t, %v", there, err)
		}
		if touched, err := auth.TouchSession(t.Context(), token, s); err != nil || touched {
			t.Errorf("it was touched: %t, %v", touched, err)
		}
		if found(t, token, 0, moment) {
			t.Error("a request under way brought it back")
		}
	})

	t.Run("are noted as seen once a minute", func(t *testing.T) {
		token := open(t, user)
		for _, c := range []struct {
			after int64
			want  bool
		}{{59_999, false}, {60_000, true}, {60_001, false}} {
			at := moment + c.after
			touched, err := auth.TouchSession(t.Context(), token, people.Session{SeenAt: at, ExpiresAt: at + 1000})
			if err != nil || touched != c.want {
				t.Errorf("after %d ms it was touched: %t, %v", c.after, touched, err)
			}
		}
	})

	t.Run("of others cannot be ended, nor listed", func(t *testing.T) {
		stranger := newMember(t, db, newOrganization(t, db, "Others"), tenancy.Owner).UserID
		token := open(t, user)
		list, current, err := db.User(user).Sessions(t.Context(), token, moment)
		noError(t, err)
		wantFault(t, db.User(stranger).EndSession(t.Context(), current), fault.PathNotFound)
		noError(t, db.User(stranger).EndOtherSessions(t.Context(), ""))
		if !found(t, token, 0, moment) || len(list) == 0 {
			t.Error("a stranger ended it")
		}
		if theirs, _, err := db.User(stranger).Sessions(t.Context(), token, moment); err != nil || len(theirs) != 0 {
			t.Errorf("a stranger sees %v, %v", theirs, err)
		}
	})

	t.Run("end when the role changes, except in the hands of who changed their own", func(t *testing.T) {
		org := newOrganization(t, db, "Roles")
		first, second := newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Owner)
		mine, theirs := open(t, first.UserID), open(t, second.UserID)
		newMember(t, db, org, tenancy.Owner) // the last one cannot step down
		for _, m := range []tenancy.Member{second, first} {
			noError(t, orgAs(db, first).ChangeMember(t.Context(), m.UserID, tenancy.Access{Role: tenancy.Support}))
		}
		if !found(t, mine, 0, moment) || found(t, theirs, 0, moment) {
			t.Errorf("mine is there: %t, theirs: %t", found(t, mine, 0, moment), found(t, theirs, 0, moment))
		}
	})
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	auth := storetest.Open(t).Auth()
	subject := credential.Token(rand.Text()).Hash()
	var free atomic.Int32
	atOnce(16, func(int) {
		attempt, err := auth.Attempt(t.Context(), subject, credential.Hash{}, moment)
		if err != nil {
			t.Error(err)
		}
		if attempt.Wait == 0 {
			free.Add(1)
		}
	})
	if free.Load() != 5 {
		t.Errorf("%d attempts at once were free", free.Load())
	}
	if attempt, err := auth.Attempt(t.Context(), subject, credential.Hash{}, moment); err != nil || attempt.Wait != time.Second {
		t.Errorf("the next waits %s, %v", attempt.Wait, err)
	}
	noError(t, auth.ForgetAttempts(t.Context(), subject, credential.Hash{}))
	if attempt, err := auth.Attempt(t.Context(), subject, credential.Hash{}, moment); err != nil || attempt.Wait != 0 {
		t.Errorf("after success it waits %s, %v", attempt.Wait, err)
	}
}

func TestInvitationsAreAcceptedOnce(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Invited")
	owner := newMember(t, db, org, tenancy.Owner)
	i := people.Invitation{
		ID: ids.New(), OrgID: org.ID, Note: "Bob", InvitedBy: owner.UserID, CreatedAt: moment, ExpiresAt: moment + 1000,
		Access: tenancy.Access{Role: tenancy.Custom, Custom: tenancy.PermissionsOf(tenancy.WalletsRead)},
	}
	link := credential.Token(rand.Text()).Hash()
	noError(t, db.Org(org.ID).Invite(t.Context(), i, link))

	errs := make([]error, 8)
	users := make([]tenancy.User, len(errs))
	atOnce(len(errs), func(n int) {
		id := ids.New()
		users[n], _ = tenancy.NewUser(id, id.String()+"@example.com", "Bob", moment)
		_, errs[n] = db.Auth().AcceptInvitation(t.Context(), link, people.Acceptance{User: users[n], Encoded: "hash", By: audit.Actor{UserID: id, Name: "Bob", At: moment}})
	})
	wantOneWinner(t, errs, fault.PathNotFound)
	winner := slices.Index(errs, nil)
	around, err := db.User(users[winner].ID).PageContext(t.Context(), org.Slug)
	if err != nil || around.Member.Access != i.Access {
		t.Errorf("the winner is %+v, %v", around.Member, err)
	}
	for n, user := range users {
		if _, err := db.Auth().Account(t.Context(), user.Email); (err == nil) != (n == winner) {
			t.Errorf("number %d has an account: %v", n, err)
		}
	}
	if v, err := db.Org(org.ID).VerifyAudit(t.Context()); err != nil || v.Head.Number != 1 {
		t.Errorf("the log is %+v, %v", v, err)
	}
}

func TestLookStopsAtOnesOwn(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	mine, theirs := newTenant(t, db), newTenant(t, db)
	member := newMember(t, db, mine.org, tenancy.Support)
	around, err := db.User(member.UserID).PageContext(t.Context(), mine.org.Slug)
	noError(t, err)
	if around.Member != member || around.Org != mine.org || !slices.Equal(around.Applications, []tenancy.Application{mine.application}) || len(around.Organizations) != 1 {
		t.Errorf("got %+v", around)
	}
	_, err = db.User(member.UserID).PageContext(t.Context(), theirs.org.Slug)
	wantFault(t, err, fault.PathNotFound)
	_, err = db.User(member.UserID).PageContext(t.Context(), "no-such-organization")
	wantFault(t, err, fault.PathNotFound)
	_, err = db.User(ids.New()).PageContext(t.Context(), mine.org.Slug)
	wantFault(t, err, fault.PathNotFound)
}

func TestSecondFactorIsSpentOnce(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	member := newMember(t, db, newOrganization(t, db, "Factors"), tenancy.Owner)
	person := db.User(member.UserID)
	code := credential.Token("a recovery code")
	here := newSession(t, db, member.UserID)
	f := people.Factor{SealedSeed: []byte("sealed"), LastStep: 10}
	noError(t, person.AddFactor(t.Context(), f, []credential.Hash{code.Hash()}, here, people.CommandLine(moment)))
	wantFault(t, person.AddFactor(t.Context(), f, nil, here, people.CommandLine(moment)), fault.AlreadyExists)

	var steps, codes atomic.Int32
	atOnce(8, func(int) {
		if spent, err := person.UseStep(t.Context(), 11); err != nil {
			t.Error(err)
		} else if spent {
			steps.Add(1)
		}
		if spent, err := person.UseRecoveryCode(t.Context(), code.Hash()); err != nil {
			t.Error(err)
		} else if spent {
			codes.Add(1)
		}
	})
	if steps.Load() != 1 || codes.Load() != 1 {
		t.Errorf("the step was spent %d times, the code %d times", steps.Load(), codes.Load())
	}
	if spent, err := person.UseStep(t.Context(), 10); err != nil || spent {
		t.Errorf("an earlier step is spent: %t, %v", spent, err)
	}
	noError(t, person.RemoveFactor(t.Context(), here, people.CommandLine(moment)))
	_, err := person.Factor(t.Context())
	wantFault(t, err, fault.PathNotFound)
}
