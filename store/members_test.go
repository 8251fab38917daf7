package store_test

import (
	"cmp"
	"slices"
	"testing"

	"purser/fault"
	"purser/ids"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	org := newOrganization(t, db, "Members")
	door := db.Org(org.ID)
	owner, support := newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Support)

	t.Run("are listed in the order in which they came", func(t *testing.T) {
		list, err := door.Members(t.Context())
		noError(t, err)
		if want := []tenancy.Member{owner, support}; !slices.Equal(list, want) {
			t.Errorf("got %v, want %v", list, want)
		}
	})

	t.Run("come in once", func(t *testing.T) {
		wantFault(t, door.AddMember(t.Context(), support), fault.AlreadyExists)
	})

	t.Run("keep the permissions that were chosen for them", func(t *testing.T) {
		chosen := tenancy.Access{Role: tenancy.Custom, Custom: tenancy.PermissionsOf(tenancy.WalletsRead, tenancy.KeysWrite)}
		noError(t, door.ChangeMember(t.Context(), support.UserID, func(m tenancy.Member, owners int) (tenancy.Member, error) {
			if m != support || owners != 1 {
				t.Errorf("the rule sees %v and %d owners", m, owners)
			}
			m.Access = chosen
			return m, nil
		}))
		list, err := door.Members(t.Context())
		noError(t, err)
		if list[1].Access != chosen || list[1].CreatedAt != support.CreatedAt {
			t.Errorf("got %v", list[1])
		}
	})

	t.Run("stay as they are when the rule refuses", func(t *testing.T) {
		before, err := door.Members(t.Context())
		noError(t, err)
		refusal := fault.New(fault.LastOwner)
		wantFault(t, door.ChangeMember(t.Context(), owner.UserID, func(m tenancy.Member, _ int) (tenancy.Member, error) {
			m.Role = tenancy.Support
			return m, refusal
		}), fault.LastOwner)
		wantFault(t, door.RemoveMember(t.Context(), owner.UserID, func(tenancy.Member, int) error { return refusal }), fault.LastOwner)
		if after, err := door.Members(t.Context()); err != nil || !slices.Equal(before, after) {
			t.Errorf("they changed from %v to %v, %v", before, after, err)
		}
	})

	t.Run("go, and are gone", func(t *testing.T) {
		noError(t, door.RemoveMember(t.Context(), support.UserID, func(tenancy.Member, int) error { return nil }))
		wantFault(t, door.RemoveMember(t.Context(), support.UserID, func(tenancy.Member, int) error { return nil }), fault.PathNotFound)
		wantFault(t, door.ChangeMember(t.Context(), ids.New(), nil), fault.PathNotFound)
	})
}

// Each owner is right to demote the other, by what they see. Both at once would
// leave nobody who could ever make an owner again.
func TestAnOrganizationKeepsAnOwner(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	for name, act := range map[string]func(t *testing.T, by, target tenancy.Member) error{
		"when two demote each other at once": func(t *testing.T, by, target tenancy.Member) error {
			return db.Org(by.OrgID).ChangeMember(t.Context(), target.UserID, func(m tenancy.Member, owners int) (tenancy.Member, error) {
				err := by.CheckChange(m, tenancy.Access{Role: tenancy.Support}, owners)
				m.Access = tenancy.Access{Role: tenancy.Support}
				return m, err
			})
		},
		"when two remove each other at once": func(t *testing.T, by, target tenancy.Member) error {
			return db.Org(by.OrgID).RemoveMember(t.Context(), target.UserID, func(m tenancy.Member, owners int) error {
				return by.CheckRemove(m, owners)
			})
		},
		"when two leave at once": func(t *testing.T, by, _ tenancy.Member) error {
			return db.Org(by.OrgID).RemoveMember(t.Context(), by.UserID, func(m tenancy.Member, owners int) error {
				return m.CheckRemove(m, owners)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				org := newOrganization(t, db, "Owners")
				both := [2]tenancy.Member{newMember(t, db, org, tenancy.Owner), newMember(t, db, org, tenancy.Owner)}
				var errs [2]error
				atOnce(2, func(i int) { errs[i] = act(t, both[i], both[1-i]) })
				list, err := db.Org(org.ID).Members(t.Context())
				noError(t, err)
				owners := slices.DeleteFunc(list, func(m tenancy.Member) bool { return m.Role != tenancy.Owner })
				if len(owners) != 1 || (errs[0] == nil) == (errs[1] == nil) {
					t.Fatalf("left are %v, after %v and %v", owners, errs[0], errs[1])
				}
				wantFault(t, cmp.Or(errs[0], errs[1]), fault.LastOwner)
			}
		})
	}
}
