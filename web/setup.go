package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"purser/fault"
	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
	"purser/views/page"
	accountpage "purser/views/page/account"
)

// OfferSetup creates a link for creating the first account, or returns "" once there is
// one. Only its hash is stored: each start creates another link, and all are valid until
// one is used.
func (s *Site) OfferSetup(ctx context.Context) (address string, err error) {
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return "", err
	}
	offered, err := s.store.Auth().OfferSetup(ctx, link.Hash(), s.now())
	if err != nil || !offered {
		return "", err
	}
	return fmt.Sprintf("%s/setup/%s", s.server.Address, link), nil
}

// setupLink is the link of the path, if it is valid.
func setupLink(req *request) (link credential.Token, err error) {
	text, err := req.param("token")
	if err != nil {
		return "", err
	}
	link = credential.Token(text)
	open, err := req.site.store.Auth().SetupIsOpen(req.context, link.Hash())
	if err != nil {
		return "", err
	}
	if !open {
		return "", errSetupClosed
	}
	return link, nil
}

// errSetupClosed is an invalid or used setup link.
var errSetupClosed = fault.New(fault.PathNotFound)

// setupClosed explains why a link is invalid. Every link gets the same page: a guessed
// one learns no more than the sign-in page shows.
func (s *Site) setupClosed(req *request) (response, error) {
	setUp, err := s.isSetUp(req.context)
	if err != nil {
		return response{}, err
	}
	failure := page.Failure{
		Status: http.StatusNotFound, Title: "Invalid setup link", RequestID: req.requestID(),
		Advice: "Copy the full link from the terminal where Purser started. Restart the server to print a new one.",
	}
	if setUp {
		failure.Title = "Purser is already set up"
		failure.Advice = "Setup links work once. Sign in, or ask an owner for an invitation."
		failure.Lead, failure.Href = "Sign in", "/login"
	}
	return showStatus(failure.Status, page.Error(failure)), nil
}

// isSetUp reports whether there is an account. True is cached: anonymous pages call it.
func (s *Site) isSetUp(ctx context.Context) (bool, error) {
	if s.setUp.Load() {
		return true, nil
	}
	setUp, err := s.store.Auth().IsSetUp(ctx)
	if setUp {
		s.setUp.Store(true)
	}
	return setUp, err
}

func (s *Site) setupPage(req *request) (response, error) {
	link, err := setupLink(req)
	if errors.Is(err, errSetupClosed) {
		return s.setupClosed(req)
	}
	if err != nil {
		return response{}, err
	}
	return show(accountpage.SetupPage(accountpage.Setup{Action: setupPath(link), ByMail: s.mail != nil})), nil
}

func setupPath(link credential.Token) string { return pathOf([]string{"setup", string(link)}) }

func (s *Site) setup(req *request) (response, error) {
	link, err := setupLink(req)
	if errors.Is(err, errSetupClosed) {
		return s.setupClosed(req)
	}
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	bootstrap, err := s.readBootstrap(f, req)
	if err != nil {
		return response{}, err
	}
	if !f.ok() {
		return invalid(accountpage.SetupPage(accountpage.Setup{Draft: f.draft("name", "email", "organization", "application"), Action: setupPath(link), ByMail: s.mail != nil})), nil
	}
	if bootstrap.Encoded, err = s.passwords.hash(req.context, f.raw("password"), false); err != nil {
		return response{}, err
	}
	bootstrap, err = s.store.Auth().CreateFirstAccount(req.context, link.Hash(), bootstrap)
	if fault.Is(err, fault.PathNotFound) {
		return s.setupClosed(req) // another request used the link first
	}
	if err != nil {
		return response{}, err
	}
	if err := signInOnDevice(req, bootstrap.User.ID); err != nil {
		return response{}, err
	}
	req.logAccount("account created", bootstrap.User.ID, "by", "setup link")
	return req.done(pathOf([]string{"o", bootstrap.Org.Slug, "a", bootstrap.App.Slug, "quickstart"}), "Welcome. Your organization and first application are ready.")
}

// readBootstrap parses the form.
func (s *Site) readBootstrap(f *form, req *request) (found people.Bootstrap, err error) {
	now := s.now()
	found.User, err = newUser(req, f, f.text("organization"), f.text("application"))
	if err != nil {
		return found, err
	}
	found.Org, err = tenancy.NewOrganization(ids.New(), f.text("organization"), now)
	if err := f.check("organization", err); err != nil {
		return found, err
	}
	found.App, err = tenancy.NewApplication(ids.New(), found.Org, f.text("application"), false, now)
	if err := f.check("application", err); err != nil {
		return found, err
	}
	found.By = actorFor(req, found.User)
	return found, nil
}

// newUser reads the fields of a new account. The password must not contain the given
// names.
func newUser(req *request, f *form, names ...string) (u tenancy.User, err error) {
	u = tenancy.User{ID: ids.New(), CreatedAt: req.site.now()}
	u.Name, err = tenancy.ParseName(f.text("name"))
	if err := f.check("name", err); err != nil {
		return u, err
	}
	u.Email, err = tenancy.ParseEmail(f.text("email"))
	if err := f.check("email", err); err != nil {
		return u, err
	}
	err = checkChoice(req, f.raw("password"), u, names...)
	return u, f.check("password", err)
}

// actorFor is the audit actor of a request that creates its own account.
func actorFor(req *request, u tenancy.User) audit.Actor {
	by := req.actor()
	by.UserID, by.Name = u.ID, u.Email
	return by
}

// checkChoice refuses a password that can be guessed from the user, their organizations
// or this server.
func checkChoice(req *request, password string, u tenancy.User, names ...string) error {
	names = append(names, u.Email, u.Name, req.site.server.Address)
	for _, org := range req.orgs {
		names = append(names, org.Name)
	}
	return credential.CheckChoice(password, names...)
}
