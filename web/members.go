package web

import (
	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/views/page"
)

func (s *Site) members(v *visit) (answer, error) {
	roster, err := v.organization().Roster(v.context)
	if err != nil {
		return answer{}, err
	}
	open, err := v.organization().Invitations(v.context, s.now())
	if err != nil {
		return answer{}, err
	}
	m := page.Members{Frame: v.frame("Members", "members"), LeaveAction: v.orgPath("leave")}
	if v.may(tenancy.MembersWrite) {
		m.InviteHref = v.orgPath("members", "invite")
	}
	for _, p := range roster {
		row := page.MemberRow{
			Name: p.Name, Email: p.Email, Role: page.RoleName(p.Role), HasFactor: p.HasFactor,
			JoinedAt: p.CreatedAt, SeenAt: p.SeenAt, You: p.UserID == v.user.ID, InvitedAs: p.InvitedAs,
		}
		if v.member.CheckManage(p.Member) == nil {
			row.Href = v.orgPath("members", p.UserID.Format(ids.User))
		}
		m.People = append(m.People, row)
	}
	for _, i := range open {
		row := page.InvitationRow{Note: i.Note, Role: page.RoleName(i.Role), ExpiresAt: i.ExpiresAt}
		if v.member.CheckWithdraw(i.Access) == nil {
			row.Withdraw = v.orgPath("invitations", i.ID.Format(ids.Invitation), "withdraw")
		}
		m.Invitations = append(m.Invitations, row)
	}
	return show(page.MembersPage(m)), nil
}

// memberInPerson finds the member of the path.
func (v *visit) memberInPerson() (found store.MemberProfile, err error) {
	id, err := v.id("user", ids.User)
	if err != nil {
		return found, err
	}
	roster, err := v.organization().Roster(v.context)
	if err != nil {
		return found, err
	}
	for _, p := range roster {
		if p.UserID == id {
			return p, nil
		}
	}
	return found, fault.New(fault.PathNotFound)
}

func (s *Site) memberPage(v *visit) (answer, error) {
	p, err := v.memberInPerson()
	if err != nil {
		return answer{}, err
	}
	if err := v.member.CheckManage(p.Member); err != nil {
		return answer{}, err // a form that could only be refused
	}
	return show(page.MemberEditPage(v.memberEdit(p, v.accessForm(page.Draft{}, p.Access)))), nil
}

func (v *visit) memberEdit(p store.MemberProfile, access page.AccessForm) page.MemberEdit {
	self := v.orgPath("members", p.UserID.Format(ids.User))
	return page.MemberEdit{
		AccessForm: access, Frame: v.frame(p.Name, "members"), Name: p.Name, Email: p.Email,
		Action: self, RemoveAction: self + "/remove", Back: v.orgPath("members"),
	}
}

// accessForm offers what the person could give.
func (v *visit) accessForm(d page.Draft, chosen tenancy.Access) page.AccessForm {
	return page.AccessForm{
		Draft: d, Role: string(chosen.Role), Chosen: chosen.Custom,
		Holds: v.member.Permissions(), IsOwner: v.member.Role == tenancy.Owner,
	}
}

// access reads the role and the permissions that were chosen. Boxes that were
// ticked beside another role do not count.
func (f *form) access() (tenancy.Access, error) {
	var custom []string
	if f.text("role") == string(tenancy.Custom) {
		custom = f.list("permission")
	}
	access, err := tenancy.ParseAccess(f.text("role"), custom)
	return access, f.check("role", err)
}

func (s *Site) changeMember(v *visit) (answer, error) {
	p, err := v.memberInPerson()
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	given, err := f.access()
	if err != nil {
		return answer{}, err
	}
	if f.ok() {
		if err := f.check("role", v.organization().ChangeMember(v.context, p.UserID, given)); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		return invalid(page.MemberEditPage(v.memberEdit(p, v.accessForm(f.draft(), given)))), nil
	}
	return v.done(v.orgPath("members"), p.Name+" is now "+page.RoleName(given.Role)+".")
}

func (s *Site) removeMember(v *visit) (answer, error) {
	p, err := v.memberInPerson()
	if err != nil {
		return answer{}, err
	}
	if err := v.organization().RemoveMember(v.context, p.UserID); err != nil {
		return answer{}, err
	}
	if p.UserID == v.user.ID {
		return v.done("/o", "You left "+v.org.Name+".")
	}
	return v.done(v.orgPath("members"), p.Name+" removed.")
}

func (s *Site) leave(v *visit) (answer, error) {
	if err := v.organization().RemoveMember(v.context, v.user.ID); err != nil {
		return answer{}, err
	}
	return v.done("/o", "You left "+v.org.Name+".")
}
