package accounts

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"

	"purser/fault"
	"purser/httpd"
	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
	"purser/views/page"
	accountpage "purser/views/page/account"
	"purser/web/site"
)

// OfferSetup creates a link for creating the first account, or returns "" once there is
// one. Only its hash is stored: each start creates another link, and all are valid until
// one is used.
func (s *Pages) OfferSetup(ctx context.Context) (address string, err error) {
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return "", err
	}
	offered, err := s.Store.Auth().OfferSetup(ctx, link.Hash(), s.Now())
	if err != nil || !offered {
		return "", err
	}
	return fmt.Sprintf("%s/setup/%s", s.Server.Address, link), nil
}

// setupLink is the link of the path, if it is valid. None is once there is an account.
func (s *Pages) setupLink(req *site.Request) (link credential.Token, err error) {
	if s.setUp.Load() {
		return "", fault.New(fault.PathNotFound)
	}
	return findLink(req, "setup", req.Site.Store.Auth().SetupIsOpen)
}

// findLink is the link of the path, if it is valid; PathNotFound if not.
func findLink(req *site.Request, kind string, find func(context.Context, credential.Hash) (valid bool, err error)) (credential.Token, error) {
	text, err := req.Param("token")
	if err != nil {
		return "", err
	}
	link, ok := credential.ParseLink(text)
	if ok {
		hash := link.Hash()
		ok, err = req.Site.Lookups.Find(req.Context, httpd.Secret{Kind: kind, Hash: hash}, site.Network(req.Bearer.Address), func(ctx context.Context) (bool, error) {
			return find(ctx, hash)
		})
	}
	if err == nil && !ok {
		err = fault.New(fault.PathNotFound)
	}
	return link, err
}

// ofLink handles a request with a link in its path. If the link is not valid, or another
// request used it first, closed handles it.
func ofLink(handle, closed func(*site.Request) (site.Response, error)) func(*site.Request) (site.Response, error) {
	return func(req *site.Request) (site.Response, error) {
		response, err := handle(req)
		if fault.Is(err, fault.PathNotFound) {
			return closed(req)
		}
		return response, err
	}
}

// ifFound reports a missing row as false.
func ifFound(err error) (bool, error) {
	if fault.Is(err, fault.PathNotFound) {
		return false, nil
	}
	return true, err
}

// setupClosed explains why a link is invalid. Every link gets the same page: a guessed
// one learns no more than the sign-in page shows.
func (s *Pages) setupClosed(req *site.Request) (site.Response, error) {
	setUp, err := s.isSetUp(req)
	if err != nil {
		return site.Response{}, err
	}
	failure := page.Failure{
		Status: http.StatusNotFound, Title: "Invalid setup link", RequestID: req.RequestID(),
		Advice: "Copy the full link from the terminal where Purser started. Restart the server to print a new one.",
	}
	if setUp {
		failure.Title = "Purser is already set up"
		failure.Advice = "Setup links work once. Sign in, or ask an owner for an invitation."
		failure.Lead, failure.Href = "Sign in", "/login"
	}
	return site.ShowStatus(failure.Status, page.Error(failure)), nil
}

// isSetUp reports whether there is an account. True is cached: anonymous pages call it.
func (s *Pages) isSetUp(req *site.Request) (setUp bool, err error) {
	if s.setUp.Load() {
		return true, nil
	}
	err = s.Lookups.Read(req.Context, site.Network(req.Bearer.Address), func(ctx context.Context) error {
		setUp, err = s.Store.Auth().IsSetUp(ctx)
		return err
	})
	if setUp {
		s.setUp.Store(true)
	}
	return setUp, err
}

func (s *Pages) setupPage(req *site.Request) (site.Response, error) {
	link, err := s.setupLink(req)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(accountpage.SetupPage(accountpage.Setup{Action: setupPath(link), ByMail: s.Mail != nil})), nil
}

func setupPath(link credential.Token) string { return site.PathOf([]string{"setup", string(link)}) }

func (s *Pages) setup(req *site.Request) (site.Response, error) {
	link, err := s.setupLink(req)
	if err != nil {
		return site.Response{}, err
	}
	f := req.Form
	bootstrap := s.readBootstrap(req)
	if !f.OK() {
		return site.Invalid(accountpage.SetupPage(accountpage.Setup{Draft: f.Draft("name", "email", "organization", "application"), Action: setupPath(link), ByMail: s.Mail != nil})), nil
	}
	if bootstrap.Encoded, err = s.passwords.hash(req.Context, f.Raw("password"), ids.ID{}); err != nil {
		return site.Response{}, err
	}
	if bootstrap, err = s.Store.Auth().CreateFirstAccount(req.Context, link.Hash(), bootstrap); err != nil {
		return site.Response{}, err
	}
	if err := signInOnDevice(req, bootstrap.User.ID, bootstrap.User.CreatedAt, 0); err != nil {
		return site.Response{}, err
	}
	req.LogAccount("account created", bootstrap.User.ID, "by", "setup link")
	return req.Done(site.PathOf([]string{"o", bootstrap.Org.Slug, "a", bootstrap.App.Slug, "quickstart"}), "Welcome. Your organization and first application are ready.")
}

// readBootstrap parses the form.
func (s *Pages) readBootstrap(req *site.Request) (found people.Bootstrap) {
	f, now := req.Form, s.Now()
	found.User = newUser(req, f.Text("organization"), f.Text("application"))
	var err error
	found.Org, err = tenancy.NewOrganization(ids.New(), f.Text("organization"), now)
	f.Check("organization", err)
	found.App, err = tenancy.NewApplication(ids.New(), found.Org, f.Text("application"), false, now)
	f.Check("application", err)
	found.By = actorFor(req, found.User)
	return found
}

// newUser reads the fields of a new account. The password must not contain the given
// names.
func newUser(req *site.Request, names ...string) tenancy.User {
	f := req.Form
	name, err := tenancy.ParseName(f.Text("name"))
	f.Check("name", err)
	email, err := tenancy.ParseEmail(f.Text("email"))
	f.Check("email", err)
	u := tenancy.User{ID: ids.New(), Name: name, Email: email, CreatedAt: req.Site.Now()}
	f.Check("password", checkChoice(req, f.Raw("password"), u, req.Orgs, names...))
	return u
}

// actorFor is the audit actor of a request that creates its own account.
func actorFor(req *site.Request, u tenancy.User) audit.Actor {
	by := req.Actor()
	by.UserID, by.Name = u.ID, u.Email
	return by
}

// checkChoice refuses a password that can be guessed from the user, their organizations
// or this server. The user may be another than the request's.
func checkChoice(req *site.Request, password string, u tenancy.User, orgs []tenancy.Organization, names ...string) error {
	names = append(names, u.Email, u.Name, req.Site.Server.Address)
	for _, org := range orgs {
		names = append(names, org.Name)
	}
	return credential.CheckChoice(password, names...)
}
