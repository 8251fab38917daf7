package store_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/audit"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Members")
	owner, support := newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Support)
	handle := orgAs(db, owner)

	t.Run("are listed in the order in which they came", func(t *testing.T) {
		list, err := handle.Members(t.Context())
		noError(t, err)
		if want := []tenancy.Member{owner, support}; !slices.Equal(list, want) {
			t.Errorf("got %v, want %v", list, want)
		}
	})

	t.Run("come in once", func(t *testing.T) {
		wantFault(t, store.AddMember(t.Context(), db, support), fault.AlreadyExists)
	})

	t.Run("keep the permissions that were chosen for them", func(t *testing.T) {
		chosen := tenancy.Access{Role: tenancy.Custom, Custom: tenancy.PermissionsOf(tenancy.WalletsRead, tenancy.KeysWrite)}
		noError(t, handle.ChangeMember(t.Context(), support.UserID, chosen))
		list, err := handle.Members(t.Context())
		noError(t, err)
		if list[1].Access != chosen || list[1].CreatedAt != support.CreatedAt {
			t.Errorf("got %v", list[1])
		}
	})

	t.Run("stay as they are when it is refused", func(t *testing.T) {
		before, err := handle.Members(t.Context())
		noError(t, err)
		wantFault(t, handle.ChangeMember(t.Context(), owner.UserID, tenancy.Access{Role: tenancy.Support}), fault.LastOwner)
		wantFault(t, handle.RemoveMember(t.Context(), owner.UserID), fault.LastOwner)
		if after, err := handle.Members(t.Context()); err != nil || !slices.Equal(before, after) {
			t.Errorf("they changed from %v to %v, %v", before, after, err)
		}
	})

	t.Run("are not there for who is none of them", func(t *testing.T) {
		stranger := newMember(t, db, newOrganization(t, db, "Others"), tenancy.Owner)
		for name, foreign := range map[string]people.Org{"a stranger": db.Org(org.ID).By(actorOf(stranger)), "no actor": db.Org(org.ID)} {
			if err := foreign.RemoveMember(t.Context(), support.UserID); !fault.Is(err, fault.PathNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})

	t.Run("go, and are gone", func(t *testing.T) {
		noError(t, handle.RemoveMember(t.Context(), support.UserID))
		wantFault(t, handle.RemoveMember(t.Context(), support.UserID), fault.PathNotFound)
		wantFault(t, handle.ChangeMember(t.Context(), ids.New(), tenancy.Access{Role: tenancy.Support}), fault.PathNotFound)
		wantFault(t, orgAs(db, support).RemoveMember(t.Context(), owner.UserID), fault.PathNotFound)
	})
}

// actorOf is a member who acts by hand.
func actorOf(m tenancy.Member) audit.Actor {
	return audit.Actor{UserID: m.UserID, Name: "ann@example.com", At: moment}
}

// orgAs leads a member into their organization.
func orgAs(db *store.Store, m tenancy.Member) people.Org { return db.Org(m.OrgID).By(actorOf(m)) }

// The actor was checked by the edge, a moment before; what counts is what they
// are when the act is done.
func TestWhoActsIsLookedAtUnderTheLock(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	demote := func(t *testing.T, by, target tenancy.Member) error {
		return orgAs(db, by).ChangeMember(t.Context(), target.UserID, tenancy.Access{Role: tenancy.Support})
	}
	remove := func(t *testing.T, by, target tenancy.Member) error {
		return orgAs(db, by).RemoveMember(t.Context(), target.UserID)
	}
	for name, c := range map[string]struct {
		role tenancy.Role
		act  func(t *testing.T, by, target tenancy.Member) error
		late fault.Code // what the slower of the two is told
	}{
		"of two owners who demote each other one is too late": {tenancy.Owner, demote, fault.PermissionDenied},
		"of two owners who remove each other one is too late": {tenancy.Owner, remove, fault.PathNotFound},
		"of two admins who demote each other one is too late": {tenancy.Admin, demote, fault.PermissionDenied},
		"of two admins who remove each other one is too late": {tenancy.Admin, remove, fault.PathNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				org := newOrganization(t, db, "Rivals")
				newMember(t, db, org, tenancy.Owner) // so that nobody is the last
				both := [2]tenancy.Member{newMember(t, db, org, c.role), newMember(t, db, org, c.role)}
				var errs [2]error
				atOnce(2, func(i int) { errs[i] = c.act(t, both[i], both[1-i]) })
				if (errs[0] == nil) == (errs[1] == nil) {
					t.Fatalf("both ended alike: %v and %v", errs[0], errs[1])
				}
				wantFault(t, cmp.Or(errs[0], errs[1]), c.late)
			}
		})
	}
}

// Owners demote, remove and leave in every direction at once. Whatever the order,
// a member is left who can make an owner.
func TestAnOrganizationKeepsAnOwner(t *testing.T) {
	t.Parallel()
	db, random := storetest.Open(t), rand.New(rand.NewPCG(storetest.Seed(t), 0))
	for range 10 {
		org := newOrganization(t, db, "Owners")
		crowd := make([]tenancy.Member, 4)
		for i := range crowd {
			crowd[i] = newMember(t, db, org, tenancy.Owner)
		}
		acts := []func(by, target tenancy.Member) error{
			func(by, target tenancy.Member) error {
				return orgAs(db, by).ChangeMember(t.Context(), target.UserID, tenancy.Access{Role: tenancy.Admin})
			},
			func(by, target tenancy.Member) error { return orgAs(db, by).RemoveMember(t.Context(), target.UserID) },
			func(by, _ tenancy.Member) error { return orgAs(db, by).RemoveMember(t.Context(), by.UserID) },
		}
		targets := make([]int, len(crowd)*len(acts))
		for i := range targets {
			targets[i] = (i + 1 + random.IntN(len(crowd)-1)) % len(crowd)
		}
		atOnce(len(targets), func(i int) {
			by, target := i%len(crowd), targets[i]
			var refusal *fault.Fault
			if err := acts[i%len(acts)](crowd[by], crowd[target]); err != nil && !errors.As(err, &refusal) {
				t.Error(err)
			}
		})
		list, err := db.Org(org.ID).Members(t.Context())
		noError(t, err)
		if !slices.ContainsFunc(list, func(m tenancy.Member) bool { return m.Role == tenancy.Owner }) {
			t.Fatalf("left are %v", list)
		}
	}
}

// TestARosterHasTheDayOfTheNewestSession: a session is in no organization, so its time
// would show what a member does in another one.
func TestARosterHasTheDayOfTheNewestSession(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Roster")
	owner := newMember(t, db, org, tenancy.Owner)
	newSession(t, db, owner.UserID)
	list, err := db.Org(org.ID).Roster(t.Context())
	noError(t, err)
	if day := int64(24 * 60 * 60 * 1000); len(list) != 1 || list[0].SeenDay != moment-moment%day {
		t.Errorf("got %+v", list)
	}
}
