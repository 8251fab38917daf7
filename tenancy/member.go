package tenancy

import (
	"purser/fault"
	"purser/ids"
)

// Member is a person in an organization.
type Member struct {
	OrgID  ids.ID
	UserID ids.ID
	Access
	CreatedAt int64
}

func (m Member) May(p Permission) bool { return m.Permissions().Has(p) }

// CheckInvite refuses an invitation that m may not send.
func (m Member) CheckInvite(given Access) error {
	if err := given.check(); err != nil {
		return err
	}
	return m.checkReach(given)
}

// CheckWithdraw refuses to revoke an invitation that m could not have sent.
func (m Member) CheckWithdraw(given Access) error { return m.checkReach(given) }

// CheckManage refuses any action on the target. A member can manage only members whose
// access they could have granted, so demoting others gives no privilege.
func (m Member) CheckManage(target Member) error {
	if m.OrgID != target.OrgID {
		return fault.New(fault.PathNotFound)
	}
	return m.checkReach(target.Access)
}

// CheckChange refuses to give the target another access. Owners is how many the
// organization has, the target among them; it must be counted under a lock, or
// two owners could demote each other at once.
func (m Member) CheckChange(target Member, given Access, owners int) error {
	if err := given.check(); err != nil {
		return err
	}
	if err := m.CheckManage(target); err != nil {
		return err
	}
	if err := m.checkReach(given); err != nil {
		return err
	}
	if given.Role != Owner {
		return target.checkExpendable(owners)
	}
	return nil
}

// CheckRemove refuses to remove the target. Anyone may leave, except the last
// owner. Owners is counted as for CheckChange.
func (m Member) CheckRemove(target Member, owners int) error {
	leaving := m.OrgID == target.OrgID && m.UserID == target.UserID
	if !leaving {
		if err := m.CheckManage(target); err != nil {
			return err
		}
	}
	return target.checkExpendable(owners)
}

// Owners are made and unmade by owners only, even if someone else was given
// every permission one by one.
func (m Member) checkReach(access Access) error {
	if err := m.Permissions().Require(MembersWrite); err != nil {
		return err
	}
	if access.Role == Owner && m.Role != Owner {
		return fault.Newf(fault.PermissionNotHeld, "Only an owner can change or remove an owner.")
	}
	return m.Permissions().CheckGrant(access.Permissions())
}

func (m Member) checkExpendable(owners int) error {
	if m.Role == Owner && owners <= 1 {
		return fault.New(fault.LastOwner)
	}
	return nil
}
