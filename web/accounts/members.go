package accounts

import (
	"purser/fault"
	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
	"purser/views/component"
	orgpage "purser/views/page/org"
	"purser/web/site"
)

func (s *Pages) members(req *site.Request) (site.Response, error) {
	roster, err := req.Organization().Roster(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	open, err := req.Organization().Invitations(req.Context, s.Now())
	if err != nil {
		return site.Response{}, err
	}
	m := orgpage.Members{Frame: req.Frame("Members", "members"), LeaveAction: req.OrgPath("leave")}
	if req.May(tenancy.MembersWrite) && !req.Org.IsArchived() {
		m.InviteHref = req.OrgPath("members", "invite")
	}
	if s.Mail != nil && req.May(tenancy.MembersWrite) {
		if m.MailLateSince, err = s.Mail.LateSince(req.Context); err != nil {
			return site.Response{}, err
		}
	}
	for _, p := range roster {
		row := orgpage.MemberRow{
			Name: p.Name, Email: p.Email, Role: orgpage.RoleName(p.Role), HasFactor: p.HasFactor,
			JoinedAt: p.CreatedAt, SeenDay: p.SeenDay, You: p.UserID == req.User.ID, InvitedAs: p.InvitedAs,
		}
		if req.Member.CheckManage(p.Member) == nil {
			row.Href = req.OrgPath("members", p.UserID.Format(ids.User))
		}
		m.People = append(m.People, row)
	}
	for _, i := range open {
		row := orgpage.InvitationRow{Note: i.Note, Email: i.Email, Role: orgpage.RoleName(i.Role), ExpiresAt: i.ExpiresAt}
		if req.Member.CheckWithdraw(i.Access) == nil {
			row.Withdraw = req.OrgPath("invitations", i.ID.Format(ids.Invitation), "withdraw")
		}
		m.Invitations = append(m.Invitations, row)
	}
	return site.Show(orgpage.MembersPage(m)), nil
}

func pathMember(req *site.Request) (found people.MemberProfile, err error) {
	id, err := req.ID("user", ids.User)
	if err != nil {
		return found, err
	}
	roster, err := req.Organization().Roster(req.Context)
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

func (s *Pages) memberPage(req *site.Request, p people.MemberProfile) (site.Response, error) {
	if err := req.Member.CheckManage(p.Member); err != nil {
		return site.Response{}, err // the form could only be refused
	}
	return site.Show(orgpage.MemberEditPage(memberEdit(req, p, accessForm(req, component.Draft{}, p.Access), p.Version()))), nil
}

func memberEdit(req *site.Request, p people.MemberProfile, access orgpage.AccessForm, version string) orgpage.MemberEdit {
	self := req.OrgPath("members", p.UserID.Format(ids.User))
	return orgpage.MemberEdit{
		AccessForm: access, Version: version, Frame: req.Frame(p.Name, "members"), Name: p.Name, Email: p.Email,
		Action: self, RemoveAction: self + "/remove", Back: req.OrgPath("members"),
	}
}

// accessForm offers the roles and permissions that the member may grant.
func accessForm(req *site.Request, d component.Draft, chosen tenancy.Access) orgpage.AccessForm {
	return orgpage.AccessForm{
		Draft: d, Role: string(chosen.Role), Chosen: chosen.Custom,
		Holds: req.Member.Permissions(), IsOwner: req.Member.Role == tenancy.Owner,
	}
}

// readAccess reads the chosen role and permissions. Permissions checked for another role are
// ignored.
func readAccess(f *site.Form) tenancy.Access {
	var custom []string
	if f.Text("role") == string(tenancy.Custom) {
		custom = f.List("permission")
	}
	access, err := tenancy.ParseAccess(f.Text("role"), custom)
	f.Check("role", err)
	return access
}

func (s *Pages) changeMember(req *site.Request, p people.MemberProfile) (site.Response, error) {
	f := req.Form
	given := readAccess(f)
	if f.OK() {
		err := req.Organization().ChangeMember(req.Context, p.UserID, given, f.Raw("version"))
		if fault.Is(err, fault.RevisionConflict) {
			return memberConflict(req, given)
		}
		f.Check("role", err)
	}
	if !f.OK() {
		return site.Invalid(orgpage.MemberEditPage(memberEdit(req, p, accessForm(req, f.Draft(), given), f.Raw("version")))), nil
	}
	return req.Done(req.OrgPath("members"), p.Name+" is now "+orgpage.RoleName(given.Role)+".")
}

// memberConflict shows the submitted access beside the one stored in the meantime. The form
// has the stored one: sending it again must not return what another member took away.
func memberConflict(req *site.Request, yours tenancy.Access) (site.Response, error) {
	p, err := pathMember(req)
	if err != nil {
		return site.Response{}, err
	}
	if err := req.Member.CheckManage(p.Member); err != nil {
		return site.Response{}, err
	}
	view := memberEdit(req, p, accessForm(req, component.Draft{}, p.Access), p.Version())
	view.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "Role", Yours: orgpage.RoleName(yours.Role), Theirs: orgpage.RoleName(p.Role)},
		{Label: "Custom permissions", Yours: yours.Custom.String(), Theirs: p.Custom.String()},
	}}
	return site.Conflict(orgpage.MemberEditPage(view)), nil
}

func (s *Pages) removeMember(req *site.Request, p people.MemberProfile) (site.Response, error) {
	if err := req.Organization().RemoveMember(req.Context, p.UserID); err != nil {
		return site.Response{}, err
	}
	if p.UserID == req.User.ID {
		return req.Done("/o", "You left "+req.Org.Name+".")
	}
	return req.Done(req.OrgPath("members"), p.Name+" removed.")
}

func (s *Pages) leave(req *site.Request) (site.Response, error) {
	if err := req.Organization().RemoveMember(req.Context, req.User.ID); err != nil {
		return site.Response{}, err
	}
	return req.Done("/o", "You left "+req.Org.Name+".")
}
