package web

import (
	"crypto/rand"
	"net/url"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/page"
)

// invitationLasts is how long a link that nobody opens stays good.
const invitationLasts = 7 * 24 * time.Hour

func (s *Site) invitePage(v *visit) (answer, error) {
	return show(page.InvitePage(v.inviteForm(v.accessForm(page.Draft{}, tenancy.Access{Role: tenancy.Support})))), nil
}

func (v *visit) inviteForm(access page.AccessForm) page.Invite {
	return page.Invite{AccessForm: access, Frame: v.frame("Invite", "members"), Action: v.orgPath("members", "invite"), Back: v.orgPath("members")}
}

// invite makes a link and shows it in its own reply: it is kept nowhere.
func (s *Site) invite(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	note, err := tenancy.ParseName(f.text("note"))
	if err := f.check("note", err); err != nil {
		return answer{}, err
	}
	given, err := f.access()
	if err != nil {
		return answer{}, err
	}
	if f.ok() {
		if err := f.check("role", v.member.CheckInvite(given)); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		return invalid(page.InvitePage(v.inviteForm(v.accessForm(f.draft("note"), given)))), nil
	}
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return answer{}, err
	}
	i := store.Invitation{
		ID: ids.New(), OrgID: v.org.ID, Note: note, Access: given, InvitedBy: v.user.ID,
		CreatedAt: s.now(), ExpiresAt: s.now() + invitationLasts.Milliseconds(),
	}
	if err := v.organization().Invite(v.context, i, link.Hash()); err != nil {
		return answer{}, err
	}
	return show(page.InvitationMadePage(page.InvitationMade{
		Frame: v.frame("Invitation", "members"), Note: note, ExpiresAt: i.ExpiresAt,
		Link: s.server.Address + invitationPath(link), Done: v.orgPath("members"),
	})), nil
}

func (s *Site) withdrawInvitation(v *visit) (answer, error) {
	id, err := v.id("invitation", ids.Invitation)
	if err != nil {
		return answer{}, err
	}
	if err := v.organization().WithdrawInvitation(v.context, id, s.now()); err != nil {
		return answer{}, err
	}
	return v.done(v.orgPath("members"), "Invitation revoked.")
}

func invitationPath(link credential.Token) string { return pathOf([]string{"invite", string(link)}) }

func (s *Site) invitedPage(v *visit) (answer, error) {
	invited, _, err := v.invited(page.Draft{})
	if err != nil {
		return answer{}, err
	}
	return show(page.InvitedPage(invited)), nil
}

// invited is the page of the link in the path, while it can be accepted.
func (v *visit) invited(d page.Draft) (invited page.Invited, link credential.Token, err error) {
	text, err := v.param("token")
	if err != nil {
		return invited, "", err
	}
	link = credential.Token(text)
	i, org, err := v.site.store.Auth().Invitation(v.context, link.Hash(), v.site.now())
	if err != nil {
		return invited, "", err
	}
	path := invitationPath(link)
	return page.Invited{
		Draft: d, Action: path, Organization: org.Name, Role: page.RoleName(i.Role), SignedInAs: v.user.Email,
		LoginHref: "/login?" + url.Values{"next": {path}}.Encode(),
	}, link, nil
}

// accept makes a member of who is signed in, or of a new account.
func (s *Site) accept(v *visit) (answer, error) {
	invited, link, err := v.invited(page.Draft{})
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	joining := store.Acceptance{User: v.user}
	if !v.isSignedIn() {
		if joining.User, err = v.newUser(f, invited.Organization); err != nil {
			return answer{}, err
		}
		if f.ok() {
			if joining.Encoded, err = s.passwords.hash(v.context, f.raw("password"), false); err != nil {
				return answer{}, err
			}
		}
	}
	joining.By = v.actorFor(joining.User)
	var i store.Invitation
	if f.ok() {
		i, err = s.store.Auth().AcceptInvitation(v.context, link.Hash(), joining)
		field := ""
		if !v.isSignedIn() && fault.Is(err, fault.AlreadyExists) {
			field = "email"
		}
		if err := f.check(field, err); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		invited.Draft = f.draft("name", "email")
		return invalid(page.InvitedPage(invited)), nil
	}
	if !v.isSignedIn() {
		if err := v.signInHere(joining.User.ID); err != nil {
			return answer{}, err
		}
		v.logAccount("account created", joining.User.ID, "by", "invitation")
	}
	org, err := s.store.Org(i.OrgID).Organization(v.context)
	if err != nil {
		return answer{}, err
	}
	return v.done(pathOf([]string{"o", org.Slug}), "You joined "+org.Name+".")
}
