package store_test

import (
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// The edge has looked before it asked; by now things may be different.
func TestInvitationsNeedWhatTheyGive(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Inviting")
	invite := func(by tenancy.Member, role tenancy.Role) error {
		return db.Org(org.ID).Invite(t.Context(), people.Invitation{
			ID: ids.New(), OrgID: org.ID, Note: "Bob", InvitedBy: by.UserID, CreatedAt: moment, ExpiresAt: moment + 1000, Access: tenancy.Access{Role: role},
		}, credential.Token(rand.Text()).Hash())
	}
	owner, admin, support := newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Admin), newMember(t, db, org, tenancy.Support)
	noError(t, invite(owner, tenancy.Owner))
	noError(t, invite(admin, tenancy.Admin))
	wantFault(t, invite(admin, tenancy.Owner), fault.PermissionNotHeld)
	wantFault(t, invite(support, tenancy.Support), fault.PermissionDenied)
	noError(t, orgAs(db, owner).RemoveMember(t.Context(), admin.UserID))
	wantFault(t, invite(admin, tenancy.Support), fault.PathNotFound)
}

func TestOpenInvitationsAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Inviting many")
	owner := newMember(t, db, org, tenancy.Owner)
	invite := func(email string, at int64) (ids.ID, error) {
		id := ids.New()
		return id, orgAs(db, owner).Invite(t.Context(), people.Invitation{
			ID: id, OrgID: org.ID, Note: "Bob", Email: email, InvitedBy: owner.UserID, CreatedAt: at, ExpiresAt: at + 1000, Access: tenancy.Access{Role: tenancy.Support},
		}, credential.Token(rand.Text()).Hash())
	}
	// refused counts the refusals of three at once.
	refused := func(email string) (number int64) {
		var refusals atomic.Int64
		atOnce(3, func(int) {
			if _, err := invite(email, moment); err != nil {
				wantFault(t, err, fault.InvalidRequest)
				refusals.Add(1)
			}
		})
		return refusals.Load()
	}
	_, err := invite("", moment-1000) // expires now
	noError(t, err)
	for range people.MaxMailedInvitations - 1 {
		_, err := invite("bob@example.com", moment)
		noError(t, err)
	}
	if got := refused("bob@example.com"); got != 2 {
		t.Errorf("%d of three mails at once are refused", got)
	}
	for range people.MaxOpenInvitations - people.MaxMailedInvitations - 1 {
		_, err := invite("", moment)
		noError(t, err)
	}
	if got := refused(""); got != 2 {
		t.Errorf("%d of three at once are refused", got)
	}
	list, err := db.Org(org.ID).Invitations(t.Context(), moment)
	noError(t, err)
	noError(t, orgAs(db, owner).WithdrawInvitation(t.Context(), list[0].ID, moment))
	if got := refused(""); len(list) != people.MaxOpenInvitations || got != 2 {
		t.Errorf("of %d one is withdrawn, and %d of three are refused", len(list), got)
	}
}

func TestMailsOfOneInviterAreBoundedInAllOrganizations(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	session := connect(t, storetest.URL(t))
	first, second := newOrganization(t, db, "Inviting first"), newOrganization(t, db, "Inviting next")
	owner, other := newMember(t, db, first, tenancy.Owner), newMember(t, db, second, tenancy.Owner)
	exec(t, session, `INSERT INTO members (org_id, user_id, role, permissions, created_at) VALUES ($1, $2, 'owner', '{}', 0)`, second.ID, owner.UserID)
	now := time.Now().UnixMilli() // as the ids
	invite := func(org tenancy.Organization, by tenancy.Member, email string, at int64) error {
		by.OrgID = org.ID
		return orgAs(db, by).Invite(t.Context(), people.Invitation{
			ID: ids.New(), OrgID: org.ID, Note: "Bob", Email: email, InvitedBy: by.UserID, CreatedAt: at, ExpiresAt: at + 1000, Access: tenancy.Access{Role: tenancy.Support},
		}, credential.Token(rand.Text()).Hash())
	}
	const address = "bob@example.com"
	noError(t, invite(first, owner, address, now-(24*time.Hour).Milliseconds())) // a day ago
	noError(t, invite(first, owner, "", now))
	for range people.MaxMailedInvitations - 1 {
		noError(t, invite(first, owner, address, now))
	}
	var refused atomic.Int64
	atOnce(3, func(n int) {
		if err := invite([]tenancy.Organization{first, second}[n%2], owner, address, now); err != nil {
			wantFault(t, err, fault.InvalidRequest)
			refused.Add(1)
		}
	})
	if refused.Load() != 2 {
		t.Errorf("%d of three mails at once are refused", refused.Load())
	}
	newMember(t, db, first, tenancy.Owner)
	noError(t, orgAs(db, owner).RemoveMember(t.Context(), owner.UserID)) // mails that were sent still count
	wantFault(t, invite(second, owner, address, now), fault.InvalidRequest)
	noError(t, invite(second, owner, "", now))
	noError(t, invite(second, other, address, now))
}

