package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"purser/fault"
	"purser/ids"
	"purser/store"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
	"purser/views/page"
)

// OfferSetup makes the link through which the first account is made. It is empty
// once there is one. The link itself is kept nowhere: each start makes another,
// and all of them work until one was used.
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

// setupLink is the link of the path, while it leads anywhere.
func (v *visit) setupLink() (link credential.Token, err error) {
	text, err := v.param("token")
	if err != nil {
		return "", err
	}
	link = credential.Token(text)
	open, err := v.site.store.Auth().SetupIsOpen(v.context, link.Hash())
	if err != nil {
		return "", err
	}
	if !open {
		return "", errSetupClosed
	}
	return link, nil
}

// errSetupClosed is a setup link that leads nowhere.
var errSetupClosed = fault.New(fault.PathNotFound)

// setupClosed says why a link leads nowhere. It tells every link the same: a guessed
// one learns no more than what the sign-in page shows to anybody.
func (v *visit) setupClosed() (answer, error) {
	founded, err := v.site.isFounded(v.context)
	if err != nil {
		return answer{}, err
	}
	failure := page.Failure{
		Status: http.StatusNotFound, Title: "Invalid setup link", RequestID: v.requestID(),
		Advice: "Copy the full link from the terminal where Purser started. Restart the server to print a new one.",
	}
	if founded {
		failure.Title = "Purser is already set up"
		failure.Advice = "Setup links work once. Sign in, or ask an owner for an invitation."
		failure.Lead, failure.Href = "Sign in", "/login"
	}
	return answer{status: failure.Status, view: page.Error(failure)}, nil
}

// isFounded reports whether there is an account. Once there is, that is remembered:
// anybody can ask for the pages that want to know.
func (s *Site) isFounded(ctx context.Context) (bool, error) {
	if s.founded.Load() {
		return true, nil
	}
	founded, err := s.store.Auth().IsSetUp(ctx)
	if founded {
		s.founded.Store(true)
	}
	return founded, err
}

func (s *Site) setupPage(v *visit) (answer, error) {
	link, err := v.setupLink()
	if errors.Is(err, errSetupClosed) {
		return v.setupClosed()
	}
	if err != nil {
		return answer{}, err
	}
	return show(page.SetupPage(page.Setup{Action: setupPath(link)})), nil
}

func setupPath(link credential.Token) string { return pathOf([]string{"setup", string(link)}) }

func (s *Site) setup(v *visit) (answer, error) {
	link, err := v.setupLink()
	if errors.Is(err, errSetupClosed) {
		return v.setupClosed()
	}
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	founding, err := s.founding(f, v)
	if err != nil {
		return answer{}, err
	}
	if !f.ok() {
		return invalid(page.SetupPage(page.Setup{Draft: f.draft("name", "email", "organization", "application"), Action: setupPath(link)})), nil
	}
	if founding.Encoded, err = s.passwords.hash(v.context, f.raw("password"), false); err != nil {
		return answer{}, err
	}
	founding, err = s.store.Auth().CreateFirstAccount(v.context, link.Hash(), founding)
	if fault.Is(err, fault.PathNotFound) {
		return v.setupClosed() // somebody else was faster
	}
	if err != nil {
		return answer{}, err
	}
	if err := v.signInHere(founding.User.ID); err != nil {
		return answer{}, err
	}
	v.logAccount("account created", founding.User.ID, "by", "setup link")
	return v.done(pathOf([]string{"o", founding.Org.Slug, "a", founding.App.Slug, "quickstart"}), "Welcome. Your organization and first application are ready.")
}

// founding reads the form into the nouns, and notes what is wrong with it.
func (s *Site) founding(f *form, v *visit) (found store.Bootstrap, err error) {
	now := s.now()
	found.User, err = v.newUser(f, f.text("organization"), f.text("application"))
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
	found.By = v.actorFor(found.User)
	return found, nil
}

// newUser reads the fields of an account that is about to be made, in an organization
// whose names its password must not be made of.
func (v *visit) newUser(f *form, names ...string) (u tenancy.User, err error) {
	u = tenancy.User{ID: ids.New(), CreatedAt: v.site.now()}
	u.Name, err = tenancy.ParseName(f.text("name"))
	if err := f.check("name", err); err != nil {
		return u, err
	}
	u.Email, err = tenancy.ParseEmail(f.text("email"))
	if err := f.check("email", err); err != nil {
		return u, err
	}
	err = v.checkChoice(f.raw("password"), u, names...)
	return u, f.check("password", err)
}

// actorFor is the actor of a request that makes the very account it acts for.
func (v *visit) actorFor(u tenancy.User) audit.Actor {
	by := v.actor()
	by.UserID, by.Name = u.ID, u.Email
	return by
}

// checkChoice refuses a password that is easily guessed by people who know the user, their
// organizations or this server.
func (v *visit) checkChoice(password string, u tenancy.User, names ...string) error {
	names = append(names, u.Email, u.Name, v.site.server.Address)
	for _, org := range v.orgs {
		names = append(names, org.Name)
	}
	return credential.CheckChoice(password, names...)
}
