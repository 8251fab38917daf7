package tenancy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"purser/fault"
	"purser/ids"
)

var org = ids.New()

func member(role Role, custom ...Permission) Member {
	return Member{OrgID: org, UserID: ids.New(), Access: Access{Role: role, Custom: PermissionsOf(custom...)}}
}

func access(role Role, custom ...Permission) Access { return member(role, custom...).Access }

func TestRoles(t *testing.T) {
	t.Run("owner may do everything", func(t *testing.T) {
		if Owner.Permissions() != AllPermissions() {
			t.Errorf("an owner has %s", Owner.Permissions())
		}
	})
	t.Run("admin may do all but change the organization itself", func(t *testing.T) {
		if lacks := AllPermissions().Minus(Admin.Permissions()); lacks != PermissionsOf(OrganizationWrite) {
			t.Errorf("an admin lacks %s", lacks)
		}
	})
	t.Run("developer moves no money and makes no keys", func(t *testing.T) {
		for _, p := range []Permission{DepositsWrite, SubscriptionsWrite, BalancesAdjust, KeysWrite, SettingsWrite, MembersWrite, AppsWrite} {
			if member(Developer).May(p) {
				t.Errorf("a developer has %s", p)
			}
		}
		for _, p := range []Permission{CreditsWrite, FeaturesWrite, PlansWrite, EventsIngest, RequestsRead, KeysRead} {
			if !member(Developer).May(p) {
				t.Errorf("a developer lacks %s", p)
			}
		}
	})
	t.Run("support sees wallets, deposits, journals, subscriptions and requests, and not keys", func(t *testing.T) {
		for _, p := range []Permission{WalletsRead, DepositsRead, JournalRead, SubscriptionsRead, FeaturesRead, PlansRead, RequestsRead} {
			if !member(Support).May(p) {
				t.Errorf("support lacks %s", p)
			}
		}
		if member(Support).May(KeysRead) {
			t.Error("support sees keys")
		}
	})
	t.Run("support changes nothing", func(t *testing.T) {
		for _, name := range Support.Permissions().Names() {
			if !strings.HasSuffix(name, ":read") {
				t.Errorf("support has %s", name)
			}
		}
	})
	t.Run("custom has what was chosen and no more", func(t *testing.T) {
		m := member(Custom, KeysWrite, EventsIngest)
		if m.Permissions() != PermissionsOf(KeysWrite, EventsIngest) || !m.May(KeysWrite) || m.May(KeysRead) {
			t.Errorf("got %s", m.Permissions())
		}
	})
	t.Run("a fixed role ignores a chosen set", func(t *testing.T) {
		if member(Support, KeysWrite).May(KeysWrite) {
			t.Error("support got a permission from a set that is not its own")
		}
	})
	t.Run("an unknown role opens nothing", func(t *testing.T) {
		if got := member("superuser", KeysWrite).Permissions(); !got.IsEmpty() {
			t.Errorf("it opens %s", got)
		}
	})
}