// An admin who could close an owner's invitation would keep owners out. And what is
// looked at is the admin of this moment, not the one whose page had the button.
func TestWithdrawingAnInvitationNeedsWhatItGives(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Withdrawing")
	owner, admin := newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Admin)
	invite := func(role tenancy.Role) (ids.ID, credential.Hash) {
		id, link := ids.New(), credential.Token(rand.Text()).Hash()
		noError(t, orgAs(db, owner).Invite(t.Context(), people.Invitation{
			ID: id, OrgID: org.ID, Note: "Bob", InvitedBy: owner.UserID, CreatedAt: moment, ExpiresAt: moment + 1000, Access: tenancy.Access{Role: role},
		}, link))
		return id, link
	}
	toOwner, link := invite(tenancy.Owner)
	toSupport, _ := invite(tenancy.Support)

	wantFault(t, orgAs(db, admin).WithdrawInvitation(t.Context(), toOwner, moment), fault.PermissionNotHeld)
	if _, _, err := db.Auth().Invitation(t.Context(), link, moment); err != nil {
		t.Errorf("the refused one is closed: %v", err)
	}
	noError(t, orgAs(db, admin).WithdrawInvitation(t.Context(), toSupport, moment))
	wantFault(t, orgAs(db, admin).WithdrawInvitation(t.Context(), toSupport, moment), fault.PathNotFound)

	third, _ := invite(tenancy.Support)
	noError(t, orgAs(db, owner).ChangeMember(t.Context(), admin.UserID, tenancy.Access{Role: tenancy.Developer}))
	wantFault(t, orgAs(db, admin).WithdrawInvitation(t.Context(), third, moment), fault.PermissionDenied)
	noError(t, orgAs(db, owner).RemoveMember(t.Context(), admin.UserID))
	wantFault(t, orgAs(db, admin).WithdrawInvitation(t.Context(), third, moment), fault.PathNotFound)
	noError(t, orgAs(db, owner).WithdrawInvitation(t.Context(), toOwner, moment))

	log, _, err := db.Org(org.ID).AuditLog(t.Context(), people.AuditPage{Action: "invitation.withdraw", Limit: 10})
	noError(t, err)
	if len(log) != 2 {
		t.Fatalf("the log tells of %d", len(log))
	}
	if before, _ := log[0].Fields(); before["role"] != "owner" || before["for"] != "Bob" {
		t.Errorf("the log tells of %v", before)
	}
}

// Pages list all members of an organization, and a user's changes are in the log of each of
// their organizations.
func TestMembersAndMembershipsAreBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	session := connect(t, storetest.URL(t))
	accept := func(org tenancy.Organization, by tenancy.Member, user tenancy.User) error {
		link := credential.Token(rand.Text()).Hash()
		noError(t, orgAs(db, by).Invite(t.Context(), people.Invitation{
			ID: ids.New(), OrgID: org.ID, Note: "Bob", InvitedBy: by.UserID, CreatedAt: moment, ExpiresAt: moment + 1000, Access: tenancy.Access{Role: tenancy.Support},
		}, link))
		_, err := db.Auth().AcceptInvitation(t.Context(), link, people.Acceptance{User: user, By: audit.Actor{UserID: user.ID, Name: user.Email, At: moment}})
		return err
	}
	person := func() tenancy.User {
		user, err := tenancy.NewUser(ids.New(), ids.New().String()+"@example.com", "Ann", moment)
		noError(t, err)
		noError(t, store.CreateUser(t.Context(), db, user))
		return user
	}
	// refused counts the refusals of three at once.
	refused := func(try func(int) error) int64 {
		var refusals atomic.Int64
		atOnce(3, func(n int) {
			if err := try(n); err != nil {
				wantFault(t, err, fault.InvalidRequest)
				refusals.Add(1)
			}
		})
		return refusals.Load()
	}

	t.Run("members of an organization", func(t *testing.T) {
		org := newOrganization(t, db, "Crowded")
		owner := newMember(t, db, org, tenancy.Owner)
		exec(t, session, `WITH made AS (
				INSERT INTO users (id, email, name, created_at) SELECT gen_random_uuid(), gen_random_uuid() || '@example.com', 'Bob', 0 FROM generate_series(1, $2::int) RETURNING id)
			INSERT INTO members (org_id, user_id, role, permissions, created_at) SELECT $1, id, 'support', '{}', 0 FROM made`, org.ID, people.MaxMembers-2)
		list := []tenancy.User{person(), person(), person()}
		if got := refused(func(n int) error { return accept(org, owner, list[n]) }); got != 2 {
			t.Errorf("%d of three at once are refused", got)
		}
	})
	t.Run("organizations of a user", func(t *testing.T) {
		user := person()
		exec(t, session, `WITH made AS (
				INSERT INTO organizations (id, slug, name, created_at) SELECT id, id, 'Many', 0 FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, $2::int)) g RETURNING id)
			INSERT INTO members (org_id, user_id, role, permissions, created_at) SELECT id, $1, 'support', '{}', 0 FROM made`, user.ID, people.MaxMemberships-1)
		var orgs []tenancy.Organization
		var owners []tenancy.Member
		for range 3 {
			orgs = append(orgs, newOrganization(t, db, "One more"))
			owners = append(owners, newMember(t, db, orgs[len(orgs)-1], tenancy.Owner))
		}
		if got := refused(func(n int) error { return accept(orgs[n], owners[n], user) }); got != 2 {
			t.Errorf("%d of three at once are refused", got)
		}
	})
}
