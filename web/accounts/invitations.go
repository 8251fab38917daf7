package accounts

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	"purser/fault"
	"purser/ids"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/component"
	"purser/views/page"
	accountpage "purser/views/page/account"
	orgpage "purser/views/page/org"
	"purser/web/site"
)

// invitationTTL is how long an invitation link is valid.
const invitationTTL = 7 * 24 * time.Hour

func (s *Pages) invitePage(req *site.Request) (site.Response, error) {
	return site.Show(orgpage.InvitePage(inviteForm(req, accessForm(req, site.WithNewID(ids.Invitation), tenancy.Access{Role: tenancy.Support})))), nil
}

func inviteForm(req *site.Request, access orgpage.AccessForm) orgpage.Invite {
	return orgpage.Invite{AccessForm: access, Frame: req.Frame("Invite", "members"), Action: req.OrgPath("members", "invite"), Back: req.OrgPath("members"), ByMail: req.Site.Mail != nil}
}

// invite creates a link, mails it if there is an address, and shows it once: only its
// hash is stored.
func (s *Pages) invite(req *site.Request) (site.Response, error) {
	f := req.Form
	note, err := tenancy.ParseName(f.Text("note"))
	f.Check("note", err)
	given := readAccess(f)
	email := ""
	if s.Mail != nil && f.Text("email") != "" {
		email, err = tenancy.ParseEmail(f.Text("email"))
		f.Check("email", err)
	}
	if f.OK() {
		f.Check("role", req.Member.CheckInvite(given))
	}
	if !f.OK() {
		return site.Invalid(orgpage.InvitePage(inviteForm(req, accessForm(req, f.Draft("id", "note", "email"), given)))), nil
	}
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return site.Response{}, err
	}
	i := people.Invitation{
		ID: f.NewID(ids.Invitation, req.Org.ID, "note", "email"), OrgID: req.Org.ID, Note: note, Email: email, Access: given, InvitedBy: req.User.ID,
		CreatedAt: s.Now(), ExpiresAt: s.Now() + invitationTTL.Milliseconds(),
	}
	address := s.Server.Address + invitationPath(link)
	var mails []people.Mail
	if email != "" {
		letter := mail.InvitationLetter(req.Org.Name, req.User.Name, orgpage.RoleName(given.Role), address, i.ExpiresAt)
		if mails, err = req.SealMails(mail.Invitation, letter, i.ExpiresAt, email); err != nil {
			return site.Response{}, err
		}
	}
	field := "" // of the whole form, which may have no address
	if email != "" {
		field = "email"
	}
	err = req.Organization().Invite(req.Context, i, link.Hash(), mails...)
	if fault.Is(err, fault.AlreadyExists) {
		return site.Conflict(orgpage.InvitedBeforePage(orgpage.InvitationMade{Frame: req.Frame("Invitation", "members"), Note: note, Done: req.OrgPath("members")})), nil
	}
	f.Check(field, err)
	if !f.OK() {
		return site.Invalid(orgpage.InvitePage(inviteForm(req, accessForm(req, f.Draft("id", "note", "email"), given)))), nil
	}
	return site.ShowOnce(orgpage.InvitationMadePage(orgpage.InvitationMade{
		Frame: req.Frame("Invitation", "members"), Note: note, Email: email, ExpiresAt: i.ExpiresAt,
		Link: address, Done: req.OrgPath("members"),
	})), nil
}

func (s *Pages) withdrawInvitation(req *site.Request, id ids.ID) (site.Response, error) {
	if err := req.Organization().WithdrawInvitation(req.Context, id, s.Now()); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.OrgPath("members"), "Invitation revoked.")
}

func invitationPath(link credential.Token) string {
	return site.PathOf([]string{"invite", string(link)})
}

func (s *Pages) invitedPage(req *site.Request) (site.Response, error) {
	invited, _, err := loadInvited(req)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(accountpage.InvitedPage(invited)), nil
}

// invitationClosed explains why a link is invalid. Every link gets the same page, so a
// guessed one tells nothing.
func invitationClosed(req *site.Request) (site.Response, error) {
	failure := page.Failure{
		Status: http.StatusNotFound, Title: "This invitation doesn't work any more", RequestID: req.RequestID(),
		Advice: "Invitations work once, for 7 days, and can be revoked. If you have already joined, sign in. Otherwise ask for a new invitation.",
		Lead:   "Sign in", Href: "/login",
	}
	if req.IsSignedIn() {
		failure.Advice = "Invitations work once, for 7 days, and can be revoked. If you haven't joined yet, ask for a new invitation."
		failure.Lead, failure.Href, failure.Frame = "Go to your organizations", "/o", req.Frame(failure.Title, "")
	}
	return site.ShowStatus(failure.Status, page.Error(failure)), nil
}

// loadInvited is the page of the link in the path, if it can still be accepted, with the
// address that the invitation was mailed to.
func loadInvited(req *site.Request) (invited accountpage.Invited, link credential.Token, err error) {
	var i people.Invitation
	var org tenancy.Organization
	link, err = findLink(req, "invitation", func(ctx context.Context, hash credential.Hash) (bool, error) {
		i, org, err = req.Site.Store.Auth().Invitation(ctx, hash, req.Site.Now())
		return ifFound(err)
	})
	if err != nil {
		return invited, "", err
	}
	path := invitationPath(link)
	return accountpage.Invited{
		Draft: component.Draft{Values: map[string]string{"email": i.Email}}, ByMail: req.Site.Mail != nil, Action: path, Organization: org.Name, Role: orgpage.RoleName(i.Role), SignedInAs: req.User.Email,
		LoginHref: "/login?" + url.Values{"next": {path}}.Encode(),
	}, link, nil
}

// accept adds the signed-in user, or a new account, as a member.
func (s *Pages) accept(req *site.Request) (site.Response, error) {
	invited, link, err := loadInvited(req)
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	joining := people.Acceptance{User: req.User}
	if !req.IsSignedIn() {
		joining.User = newUser(req, invited.Organization)
		if f.OK() {
			if joining.Encoded, err = s.hashForLink(req, proof{step: "invitation"}); err != nil {
				return site.Response{}, err
			}
		}
	}
	joining.By = actorFor(req, joining.User)
	var i people.Invitation
	if f.OK() {
		i, err = s.Store.Auth().AcceptInvitation(req.Context, link.Hash(), joining)
		field := ""
		if !req.IsSignedIn() && fault.Is(err, fault.AlreadyExists) {
			field = "email"
		}
		f.Check(field, err)
	}
	if !f.OK() {
		invited.Draft = f.Draft("name", "email")
		return site.Invalid(accountpage.InvitedPage(invited)), nil
	}
	if !req.IsSignedIn() {
		if err := signInOnDevice(req, joining.User.ID, joining.User.CreatedAt, 0); err != nil {
			return site.Response{}, err
		}
		req.LogAccount("account created", joining.User.ID, "by", "invitation")
	}
	org, err := s.Store.Org(i.OrgID).Organization(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	return req.Done(site.PathOf([]string{"o", org.Slug}), "You joined "+org.Name+".")
}