func TestParseAccess(t *testing.T) {
	for _, role := range Roles() {
		var names []string
		if role == Custom {
			names = []string{"wallets:read"}
		}
		if a, err := ParseAccess(string(role), names); err != nil || a.Role != role || a.Permissions().IsEmpty() {
			t.Errorf("%s gave %v, %v", role, a, err)
		}
	}
	for name, c := range map[string]struct {
		role  string
		names []string
	}{
		"an unknown role":                 {"superuser", nil},
		"no role":                         {"", nil},
		"a custom role without any":       {"custom", nil},
		"a fixed role with permissions":   {"support", []string{"keys:write"}},
		"a custom role with unknown ones": {"custom", []string{"everything"}},
	} {
		if _, err := ParseAccess(c.role, c.names); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckInvite(t *testing.T) {
	for name, c := range map[string]struct {
		by    Member
		given Access
		want  fault.Code
	}{
		"an owner invites an owner":                         {member(Owner), access(Owner), ""},
		"an admin invites an admin":                         {member(Admin), access(Admin), ""},
		"an admin cannot invite an owner":                   {member(Admin), access(Owner), fault.PermissionNotHeld},
		"a developer cannot invite":                         {member(Developer), access(Support), fault.PermissionDenied},
		"support cannot invite":                             {member(Support), access(Support), fault.PermissionDenied},
		"a custom member gives what they have":              {member(Custom, MembersWrite, WalletsRead), access(Custom, WalletsRead), ""},
		"a custom member cannot give what they lack":        {member(Custom, MembersWrite, WalletsRead), access(Custom, DepositsWrite), fault.PermissionNotHeld},
		"a custom member cannot give a role that has more":  {member(Custom, MembersWrite, WalletsRead), access(Support), fault.PermissionNotHeld},
		"every permission, one by one, makes no owner":      {member(Custom, allOf()...), access(Owner), fault.PermissionNotHeld},
		"every permission, one by one, makes an admin":      {member(Custom, allOf()...), access(Admin), ""},
		"nobody invites to a role that does not exist":      {member(Owner), access("superuser"), fault.InvalidRequest},
		"nobody invites to a custom role without any":       {member(Owner), access(Custom), fault.InvalidRequest},
		"nobody adds single permissions to a role of a set": {member(Owner), access(Support, KeysWrite), fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.by.CheckInvite(c.given), c.want) })
	}
}

func TestCheckWithdraw(t *testing.T) {
	for name, c := range map[string]struct {
		by    Member
		given Access
		want  fault.Code
	}{
		"an owner takes back an owner's invitation":          {member(Owner), access(Owner), ""},
		"an admin takes back an admin's invitation":          {member(Admin), access(Admin), ""},
		"an admin does not stop an owner from coming":        {member(Admin), access(Owner), fault.PermissionNotHeld},
		"a developer takes back nothing":                     {member(Developer), access(Support), fault.PermissionDenied},
		"nobody takes back what they could not give":         {member(Custom, MembersWrite), access(Support), fault.PermissionNotHeld},
		"what a later release has emptied can be taken back": {member(Admin), access(Custom), ""},
		"every permission, one by one, stops no owner":       {member(Custom, allOf()...), access(Owner), fault.PermissionNotHeld},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.by.CheckWithdraw(c.given), c.want) })
	}
}

func TestCheckChange(t *testing.T) {
	other := member(Support)
	other.OrgID = ids.New()
	for name, c := range map[string]struct {
		by, target Member
		given      Access
		owners     int
		want       fault.Code
	}{
		"an admin makes support a developer":             {member(Admin), member(Support), access(Developer), 1, ""},
		"an admin cannot make an owner":                  {member(Admin), member(Admin), access(Owner), 1, fault.PermissionNotHeld},
		"an admin cannot demote an owner":                {member(Admin), member(Owner), access(Support), 2, fault.PermissionNotHeld},
		"an owner demotes another owner":                 {member(Owner), member(Owner), access(Support), 2, ""},
		"the last owner is not demoted":                  {member(Owner), member(Owner), access(Admin), 1, fault.LastOwner},
		"the last owner stays an owner":                  {member(Owner), member(Owner), access(Owner), 1, ""},
		"nobody takes what they could not give":          {member(Custom, MembersWrite), member(Admin), access(Custom, MembersWrite), 1, fault.PermissionNotHeld},
		"a developer changes nobody":                     {member(Developer), member(Support), access(Support), 1, fault.PermissionDenied},
		"a member of another organization is not found":  {member(Owner), other, access(Admin), 1, fault.PathNotFound},
		"every permission, one by one, unmakes no owner": {member(Custom, allOf()...), member(Owner), access(Admin), 2, fault.PermissionNotHeld},
		"a role that does not exist is refused first":    {member(Support), other, access("superuser"), 1, fault.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.by.CheckChange(c.target, c.given, c.owners), c.want) })
	}
	t.Run("the last owner does not step down", func(t *testing.T) {
		me := member(Owner)
		expect(t, me.CheckChange(me, access(Admin), 1), fault.LastOwner)
		expect(t, me.CheckChange(me, access(Admin), 2), "")
	})
	t.Run("an admin does not raise themselves", func(t *testing.T) {
		me := member(Admin)
		expect(t, me.CheckChange(me, access(Owner), 1), fault.PermissionNotHeld)
	})
}

