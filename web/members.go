package web

import (
	"purser/fault"
	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
	"purser/views/component"
	orgpage "purser/views/page/org"
)

func (s *Site) members(req *request) (response, error) {
	roster, err := req.organization().Roster(req.context)
	if err != nil {
		return response{}, err
	}
	open, err := req.organization().Invitations(req.context, s.now())
	if err != nil {
		return response{}, err
	}
	m := orgpage.Members{Frame: req.frame("Members", "members"), LeaveAction: req.orgPath("leave")}
	if req.may(tenancy.MembersWrite) {
		m.InviteHref = req.orgPath("members", "invite")
	}
	if s.mail != nil && req.may(tenancy.MembersWrite) {
		if m.MailLateSince, err = s.mail.LateSince(req.context); err != nil {
			return response{}, err
		}
	}
	for _, p := range roster {
		row := orgpage.MemberRow{
			Name: p.Name, Email: p.Email, Role: orgpage.RoleName(p.Role), HasFactor: p.HasFactor,
			JoinedAt: p.CreatedAt, SeenAt: p.SeenAt, You: p.UserID == req.user.ID, InvitedAs: p.InvitedAs,
		}
		if req.member.CheckManage(p.Member) == nil {
			row.Href = req.orgPath("members", p.UserID.Format(ids.User))
		}
		m.People = append(m.People, row)
	}
	for _, i := range open {
		row := orgpage.InvitationRow{Note: i.Note, Email: i.Email, Role: orgpage.RoleName(i.Role), ExpiresAt: i.ExpiresAt}
		if req.member.CheckWithdraw(i.Access) == nil {
			row.Withdraw = req.orgPath("invitations", i.ID.Format(ids.Invitation), "withdraw")
		}
		m.Invitations = append(m.Invitations, row)
	}
	return show(orgpage.MembersPage(m)), nil
}

// pathMember is the member of the path.
func pathMember(req *request) (found people.MemberProfile, err error) {
	id, err := req.id("user", ids.User)
	if err != nil {
		return found, err
	}
	roster, err := req.organization().Roster(req.context)
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

func (s *Site) memberPage(req *request) (response, error) {
	p, err := pathMember(req)
	if err != nil {
		return response{}, err
	}
	if err := req.member.CheckManage(p.Member); err != nil {
		return response{}, err // the form could only be refused
	}
	return show(orgpage.MemberEditPage(memberEdit(req, p, accessForm(req, component.Draft{}, p.Access)))), nil
}

func memberEdit(req *request, p people.MemberProfile, access orgpage.AccessForm) orgpage.MemberEdit {
	self := req.orgPath("members", p.UserID.Format(ids.User))
	return orgpage.MemberEdit{
		AccessForm: access, Frame: req.frame(p.Name, "members"), Name: p.Name, Email: p.Email,
		Action: self, RemoveAction: self + "/remove", Back: req.orgPath("members"),
	}
}

// accessForm offers the roles and permissions that the member may grant.
func accessForm(req *request, d component.Draft, chosen tenancy.Access) orgpage.AccessForm {
	return orgpage.AccessForm{
		Draft: d, Role: string(chosen.Role), Chosen: chosen.Custom,
		Holds: req.member.Permissions(), IsOwner: req.member.Role == tenancy.Owner,
	}
}

// readAccess reads the chosen role and permissions. Permissions checked for another role are
// ignored.
func readAccess(f *form) (tenancy.Access, error) {
	var custom []string
	if f.text("role") == string(tenancy.Custom) {
		custom = f.list("permission")
	}
	access, err := tenancy.ParseAccess(f.text("role"), custom)
	return access, f.check("role", err)
}

func (s *Site) changeMember(req *request) (response, error) {
	p, err := pathMember(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	given, err := readAccess(f)
	if err != nil {
		return response{}, err
	}
	if f.ok() {
		if err := f.check("role", req.organization().ChangeMember(req.context, p.UserID, given)); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		return invalid(orgpage.MemberEditPage(memberEdit(req, p, accessForm(req, f.draft(), given)))), nil
	}
	return req.done(req.orgPath("members"), p.Name+" is now "+orgpage.RoleName(given.Role)+".")
}

func (s *Site) removeMember(req *request) (response, error) {
	p, err := pathMember(req)
	if err != nil {
		return response{}, err
	}
	if err := req.organization().RemoveMember(req.context, p.UserID); err != nil {
		return response{}, err
	}
	if p.UserID == req.user.ID {
		return req.done("/o", "You left "+req.org.Name+".")
	}
	return req.done(req.orgPath("members"), p.Name+" removed.")
}

func (s *Site) leave(req *request) (response, error) {
	if err := req.organization().RemoveMember(req.context, req.user.ID); err != nil {
		return response{}, err
	}
	return req.done("/o", "You left "+req.org.Name+".")
}
