package tenancy

import "purser/fault"

// Role names what a member is to the organization. It is kept as this text.
type Role string

// The roles. Custom has no permissions of its own: they are chosen one by one.
const (
	Owner     Role = "owner"
	Admin     Role = "admin"
	Developer Role = "developer"
	Support   Role = "support"
	Custom    Role = "custom"
)

// Roles lists them, from the one that may do the most.
func Roles() []Role { return []Role{Owner, Admin, Developer, Support, Custom} }

// Permissions are those of the role. Only keys store a set of their own: a role may gain
// a permission in a later release.
func (r Role) Permissions() Permissions {
	switch r {
	case Owner:
		return AllPermissions()
	case Admin:
		return AllPermissions().Minus(PermissionsOf(OrganizationWrite))
	case Developer:
		// Builds the catalog and looks at everything. Moves no money: deposits,
		// subscriptions and keys (which could do both) are for admins.
		return ReadPermissions().Union(PermissionsOf(
			CreditsWrite, FeaturesWrite, PlansWrite, WalletsWrite, EventsIngest,
			RequestsRead, KeysRead, MembersRead,
		))
	case Support:
		// Explains any balance, denial and request, and changes nothing.
		return ReadPermissions().With(RequestsRead)
	default:
		return Permissions{}
	}
}

// Access is what a member or an invitation is given: a role and, for Custom
// alone, the permissions.
type Access struct {
	Role   Role
	Custom Permissions
}

// Permissions is the whole of what the access opens.
func (a Access) Permissions() Permissions {
	if a.Role == Custom {
		return a.Custom
	}
	return a.Role.Permissions()
}

// Version tells an access from what it was before a change: the role and, for Custom, the
// permissions.
func (a Access) Version() string {
	if a.Role == Custom {
		return string(a.Role) + ": " + a.Custom.String()
	}
	return string(a.Role)
}

// ParseAccess reads a role and the names of the permissions chosen with it.
func ParseAccess(role string, custom []string) (Access, error) {
	set, err := ParsePermissions(custom)
	if err != nil {
		return Access{}, err
	}
	a := Access{Role: Role(role), Custom: set}
	return a, a.check()
}

func (a Access) check() error {
	switch a.Role {
	case Owner, Admin, Developer, Support:
		if !a.Custom.IsEmpty() {
			return fault.Newf(fault.InvalidRequest, "Individual permissions are only for the Custom role.")
		}
	case Custom:
		if a.Custom.IsEmpty() {
			return fault.Newf(fault.InvalidRequest, "Select at least one permission.")
		}
	default:
		return fault.Newf(fault.InvalidRequest, "Unknown role %.40q.", string(a.Role))
	}
	return nil
}
