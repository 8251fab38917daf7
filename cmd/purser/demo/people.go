package demo

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
	"purser/tenancy/audit"
	"purser/tenancy/credential"
)

// Person is a user to sign in as.
type Person struct {
	Name, Email string
	Role        tenancy.Role
	custom      []tenancy.Permission
}

// users are one user of each role. The first creates the organization, and the last
// joins when the demo is complete.
var users = []Person{
	{Name: "Nora Lind", Email: "owner@lumen.example", Role: tenancy.Owner},
	{Name: "Adam Okafor", Email: "admin@lumen.example", Role: tenancy.Admin},
	{Name: "Dana Petrov", Email: "developer@lumen.example", Role: tenancy.Developer},
	{Name: "Mina Castro", Email: "finance@lumen.example", Role: tenancy.Custom, custom: []tenancy.Permission{
		tenancy.WalletsRead, tenancy.DepositsRead, tenancy.PlansRead, tenancy.SubscriptionsRead, tenancy.JournalRead, tenancy.AuditRead,
	}},
	{Name: "Sam Tanaka", Email: "support@lumen.example", Role: tenancy.Support},
}

// invitationLasts is the lifetime of the dashboard's invitations.
const invitationLasts = 7 * 24 * time.Hour

// createOrganization creates the organization, the first of the installation.
func (o Options) createOrganization(ctx context.Context) (*story, error) {
	s := &story{Options: o, password: strings.ToLower(rand.Text()), staff: map[tenancy.Role]tenancy.User{}}
	var err error
	if s.encoded, err = credential.HashPassword(s.password, rand.Reader); err != nil {
		return nil, err
	}
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := o.Now()
	offered, err := o.Store.Auth().OfferSetup(ctx, link.Hash(), now)
	if err != nil {
		return nil, err
	}
	if !offered {
		return nil, errNotEmpty
	}
	founder, err := newUser(users[0], now)
	if err != nil {
		return nil, err
	}
	s.staff[tenancy.Owner] = founder
	if s.org, err = tenancy.NewOrganization(ids.New(), organizationName, now); err != nil {
		return nil, err
	}
	if s.app, err = tenancy.NewApplication(ids.New(), s.org, applicationName, false, now); err != nil {
		return nil, err
	}
	founded, err := o.Store.Auth().CreateFirstAccount(ctx, link.Hash(), people.Bootstrap{
		User: founder, Encoded: s.encoded, Org: s.org, App: s.app, By: s.actor(tenancy.Owner),
	})
	s.org, s.app = founded.Org, founded.App
	return s, err
}

func newUser(p Person, now int64) (tenancy.User, error) {
	return tenancy.NewUser(ids.New(), p.Email, p.Name, now)
}

// actor is a member as recorded in the audit log.
func (s *story) actor(r tenancy.Role) audit.Actor {
	u := s.staff[r]
	return audit.Actor{UserID: u.ID, Name: u.Email, Address: "127.0.0.1", RequestID: ids.New(), At: s.Now()}
}

// addMembers adds all members except the last, and leaves an invitation open.
func (s *story) addMembers(ctx context.Context) {
	for _, p := range users[1 : len(users)-1] {
		s.join(ctx, p)
	}
	s.invite(ctx, Person{Name: "Kai Berg, second line", Role: tenancy.Support})
}

func (s *story) addLastMember(ctx context.Context) { s.join(ctx, users[len(users)-1]) }

func (s *story) join(ctx context.Context, p Person) {
	link := s.invite(ctx, p)
	s.do(func() error {
		user, err := newUser(p, s.Now())
		if err != nil {
			return err
		}
		s.staff[p.Role] = user
		_, err = s.Store.Auth().AcceptInvitation(ctx, link.Hash(), people.Acceptance{User: user, Encoded: s.encoded, By: s.actor(p.Role)})
		return err
	})
}

func (s *story) invite(ctx context.Context, p Person) (link credential.Token) {
	s.do(func() (err error) {
		if link, err = credential.NewLink(rand.Reader); err != nil {
			return err
		}
		now := s.Now()
		return s.Store.Org(s.org.ID).By(s.actor(tenancy.Owner)).Invite(ctx, people.Invitation{
			ID: ids.New(), OrgID: s.org.ID, Note: p.Name, InvitedBy: s.staff[tenancy.Owner].ID,
			Access:    tenancy.Access{Role: p.Role, Custom: tenancy.PermissionsOf(p.custom...)},
			CreatedAt: now, ExpiresAt: now + invitationLasts.Milliseconds(),
		}, link.Hash())
	})
	return link
}

// archivePrototype leaves an application that the team no longer needs.
func (s *story) archivePrototype(ctx context.Context) {
	s.do(func() error {
		app, err := tenancy.NewApplication(ids.New(), s.org, "Prototype", false, s.Now())
		if err != nil {
			return err
		}
		by := s.actor(tenancy.Owner)
		if app, err = s.Store.Org(s.org.ID).By(by).CreateApplication(ctx, app); err != nil {
			return err
		}
		return s.Store.App(app.Scope()).By(by).Archive(ctx, app, s.Now())
	})
}
