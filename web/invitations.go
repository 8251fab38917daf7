package web

import (
	"crypto/rand"
	"net/url"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/component"
	accountpage "purser/views/page/account"
	orgpage "purser/views/page/org"
)

// invitationTTL is how long an invitation link is valid.
const invitationTTL = 7 * 24 * time.Hour

func (s *Site) invitePage(req *request) (response, error) {
	return show(orgpage.InvitePage(inviteForm(req, accessForm(req, component.Draft{}, tenancy.Access{Role: tenancy.Support})))), nil
}

func inviteForm(req *request, access orgpage.AccessForm) orgpage.Invite {
	return orgpage.Invite{AccessForm: access, Frame: req.frame("Invite", "members"), Action: req.orgPath("members", "invite"), Back: req.orgPath("members"), ByMail: req.site.mail != nil}
}

// invite creates a link, mails it if there is an address, and shows it once: only its
// hash is stored.
func (s *Site) invite(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	note, err := tenancy.ParseName(f.text("note"))
	if err := f.check("note", err); err != nil {
		return response{}, err
	}
	given, err := readAccess(f)
	if err != nil {
		return response{}, err
	}
	email := ""
	if s.mail != nil && f.text("email") != "" {
		email, err = tenancy.ParseEmail(f.text("email"))
		if err := f.check("email", err); err != nil {
			return response{}, err
		}
	}
	if f.ok() {
		if err := f.check("role", req.member.CheckInvite(given)); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		return invalid(orgpage.InvitePage(inviteForm(req, accessForm(req, f.draft("note", "email"), given)))), nil
	}
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return response{}, err
	}
	i := people.Invitation{
		ID: ids.New(), OrgID: req.org.ID, Note: note, Email: email, Access: given, InvitedBy: req.user.ID,
		CreatedAt: s.now(), ExpiresAt: s.now() + invitationTTL.Milliseconds(),
	}
	address := s.server.Address + invitationPath(link)
	var mails []people.Mail
	if email != "" {
		letter := mail.InvitationLetter(req.org.Name, req.user.Name, orgpage.RoleName(given.Role), address, i.ExpiresAt)
		if mails, err = req.sealMails(mail.Invitation, letter, i.ExpiresAt, email); err != nil {
			return response{}, err
		}
	}
	if err := f.check("email", req.organization().Invite(req.context, i, link.Hash(), mails...)); err != nil {
		return response{}, err
	}
	if !f.ok() {
		return invalid(orgpage.InvitePage(inviteForm(req, accessForm(req, f.draft("note", "email"), given)))), nil
	}
	return show(orgpage.InvitationMadePage(orgpage.InvitationMade{
		Frame: req.frame("Invitation", "members"), Note: note, Email: email, ExpiresAt: i.ExpiresAt,
		Link: address, Done: req.orgPath("members"),
	})), nil
}

func (s *Site) withdrawInvitation(req *request) (response, error) {
	id, err := req.id("invitation", ids.Invitation)
	if err != nil {
		return response{}, err
	}
	if err := req.organization().WithdrawInvitation(req.context, id, s.now()); err != nil {
		return response{}, err
	}
	return req.done(req.orgPath("members"), "Invitation revoked.")
}

func invitationPath(link credential.Token) string { return pathOf([]string{"invite", string(link)}) }

func (s *Site) invitedPage(req *request) (response, error) {
	invited, _, err := loadInvited(req, component.Draft{})
	if err != nil {
		return response{}, err
	}
	return show(accountpage.InvitedPage(invited)), nil
}

// loadInvited is the page of the link in the path, if it can still be accepted.
func loadInvited(req *request, d component.Draft) (invited accountpage.Invited, link credential.Token, err error) {
	text, err := req.param("token")
	if err != nil {
		return invited, "", err
	}
	link = credential.Token(text)
	i, org, err := req.site.store.Auth().Invitation(req.context, link.Hash(), req.site.now())
	if err != nil {
		return invited, "", err
	}
	path := invitationPath(link)
	return accountpage.Invited{
		Draft: prefilled(d, i.Email), ByMail: req.site.mail != nil, Action: path, Organization: org.Name, Role: orgpage.RoleName(i.Role), SignedInAs: req.user.Email,
		LoginHref: "/login?" + url.Values{"next": {path}}.Encode(),
	}, link, nil
}

// prefilled is an empty form with the address that the invitation was mailed to.
func prefilled(d component.Draft, email string) component.Draft {
	if d.Values == nil {
		d.Values = map[string]string{"email": email}
	}
	return d
}

// accept adds the signed-in user, or a new account, as a member.
func (s *Site) accept(req *request) (response, error) {
	invited, link, err := loadInvited(req, component.Draft{})
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	joining := people.Acceptance{User: req.user}
	if !req.isSignedIn() {
		if joining.User, err = newUser(req, f, invited.Organization); err != nil {
			return response{}, err
		}
		if f.ok() {
			if joining.Encoded, err = s.passwords.hash(req.context, f.raw("password"), false); err != nil {
				return response{}, err
			}
		}
	}
	joining.By = actorFor(req, joining.User)
	var i people.Invitation
	if f.ok() {
		i, err = s.store.Auth().AcceptInvitation(req.context, link.Hash(), joining)
		field := ""
		if !req.isSignedIn() && fault.Is(err, fault.AlreadyExists) {
			field = "email"
		}
		if err := f.check(field, err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		invited.Draft = f.draft("name", "email")
		return invalid(accountpage.InvitedPage(invited)), nil
	}
	if !req.isSignedIn() {
		if err := signInOnDevice(req, joining.User.ID); err != nil {
			return response{}, err
		}
		req.logAccount("account created", joining.User.ID, "by", "invitation")
	}
	org, err := s.store.Org(i.OrgID).Organization(req.context)
	if err != nil {
		return response{}, err
	}
	return req.done(pathOf([]string{"o", org.Slug}), "You joined "+org.Name+".")
}
