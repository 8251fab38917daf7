package store_test

import (
	"slices"
	"testing"

	"purser/ids"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// TestOlderOrganizationsKeepTheNamesThatTheCommandLineUses goes back to the schema
// without command names and migrates again.
func TestOlderOrganizationsKeepTheNamesThatTheCommandLineUses(t *testing.T) {
	t.Parallel()
	address := storetest.FreshURL(t)
	db, owner := openStore(t, address), connect(t, address)
	draft := func(name string) (tenancy.Organization, tenancy.Application) {
		org, err := tenancy.NewOrganization(ids.New(), name, moment)
		noError(t, err)
		app, err := tenancy.NewApplication(ids.New(), org, "Chat", false, moment)
		noError(t, err)
		return org, app
	}
	provision := func(name string) {
		org, app := draft(name)
		_, err := db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, app)
		noError(t, err)
	}
	provision("adopted")

	// The setup adopts the organization above and creates another.
	user, err := tenancy.NewUser(ids.New(), "ann@example.com", "Ann", moment)
	noError(t, err)
	org, app := draft("setup")
	link := credential.Hash{1}
	_, err = db.Auth().OfferSetup(t.Context(), link, moment)
	noError(t, err)
	by := audit.Actor{UserID: user.ID, Name: user.Email, At: moment}
	_, err = db.Auth().CreateFirstAccount(t.Context(), link, people.Bootstrap{User: user, Encoded: "$", Org: org, App: app, By: by})
	noError(t, err)

	provision("owned")
	_, err = db.Auth().MakeOwner(t.Context(), people.OrgRef{Name: "owned"}, user.Email, people.CommandLine(moment))
	noError(t, err)
	provision("memberless")
	by.At++
	for _, name := range []string{"members'", "memberless", "owned"} {
		org, _ := draft(name)
		org, err := db.User(user.ID).CreateOrganization(t.Context(), org, by)
		noError(t, err)
		// An operator who adds an owner does not make the name theirs.
		other := newMember(t, db, org, tenancy.Support)
		person, err := db.User(other.UserID).Profile(t.Context())
		noError(t, err)
		_, err = db.Auth().MakeOwner(t.Context(), people.OrgRef{ID: org.ID}, person.Email, people.CommandLine(moment))
		noError(t, err)
	}
	const named = `SELECT command_name || ' ' || id FROM organizations WHERE command_name IS NOT NULL ORDER BY command_name`
	before := texts(t, owner, named)
	if len(before) != 4 {
		t.Fatalf("before: %v", before)
	}

	exec(t, owner, `ALTER TABLE passwords DROP COLUMN temporary_until`)
	exec(t, owner, `ALTER TABLE organizations DROP COLUMN command_name, DROP COLUMN requires_factor`)
	exec(t, owner, `DELETE FROM schema_migrations WHERE name = '20261115000025'`)
	noError(t, storetest.Migrate(t.Context(), address))
	if after := texts(t, owner, named); !slices.Equal(after, before) {
		t.Errorf("migrated, the names are\n%v, not\n%v", after, before)
	}
}
