package store_test

import (
	"crypto/rand"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/credential"
)

// The edge has looked before it asked; by now things may be different.
func TestInvitationsNeedWhatTheyGive(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Inviting")
	invite := func(by tenancy.Member, role tenancy.Role) error {
		return db.Org(org.ID).Invite(t.Context(), store.Invitation{
			ID: ids.New(), OrgID: org.ID, Note: "Bob", InvitedBy: by.UserID, CreatedAt: moment, ExpiresAt: moment + 1000, Access: tenancy.Access{Role: role},
		}, credential.Token(rand.Text()).Hash())
	}
	owner, admin, support := newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Admin), newMember(t, db, org, tenancy.Support)
	noError(t, invite(owner, tenancy.Owner))
	noError(t, invite(admin, tenancy.Admin))
	wantFault(t, invite(admin, tenancy.Owner), fault.PermissionNotHeld)
	wantFault(t, invite(support, tenancy.Support), fault.PermissionDenied)
	noError(t, db.Org(org.ID).RemoveMember(t.Context(), admin.UserID, func(tenancy.Member, int) error { return nil }))
	wantFault(t, invite(admin, tenancy.Support), fault.PathNotFound)
}
