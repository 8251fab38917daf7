package web

import (
	"net/http"
	"strings"

	"purser/fault"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/credential"
	"purser/views/component"
	letters "purser/views/mail"
	accountpage "purser/views/page/account"
)

func (s *Site) forgotPage(req *request) (response, error) {
	return show(accountpage.ForgotPage(accountpage.Forgot{NoMail: s.mail == nil, Sent: req.query("sent") != "", Program: s.server.Program})), nil
}

// forgot asks for a link by mail. Whether the address has an account is looked up when
// the mail is sent, so the request does the same work and takes the same time either way.
func (s *Site) forgot(req *request) (response, error) {
	if s.mail == nil {
		return response{}, fault.New(fault.PathNotFound)
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	email, err := tenancy.ParseEmail(f.text("email"))
	if err := f.check("email", err); err != nil {
		return response{}, err
	}
	if !f.ok() {
		return invalid(accountpage.ForgotPage(accountpage.Forgot{Draft: f.draft("email")})), nil
	}
	p := proof{
		step: "forgotten password", subject: credential.ResetSubject(email, siteOf(req.bearer.address).String()),
		address: credential.ResetAddressSubject(email, s.now()),
	}
	if err := s.admitAttempt(req, p); err != nil {
		return response{}, err
	}
	mails, err := req.sealMails(mail.Reset, letters.Letter{}, s.now()+people.ResetLinkTTL.Milliseconds(), email)
	if err != nil {
		return response{}, err
	}
	if err := s.store.Outbox().Queue(req.context, mails...); err != nil {
		return response{}, err
	}
	return redirect("/forgot?sent=1"), nil
}

// resetLink is the link of the path and whose password it replaces.
func resetLink(req *request) (link credential.Token, user tenancy.User, err error) {
	text, err := req.param("token")
	if err != nil {
		return "", user, err
	}
	link = credential.Token(text)
	user, err = req.site.store.Auth().ResetUser(req.context, link.Hash(), req.site.now())
	return link, user, err
}

func resetForm(d component.Draft, link credential.Token, user tenancy.User) response {
	view := accountpage.ResetPage(accountpage.Reset{Draft: d, Action: pathOf([]string{strings.Trim(mail.ResetPath, "/"), string(link)}), Email: user.Email})
	if len(d.Problems) > 0 {
		return invalid(view)
	}
	return show(view)
}

// resetClosed is the page of a link that was used, has expired or never was.
func resetClosed() response {
	return showStatus(http.StatusNotFound, accountpage.ResetPage(accountpage.Reset{Closed: true}))
}

func (s *Site) resetPage(req *request) (response, error) {
	link, user, err := resetLink(req)
	if fault.Is(err, fault.PathNotFound) {
		return resetClosed(), nil
	}
	if err != nil {
		return response{}, err
	}
	return resetForm(component.Draft{}, link, user), nil
}

// resetPassword replaces the password. It signs no one in: the sign-in follows, with the
// second factor if there is one.
func (s *Site) resetPassword(req *request) (response, error) {
	link, user, err := resetLink(req)
	if fault.Is(err, fault.PathNotFound) {
		return resetClosed(), nil
	}
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	if err := f.check("password", checkChoice(req, f.raw("password"), user)); err != nil {
		return response{}, err
	}
	if !f.ok() {
		return resetForm(f.draft(), link, user), nil
	}
	encoded, err := s.passwords.hash(req.context, f.raw("password"), false)
	if err != nil {
		return response{}, err
	}
	mails, err := req.sealMails(mail.Security, mail.PasswordLetter(req.where()), 0, user.Email)
	if err != nil {
		return response{}, err
	}
	err = s.store.Auth().ReplaceForgotten(req.context, link.Hash(), encoded, actorFor(req, user), mails...)
	if fault.Is(err, fault.PathNotFound) {
		return resetClosed(), nil // another request used the link first
	}
	if err != nil {
		return response{}, err
	}
	req.logAccount("password reset by mail", user.ID)
	return redirect("/login?reset=1"), nil
}