func TestCheckRemove(t *testing.T) {
	for name, c := range map[string]struct {
		by, target Member
		owners     int
		want       fault.Code
	}{
		"an admin removes an admin":            {member(Admin), member(Admin), 1, ""},
		"an admin cannot remove an owner":      {member(Admin), member(Owner), 2, fault.PermissionNotHeld},
		"an owner removes another owner":       {member(Owner), member(Owner), 2, ""},
		"the last owner is not removed":        {member(Owner), member(Owner), 1, fault.LastOwner},
		"a developer removes nobody":           {member(Developer), member(Support), 1, fault.PermissionDenied},
		"nobody removes who has more":          {member(Custom, MembersWrite), member(Support), 1, fault.PermissionNotHeld},
		"an owner of another org finds no-one": {Member{OrgID: ids.New(), Access: access(Owner)}, member(Support), 1, fault.PathNotFound},
	} {
		t.Run(name, func(t *testing.T) { expect(t, c.by.CheckRemove(c.target, c.owners), c.want) })
	}
	t.Run("anyone leaves, except the last owner", func(t *testing.T) {
		for _, role := range Roles() {
			me := member(role)
			expect(t, me.CheckRemove(me, 2), "")
			want := fault.Code("")
			if role == Owner {
				want = fault.LastOwner
			}
			expect(t, me.CheckRemove(me, 1), want)
		}
	})
	t.Run("the same person in another organization is not leaving this one", func(t *testing.T) {
		me := member(Support)
		there := me
		there.OrgID = ids.New()
		expect(t, there.CheckRemove(me, 2), fault.PathNotFound)
	})
}

func TestMembersGrantOnlyWhatTheyHave(t *testing.T) {
	accesses := rapid.Custom(func(t *rapid.T) Access {
		a := Access{Role: rapid.SampledFrom(Roles()).Draw(t, "role")}
		if a.Role == Custom {
			a.Custom = sets().Draw(t, "custom")
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		by := Member{OrgID: org, UserID: ids.ID{1}, Access: accesses.Draw(t, "by")}
		target := Member{OrgID: org, UserID: ids.ID{2}, Access: accesses.Draw(t, "target")}
		given := accesses.Draw(t, "given")
		holds := by.Permissions()
		reaches := func(a Access) bool {
			return holds.Has(MembersWrite) && a.Permissions().Within(holds) && (a.Role != Owner || by.Role == Owner)
		}
		if by.CheckInvite(given) == nil && !reaches(given) {
			t.Fatalf("%v invites with %v", by.Access, given)
		}
		if by.CheckWithdraw(given) == nil && !reaches(given) {
			t.Fatalf("%v withdraws an invitation with %v", by.Access, given)
		}
		if by.CheckManage(target) == nil && !reaches(target.Access) {
			t.Fatalf("%v manages %v", by.Access, target.Access)
		}
		if by.CheckChange(target, given, 2) == nil && !(reaches(target.Access) && reaches(given)) {
			t.Fatalf("%v makes %v into %v", by.Access, target.Access, given)
		}
		if by.CheckRemove(target, 2) == nil && !reaches(target.Access) {
			t.Fatalf("%v removes %v", by.Access, target.Access)
		}
		if target.Role == Owner && (by.CheckRemove(target, 1) == nil || given.Role != Owner && by.CheckChange(target, given, 1) == nil) {
			t.Fatalf("%v leaves the organization without an owner", by.Access)
		}
	})
}

func allOf() (all []Permission) {
	for p := range AllPermissions().Each() {
		all = append(all, p)
	}
	return all
}

func expect(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if want == "" && err != nil || want != "" && !fault.Is(err, want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
