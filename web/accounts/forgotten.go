package accounts

import (
	"context"
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
	"purser/web/site"
)

func (s *Pages) forgotPage(req *site.Request) (site.Response, error) {
	return site.Show(accountpage.ForgotPage(accountpage.Forgot{NoMail: s.Mail == nil, Sent: req.Query("sent") != "", Program: s.Server.Program})), nil
}

// forgot asks for a link by mail. Whether the address has an account is looked up when
// the mail is sent, so the request does the same work and takes the same time either way.
func (s *Pages) forgot(req *site.Request) (site.Response, error) {
	if s.Mail == nil {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	f := req.Form
	email, err := tenancy.ParseEmail(f.Text("email"))
	f.Check("email", err)
	if !f.OK() {
		return site.Invalid(accountpage.ForgotPage(accountpage.Forgot{Draft: f.Draft("email")})), nil
	}
	p := proof{
		step: "forgotten password", subject: credential.ResetSubject(email, site.Network(req.Bearer.Address).String()),
		address: credential.ResetAddressSubject(email, s.Now()),
	}
	if err := s.admitAttempt(req, p); err != nil {
		return site.Response{}, err
	}
	mails, err := req.SealMails(mail.Reset, letters.Letter{}, s.Now()+people.ResetLinkTTL.Milliseconds(), email)
	if err != nil {
		return site.Response{}, err
	}
	if err := s.Store.Outbox().Queue(req.Context, mails...); err != nil {
		return site.Response{}, err
	}
	return site.Redirect("/forgot?sent=1"), nil
}

// resetLink is the link of the path and whose password it replaces.
func resetLink(req *site.Request) (link credential.Token, user tenancy.User, err error) {
	link, err = findLink(req, "reset", func(ctx context.Context, hash credential.Hash) (bool, error) {
		user, err = req.Site.Store.Auth().ResetUser(ctx, hash, req.Site.Now())
		return ifFound(err)
	})
	return link, user, err
}

func resetForm(d component.Draft, link credential.Token, user tenancy.User) site.Response {
	view := accountpage.ResetPage(accountpage.Reset{Draft: d, Action: site.PathOf([]string{strings.Trim(mail.ResetPath, "/"), string(link)}), Email: user.Email})
	if len(d.Problems) > 0 {
		return site.Invalid(view)
	}
	return site.Show(view)
}

// resetClosed is the page of a link that was used, has expired or never was.
func resetClosed(*site.Request) (site.Response, error) {
	return site.ShowStatus(http.StatusNotFound, accountpage.ResetPage(accountpage.Reset{Closed: true})), nil
}

func (s *Pages) resetPage(req *site.Request) (site.Response, error) {
	link, user, err := resetLink(req)
	if err != nil {
		return site.Response{}, err
	}
	return resetForm(component.Draft{}, link, user), nil
}

// resetPassword replaces the password. It signs no one in: the sign-in follows, with the
// second factor if there is one.
func (s *Pages) resetPassword(req *site.Request) (site.Response, error) {
	link, user, err := resetLink(req)
	if err != nil {
		return site.Response{}, err
	}
	// A session in this browser may be another user's.
	loaded, err := s.Store.User(user.ID).PageContext(req.Context, "")
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	f.Check("password", checkChoice(req, f.Raw("password"), user, loaded.Organizations))
	if !f.OK() {
		return resetForm(f.Draft(), link, user), nil
	}
	account, err := s.Store.Auth().Account(req.Context, user.Email)
	if err != nil {
		return site.Response{}, err
	}
	device := deviceOf(req, user.ID, account.ChangedAt, account.FactorAt)
	encoded, err := s.hashForLink(req, proof{step: "password reset", user: user.ID, known: device != ""})
	if err != nil {
		return site.Response{}, err
	}
	mails, err := req.SealMails(mail.Security, mail.PasswordLetter(req.Where()), 0, user.Email)
	if err != nil {
		return site.Response{}, err
	}
	by := actorFor(req, user)
	if err := s.Store.Auth().ReplaceForgotten(req.Context, link.Hash(), encoded, by, mails...); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("password reset by mail", user.ID)
	if err := rememberDevice(req, user.ID, device, by.At, account.FactorAt); err != nil {
		return site.Response{}, err
	}
	return site.Redirect("/login?reset=1"), nil
}
